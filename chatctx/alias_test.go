package chatctx

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateAliases = flag.Bool("update", false, "write the comments of aliases anew")

// TestAliasesShowTheirTypes: the comment of an alias for a type of a room below ends with the fields and methods of that type, since go doc shows of an alias
// nothing but its comment. With -update the comments are written.
func TestAliasesShowTheirTypes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked, rooms := 0, map[string][]*ast.File{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "records.go" { // whose types are those of a public package
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := aliasLine.ReplaceAllStringFunc(string(text), func(all string) string {
			m := aliasLine.FindStringSubmatch(all)
			room := rooms[m[3]]
			if room == nil {
				room = parseRoom(t, filepath.Join("internal", m[3]))
				rooms[m[3]] = room
			}
			if room == nil { // a public package, which shows its type itself
				return all
			}
			checked++
			doc := strings.TrimSuffix(madeDoc.ReplaceAllString(m[1], ""), "//\n")
			return doc + "//\n" + wrapped(parts(t, room, path.Join("chatctx/internal", m[3]), m[4])) + m[2]
		})
		if want == string(text) {
			continue
		}
		if !*updateAliases {
			t.Errorf("%s: a comment of an alias lacks fields or methods: go test ./chatctx -run %s -update", name, t.Name())
		} else if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if checked < 50 {
		t.Errorf("only %d aliases were found", checked)
	}
}

// aliasLine finds an alias with its comment.
var aliasLine = regexp.MustCompile(`(?m)((?:^//.*\n)+)(^type [A-Z]\w* = (\w+)\.(\w+)$)`)

// madeDoc finds what this test wrote at the end of a comment.
var madeDoc = regexp.MustCompile(`(?s)//\n// (Fields|Methods|For more of each): .*`)

// parseRoom reads the sources of a room, nil if there is none in the folder.
func parseRoom(t *testing.T, dir string) (all []*ast.File) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parts names the exported fields and methods of a type.
func parts(t *testing.T, room []*ast.File, where, name string) string {
	var fields, methods []string
	is := ""
	for _, file := range room {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && d.Name.IsExported() && receiver(d) == name && !strings.HasSuffix(d.Name.Name, "CBOR") {
					methods = append(methods, d.Name.Name+signature(d.Type))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
						is = typeName(s.Type)
						fields, methods = members(s.Type, methods)
					}
				}
			}
		}
	}
	switch {
	case is == "":
		t.Fatalf("%s.%s is not declared", where, name)
	case len(fields) == 0 && !strings.HasPrefix(is, "struct") && !strings.HasPrefix(is, "interface"):
		fields = []string{"none, it is a " + is}
	}
	out := ""
	if len(fields) > 0 {
		out = "Fields: " + strings.Join(fields, "; ") + ". "
	}
	if len(methods) > 0 {
		out += "Methods: " + strings.Join(methods, "; ") + ". "
	}
	return fmt.Sprintf("%sFor more of each: go doc %s.%s", out, where, name)
}

func members(of ast.Expr, methods []string) (fields, all []string) {
	last := ""
	switch of := of.(type) {
	case *ast.StructType:
		for _, f := range of.Fields.List {
			if names := exported(f.Names); names != "" {
				if n := len(fields) - 1; n >= 0 && last == typeName(f.Type) {
					fields[n] = strings.TrimSuffix(fields[n], " "+last) + ", " + names + " " + last
				} else {
					fields = append(fields, names+" "+typeName(f.Type))
				}
				last = typeName(f.Type)
			} else if f.Names == nil {
				fields, last = append(fields, strings.TrimPrefix(typeName(f.Type), "*")+" (embedded)"), ""
			}
		}
	case *ast.InterfaceType:
		for _, f := range of.Methods.List {
			methods = append(methods, exported(f.Names)+signature(f.Type.(*ast.FuncType)))
		}
	}
	return fields, methods
}

func exported(names []*ast.Ident) string {
	var out []string
	for _, n := range names {
		if n.IsExported() {
			out = append(out, n.Name)
		}
	}
	return strings.Join(out, ", ")
}

func receiver(d *ast.FuncDecl) string { return strings.TrimPrefix(typeName(d.Recv.List[0].Type), "*") }

func signature(f *ast.FuncType) string { return strings.TrimPrefix(typeName(f), "func") }

// typeName names a type as package chatctx does, where most names of the rooms stand for the same.
func typeName(e ast.Expr) string {
	return regexp.MustCompile(`\b(record|journal|view|intake|care|find|toolcall|task)\.|\bpool\.(ID|Message)\b`).ReplaceAllString(types.ExprString(e), "$2")
}

// wrapped breaks a text into lines of a comment.
func wrapped(text string) string {
	var out strings.Builder
	line := "//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 158 {
			out.WriteString(line + "\n")
			line = "//"
		}
		line += " " + word
	}
	return out.String() + line + "\n"
}
