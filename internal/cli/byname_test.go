package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNoFlagByName reads the sources: flags come out of structs, so nothing compares what was typed with the name of one.
func TestNoFlagByName(t *testing.T) {
	names := map[string]bool{}
	for _, p := range paramsOf(reflect.TypeFor[commonFlags]()) {
		names[p.flag.dashed()] = true
	}
	eachCommand(func(_ string, c *command) {
		for _, f := range c.flags {
			names[f.dashed()] = true
		}
	})
	reading := []string{"order.go", "parsed.go", "suggest.go", "app.go", "params.go"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(reading, file) {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for at, what := range flagsByName(tree, names) {
			t.Errorf("%s: %s", set.Position(at), what)
		}
	}
}

// flagsByName finds what asks for flags by their names in a file.
func flagsByName(tree *ast.File, names map[string]bool) map[token.Pos]string {
	found := map[token.Pos]string{}
	isFlag := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return false
		}
		s, _ := strconv.Unquote(lit.Value)
		name, _, _ := strings.Cut(strings.TrimSpace(s), "=")
		return names[name]
	}
	for _, imported := range tree.Imports {
		if strings.Contains(imported.Path.Value, "urfave/cli") {
			found[imported.Pos()] = "urfave/cli is only for app.go"
		}
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && (f.Name.Name == "wantsJSON" || f.Name.Name == "again") { // the line could not be read; the line is one to propose
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			var asked []ast.Expr
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					asked = []ast.Expr{n.X, n.Y}
				}
			case *ast.CaseClause:
				asked = n.List
			case *ast.CallExpr:
				if of, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"HasPrefix", "CutPrefix", "TrimPrefix", "Contains", "Index", "EqualFold", "Cut"}, of.Sel.Name) {
					asked = n.Args
				}
			}
			for _, e := range asked {
				if isFlag(e) {
					found[e.Pos()] = "a flag is asked for by its name"
				}
			}
			return true
		})
	}
	return found
}
