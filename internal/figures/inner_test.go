package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// inner finds internal types that an exported name of a public package asks for or gives, and that no public package has under a name of its own: other modules
// can neither write nor make them.
type inner struct {
	named map[*types.TypeName]bool // internal types that have a public name
	seen  map[types.Type]bool
	found []string
}

// innerTypes returns what inner finds in packages: "chatctx.Step.Stands names internal/journal.Txn".
func innerTypes(packages []*types.Package) []string {
	in := inner{named: map[*types.TypeName]bool{}}
	each := func(use func(p *types.Package, o types.Object)) {
		for _, p := range packages {
			for _, name := range p.Scope().Names() {
				if o := p.Scope().Lookup(name); o.Exported() {
					use(p, o)
				}
			}
		}
	}
	each(func(_ *types.Package, o types.Object) {
		if t, ok := types.Unalias(o.Type()).(*types.Named); ok && isType(o) {
			in.named[t.Origin().Obj()] = true
		}
	})
	each(func(p *types.Package, o types.Object) {
		in.seen = map[types.Type]bool{}
		where := p.Name() + "." + o.Name()
		if isType(o) {
			in.members(where, types.Unalias(o.Type()))
			return
		}
		in.walk(where, o.Type())
	})
	slices.Sort(in.found)
	return slices.Compact(in.found)
}

func isType(o types.Object) bool {
	_, is := o.(*types.TypeName)
	return is
}

// members looks at what a type has: its methods, promoted ones too, and what it is made of.
func (in *inner) members(where string, t types.Type) {
	if in.seen[t] {
		return
	}
	in.seen[t] = true
	set := types.NewMethodSet(t)
	if !types.IsInterface(t) {
		set = types.NewMethodSet(types.NewPointer(t))
	}
	for m := range set.Methods() {
		if m.Obj().Exported() {
			in.walk(where+"."+m.Obj().Name(), m.Type())
		}
	}
	if named, ok := t.(*types.Named); ok {
		in.walk(where, named.Underlying())
	}
}

// walk looks at each type that a type is written with.
func (in *inner) walk(where string, t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		in.name(where, t)
		for a := range t.TypeArgs().Types() {
			in.walk(where, a)
		}
	case interface{ Elem() types.Type }: // a pointer, slice, array, channel or map
		if m, ok := t.(*types.Map); ok {
			in.walk(where, m.Key())
		}
		in.walk(where, t.Elem())
	case *types.Signature:
		for _, vars := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range vars.Variables() {
				in.walk(where, v.Type())
			}
		}
		for p := range t.TypeParams().TypeParams() {
			in.walk(where, p.Constraint())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				in.walk(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				in.walk(where+"."+m.Name(), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			in.walk(where, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			in.walk(where, term.Type())
		}
	}
}

// name judges a type by its name. One that is public, but not exported, shows its methods and fields to whoever gets a value.
func (in *inner) name(where string, t *types.Named) {
	o := t.Origin().Obj()
	switch {
	case o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module+"/"):
	case isInternal(o.Pkg().Path()):
		if !in.named[o] {
			in.found = append(in.found, fmt.Sprintf("%s names %s.%s", where, strings.TrimPrefix(o.Pkg().Path(), module+"/"), o.Name()))
		}
	case !o.Exported():
		in.members(where, t)
	}
}

// innerAliases returns the exported aliases of public packages that stand for internal types: go doc shows neither their fields nor their methods.
func innerAliases(packages []*types.Package) (found []string) {
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			o, is := p.Scope().Lookup(name).(*types.TypeName)
			if !is || !o.Exported() || !o.IsAlias() {
				continue
			}
			if t, is := types.Unalias(o.Type()).(*types.Named); is && t.Obj().Pkg() != nil && isInternal(t.Obj().Pkg().Path()) {
				found = append(found, p.Name()+"."+name)
			}
		}
	}
	return found
}

// TestNoAliasesIntoInternal: a public package has types of its own, or of another public one. left are those that are to go.
func TestNoAliasesIntoInternal(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles everything")
	}
	left := []string{"turn.Compacted", "turn.Completion", "turn.Stands"}
	t.Chdir("../..")
	packages, err := public()
	if err != nil {
		t.Fatal(err)
	}
	if found := innerAliases(packages); !slices.Equal(found, left) {
		t.Errorf("aliases that stand for internal types: %q, want %q", found, left)
	}
}

// TestPublicPackagesNamePublicTypes: whatever a public package asks for or gives can be written and made by other modules.
func TestPublicPackagesNamePublicTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles everything")
	}
	t.Chdir("../..")
	exports, paths, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range testSupport { // others import them for their tests
		paths = append(paths, module+"/"+test)
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var packages []*types.Package
	for _, path := range paths {
		p, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	for _, f := range innerTypes(packages) {
		t.Error(f)
	}
}

// TestInnerTypesAreFound: wherever an internal type can stand.
func TestInnerTypesAreFound(t *testing.T) {
	fset := token.NewFileSet()
	made := map[string]*types.Package{}
	make := func(path, source string) *types.Package {
		t.Helper()
		f, err := parser.ParseFile(fset, path, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := types.Config{Importer: imported(made)}
		p, err := c.Check(module+"/"+path, fset, []*ast.File{f}, nil)
		if err != nil {
			t.Fatal(err)
		}
		made[p.Path()] = p
		return p
	}
	make("internal/room", `package room
type Hidden struct{}
type Named struct{ Field int }
func (*Named) Takes(*Hidden) {}
func (*Named) Gives() Other { return Other{} }
type Other struct{}
type List[T any] []T
`)
	p := make("front", `package front
import "github.com/chatctx/chatctx/internal/room"
type Named = room.Named
type List[T any] = room.List[T]
func Fine(n *Named, l List[Named]) []map[string]*Named { return nil }
func Takes(h *room.Hidden) {}
func Gives() (map[room.Other]int, error) { return nil, nil }
func Calls(f func(chan room.Other)) {}
func Lists(l List[room.Hidden]) {}
func Limits[T interface{ ~[]room.Hidden }](t T) {}
var Variable []room.Other
type Struct struct {
	Field  [2]room.Other
	hidden room.Hidden
	inside
}
type inside struct{}
func (inside) Promoted(room.Hidden) {}
func (inside) private(room.Hidden) {}
type Interface interface {
	Method() room.Hidden
	private() room.Hidden
}
type Embeds struct{ room.Hidden }
func Opaque() *opaque { return nil }
type opaque struct{ Field room.Hidden }
func (o *opaque) Method(room.Other) {}
func private(room.Hidden) {}
`)
	got := strings.Join(innerTypes([]*types.Package{p}), "\n")
	want := strings.TrimSpace(`
front.Calls names internal/room.Other
front.Embeds.Hidden names internal/room.Hidden
front.Gives names internal/room.Other
front.Interface.Method names internal/room.Hidden
front.Limits names internal/room.Hidden
front.Lists names internal/room.Hidden
front.Named.Gives names internal/room.Other
front.Named.Takes names internal/room.Hidden
front.Opaque.Field names internal/room.Hidden
front.Opaque.Method names internal/room.Other
front.Struct.Field names internal/room.Other
front.Struct.Promoted names internal/room.Hidden
front.Takes names internal/room.Hidden
front.Variable names internal/room.Other`)
	if got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

// imported finds packages that were made before.
type imported map[string]*types.Package

func (i imported) Import(path string) (*types.Package, error) { return i[path], nil }
