package chatctx_test

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// besideUpdate lists the functions that write through an engine and not through base.Store.Update, and why nothing is due after them.
var besideUpdate = map[string]string{
	"internal/base.Store.Update":      "it is the place",
	"internal/base.guarded.Update":    "an engine below a store: Store.Update calls it",
	"chatctx.expecting.Update":        "an engine below a store: Store.Update calls it",
	"chatctx/kv.layered.Update":       "an engine below a store: Store.Update calls it",
	"internal/care.OpenDB":            "there is no store yet",
	"internal/care.EndDoubt":          "only a note goes that was read",
	"internal/care.copying.begin":     "a copy is no store before its end, and has the index of the original",
	"internal/care.copying.markMoved": "only the mark changes",
	"internal/care.Reopen":            "only the mark changes",
	"internal/care.copying.write":     "a copy is no store before its end, and has the index of the original",
	"internal/care.copying.end":       "a copy is no store before its end, and has the index of the original",
	"internal/care.finishPurge":       "only a note that a purge is under way goes",
	"internal/care.Vacuum":            "nothing changes",
}

// TestEveryUpdate reads all sources, with their types: whatever changes an open store passes base.Store.Update, so that what is due after a change
// (commands and groups, hints, the search index) is done whichever room made it. Tests and the engines' own suite are not asked.
func TestEveryUpdate(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles everything")
	}
	exports, packages := exported(t)
	used := map[string]bool{}
	n := 0
	for _, pkg := range packages {
		if strings.HasPrefix(pkg, module+"chatctx/kv/") { // engines and their suite
			continue
		}
		for _, c := range updatesIn(t, pkg, exports) {
			n++
			if c.through {
				continue
			}
			if used[c.in] = true; besideUpdate[c.in] == "" {
				t.Errorf("%s: %s calls an engine's %s: call base.Store.Update, or say in the table why nothing is due after it", c.at, c.in, c.method)
			}
		}
	}
	if n < 35 {
		t.Errorf("found only %d calls: the test looks in the wrong place", n)
	}
	for in := range besideUpdate {
		if !used[in] {
			t.Errorf("the table has %s, which calls no engine", in)
		}
	}
}

// updateCall is a use of a method that runs a function in a writing transaction. through: it is base.Store's.
type updateCall struct {
	at, in, method string
	through        bool
}

// exported returns the files with the exported types of all packages, and the project's packages.
func exported(t *testing.T) (exports map[string]string, packages []string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{if and .Module (not .DepOnly)}}{{.Module.Main}}{{end}}", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports = map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if exports[f[0]] = f[1]; f[2] == "true" {
			packages = append(packages, f[0])
		}
	}
	return exports, packages
}

// updatesIn finds the uses in a package.
func updatesIn(t *testing.T, pkg string, exports map[string]string) (out []updateCall) {
	t.Helper()
	fset := token.NewFileSet()
	dir := filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(pkg+"/", module), "/"))
	names, err := filepath.Glob(filepath.Join(".", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if !built(filepath.Base(name), dir) {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup), Error: func(error) {}}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := config.Check(pkg, fset, files, info); err != nil {
		t.Fatalf("%s: %v", pkg, err)
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			fn, is := decl.(*ast.FuncDecl)
			if !is {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				sel, is := n.(*ast.SelectorExpr)
				if s := info.Selections[sel]; is && s != nil && engineMethods[sel.Sel.Name] && runsWrites(s.Type()) {
					out = append(out, updateCall{at: fset.Position(sel.Pos()).String(), in: funcName(pkg, fn), method: sel.Sel.Name,
						through: strings.TrimPrefix(s.Recv().String(), "*") == module+"internal/base.Store"})
				}
				return true
			})
		}
	}
	return out
}

// built reports whether a file is a part of the package on this system.
func built(name, dir string) bool {
	if strings.HasSuffix(name, "_test.go") {
		return false
	}
	match, err := build.Default.MatchFile(filepath.Join(".", dir), name)
	return err == nil && match
}

// engineMethods are the methods of engines that write.
var engineMethods = map[string]bool{"Update": true, "Rewrite": true}

// runsWrites reports whether a method takes what kv.DB.Update takes.
func runsWrites(t types.Type) bool {
	sig, is := t.(*types.Signature)
	if !is || sig.Params().Len() != 2 {
		return false
	}
	fn, is := sig.Params().At(1).Type().(*types.Signature)
	return is && fn.Params().Len() == 1 && fn.Params().At(0).Type().String() == module+"chatctx/kv.RwTx"
}

// funcName names a function: its package within the project, the receiver's type, its name.
func funcName(pkg string, fn *ast.FuncDecl) string {
	name := strings.TrimPrefix(pkg, module) + "."
	if fn.Recv != nil {
		typ := fn.Recv.List[0].Type
		if star, is := typ.(*ast.StarExpr); is {
			typ = star.X
		}
		name += typ.(*ast.Ident).Name + "."
	}
	return name + fn.Name.Name
}
