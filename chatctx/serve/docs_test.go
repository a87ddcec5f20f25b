package serve

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/operation"
)

var update = flag.Bool("update", false, "write docs/api.md and testdata/openapi.json anew")

// TestDocs compares the table in docs/api.md with that of the program.
func TestDocs(t *testing.T) {
	const file, begin = "../../docs/api.md", "## Methods\n\n"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, is, ok := strings.Cut(string(raw), begin)
	if !ok {
		t.Fatal("docs/api.md has no part Methods")
	}
	if methodDocs() == is {
		return
	}
	if !*update {
		t.Fatal("docs/api.md is stale: go test ./chatctx/serve -run TestDocs -update")
	}
	if err := os.WriteFile(file, []byte(text+begin+methodDocs()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// methodDocs writes the tables of docs/api.md.
func methodDocs() string {
	var b strings.Builder
	b.WriteString("| method | over HTTP | scope | does | parameters | errors |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, m := range methods() {
		var params []string
		for _, f := range m.fields {
			name := f.Name
			if f.Required {
				name += "!"
			}
			params = append(params, name)
		}
		var errors []string
		for _, k := range m.Errors() {
			errors = append(errors, k.Name)
		}
		fmt.Fprintf(&b, "| `%s` | `%s %s` | %s | %s | %s | %s |\n", m.Name, m.Verb, m.Path, m.Right, m.Does, strings.Join(params, ", "), strings.Join(errors, ", "))
	}
	b.WriteString("\nParameters with ! have to be given; /api/v1/openapi.json says what each is for. Errors are those beside the common ones.\n")
	b.WriteString("\n## Kinds of errors\n\n| kind | exit code | HTTP | means | of |\n| --- | --- | --- | --- | --- |\n")
	for i, k := range operation.Kinds() {
		of := "some"
		if i < len(operation.CommonErrors()) {
			of = "all"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s |\n", k.Name, strings.Trim(strings.ReplaceAll(fmt.Sprint(k.Codes), " ", ", "), "[]"), k.Status, k.Does, of)
	}
	b.WriteString("\n## Events\n\n| method | event | tells | data |\n| --- | --- | --- | --- |\n")
	for _, m := range methods() {
		for _, e := range m.Tells {
			var members []string
			for _, f := range codec.Fields(e.Type) {
				members = append(members, f.Name)
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", m.Name, e.Name, e.Does, strings.Join(members, ", "))
		}
	}
	b.WriteString("\nEach stream ends with `done`, whose data is the result, or with `error`.\n")
	return b.String()
}

// TestPromisedOpenAPI holds the description against testdata/openapi.json, so that nothing that other programs use goes or changes unseen. docs/compatibility.md
// says what is promised. After a change that is meant: go test ./chatctx/serve -run TestPromisedOpenAPI -update
func TestPromisedOpenAPI(t *testing.T) {
	const file = "testdata/openapi.json"
	is := append(bytes.Clone(OpenAPI()), '\n')
	if *update {
		if err := os.WriteFile(file, is, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promised, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	were, are := strings.Split(string(promised), "\n"), strings.Split(string(is), "\n")
	for i := range max(len(were), len(are)) {
		if i >= len(were) || i >= len(are) || were[i] != are[i] {
			t.Fatalf("%s differs from line %d on; if that is meant: go test ./chatctx/serve -run TestPromisedOpenAPI -update, and a line in CHANGELOG.md\nwas %q\n is %q",
				file, i+1, were[min(i, len(were)-1)], are[min(i, len(are)-1)])
		}
	}
}
