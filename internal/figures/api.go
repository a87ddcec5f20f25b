package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/chatctx/chatctx"

// testSupport are the packages that only tests import. They are no part of the count.
var testSupport = []string{"adapter/adaptertest", "chatctx/kv/kvtest"}

// core are the packages that most embedding programs use, which have a bar of their own.
var core = []string{"chatctx", "pool", "branch", "enhancer", "enhancer/standard", "adapter", "chatctx/turn", "subtask", "chatctx/settings"}

// api returns what the public packages export, one name a line in order: "package func Name", "package type Name", "package method Type.Name", and fields that hold
// functions as "package field Type.Name". An alias counts as a type, and brings the methods of an internal type that it stands for.
func api() (names []string, err error) {
	packages, err := public()
	for _, p := range packages {
		names = append(names, exportedBy(p)...)
	}
	slices.Sort(names)
	return names, err
}

// public returns the packages that other modules can import.
func public() ([]*types.Package, error) {
	exports, paths, err := compiled()
	if err != nil {
		return nil, err
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	packages := make([]*types.Package, len(paths))
	for i, path := range paths {
		if packages[i], err = imports.Import(path); err != nil {
			return nil, err
		}
	}
	return packages, nil
}

// declarations returns what a package promises, one declaration a line: its constants and variables with their types, its functions, and its types with their
// exported fields and methods.
func declarations(p *types.Package) []string {
	short := strings.TrimPrefix(p.Path(), module+"/")
	qualify := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	lines := []string{"package " + short}
	add := func(o types.Object) { lines = append(lines, short+": "+types.ObjectString(o, qualify)) }
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		t, isType := o.(*types.TypeName)
		switch {
		case !ast.IsExported(name):
		case !isType:
			add(o)
		default:
			lines = append(lines, short+": "+header(t, qualify))
			for _, member := range members(t) {
				if f, is := member.(*types.Var); is {
					lines = append(lines, fmt.Sprintf("%s: field %s.%s %s", short, name, f.Name(), types.TypeString(f.Type(), qualify)))
				} else if member.Pkg() == p {
					add(member)
				}
			}
		}
	}
	return lines
}

// header returns the first line of a type's declaration: all of it, but for the fields of a struct, which have lines of their own.
func header(t *types.TypeName, qualify types.Qualifier) string {
	if _, is := t.Type().Underlying().(*types.Struct); is && !t.IsAlias() {
		return "type " + t.Name() + " struct"
	}
	return types.ObjectString(t, qualify)
}

// members returns the exported fields of a type that is declared here, and its exported methods.
func members(t *types.TypeName) (list []types.Object) {
	if t.IsAlias() {
		return nil
	}
	if s, is := t.Type().Underlying().(*types.Struct); is {
		for f := range s.Fields() {
			if f.Exported() {
				list = append(list, f)
			}
		}
	}
	if types.IsInterface(t.Type()) {
		return list
	}
	methods := types.NewMethodSet(types.NewPointer(t.Type()))
	for i := range methods.Len() {
		if m := methods.At(i); m.Obj().Exported() && len(m.Index()) == 1 {
			list = append(list, m.Obj())
		}
	}
	return list
}

// compiled returns the file with the exported types of each package that the module needs, and the module's public packages.
func compiled() (exports map[string]string, public []string, err error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Name}}", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, err
	}
	exports = map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[f[0]] = f[1]
		if f[2] != "main" && isPublic(f[0]) {
			public = append(public, f[0])
		}
	}
	return exports, public, nil
}

// isPublic reports whether other modules can import a package of this one, and their programs use it.
func isPublic(path string) bool {
	under, ours := strings.CutPrefix(path, module+"/")
	return ours && !isInternal(path) && !slices.Contains(testSupport, under)
}

func isInternal(path string) bool {
	return strings.Contains(path+"/", "/internal/")
}

// exportedBy returns the names that a package exports.
func exportedBy(p *types.Package) (names []string) {
	short := strings.TrimPrefix(p.Path(), module+"/")
	for _, name := range p.Scope().Names() {
		if !ast.IsExported(name) {
			continue
		}
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Func:
			names = append(names, short+" func "+name)
		case *types.TypeName:
			names = append(names, short+" type "+name)
			for _, member := range membersOf(o, p) {
				kind, member, _ := strings.Cut(member, " ")
				names = append(names, fmt.Sprintf("%s %s %s.%s", short, kind, name, member))
			}
		}
	}
	return names
}

// membersOf returns the methods of a type and its fields that hold functions: "method Name", "field Name". Those that another public package has are not counted
// again.
func membersOf(o *types.TypeName, p *types.Package) []string {
	counts := func(of *types.Package) bool { return of == p || of != nil && isInternal(of.Path()) }
	t := types.Unalias(o.Type())
	if named, ok := t.(*types.Named); ok && !counts(named.Obj().Pkg()) {
		return nil
	}
	members := map[string]bool{}
	for _, set := range []*types.MethodSet{types.NewMethodSet(t), types.NewMethodSet(types.NewPointer(t))} {
		for i := range set.Len() {
			if m := set.At(i).Obj(); m.Exported() && counts(m.Pkg()) {
				members["method "+m.Name()] = true
			}
		}
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if _, holds := f.Type().Underlying().(*types.Signature); holds && f.Exported() {
				members["field "+f.Name()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(members))
}

// summary says how many names there are, of all packages and of the core.
func summary(names []string) string {
	inCore := 0
	for _, n := range names {
		if pkg, _, _ := strings.Cut(n, " "); slices.Contains(core, pkg) {
			inCore++
		}
	}
	return fmt.Sprintf("%d exported functions, methods and types, of them %d in %s", len(names), inCore, strings.Join(core, ", "))
}
