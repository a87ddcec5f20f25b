package chatctx

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
)

func formatDoc(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestFormatNamesEachBucket finds the buckets in the sources of the three packages that have some and looks for them in the table.
func TestFormatNamesEachBucket(t *testing.T) {
	inDoc := map[string]bool{}
	table := section(t, formatDoc(t), "## Buckets")
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z]+) \|`).FindAllStringSubmatch(table, -1) {
		inDoc[m[1]] = true
	}
	delete(inDoc, "bucket")
	inCode := map[string]bool{}
	for _, dir := range []string{".", "../internal/base", "../internal/branchstore", "../internal/poolstore", "../internal/index"} {
		for name, value := range stringConstants(t, dir) {
			if strings.HasSuffix(name, "Bucket") {
				inCode[value] = true
			}
		}
	}
	for name := range inCode {
		if !inDoc[name] {
			t.Errorf("the bucket %q is not in docs/format.md", name)
		}
	}
	for name := range inDoc {
		if !inCode[name] {
			t.Errorf("docs/format.md has the bucket %q, the code has none of that name", name)
		}
	}
	if len(inCode) < 20 {
		t.Errorf("found only %d buckets in the code", len(inCode))
	}
}

// stringConstants gives the string constants of a package's files.
func stringConstants(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						out[name.Name], _ = strconv.Unquote(lit.Value)
					}
				}
			}
			return true
		})
	}
	return out
}

func section(t *testing.T, doc, title string) string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, title+"\n")
	if !ok {
		t.Fatalf("docs/format.md has no section %q", title)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// TestFormatNamesEachKey holds the tables of records to the struct tags.
func TestFormatNamesEachKey(t *testing.T) {
	doc := formatDoc(t)
	for title, v := range map[string]any{"## Context record": base.ContextRecord{}, "## Branch record": branch.Branch{}, "## Call record": record.CallRecord{},
		"## Operation record": base.Operation{}, "## Tool record": record.Tool{}, "## Task record": record.Task{}} {
		inDoc := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^\| ([0-9, ]+) \|`).FindAllStringSubmatch(section(t, doc, title), -1) {
			for _, key := range strings.Split(m[1], ",") {
				inDoc[strings.TrimSpace(key)] = true
			}
		}
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			tag := typ.Field(i).Tag.Get("cbor")
			key, _, ok := strings.Cut(tag, ",")
			if !ok || key == "" {
				continue
			}
			if !inDoc[key] {
				t.Errorf("%s: key %s (%s) is not in docs/format.md", title, key, typ.Field(i).Name)
			}
			delete(inDoc, key)
		}
		for key := range inDoc {
			t.Errorf("%s: docs/format.md has the key %s, the code has none", title, key)
		}
	}
}
