package chatctx_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// weights are what a program links that imports a room and nothing else: the modules, which are all that it may link, and packages that it
// must not. A new name on the left is a decision, and its reason stands in docs/design.md.
var weights = []struct {
	room    string
	modules []string
	never   []string
}{
	{"chatctx", core, heavy},
	{"pool", []string{"fxamacker/cbor", "google/uuid", "x448/float16"}, heavy},
	{"branch", []string{"fxamacker/cbor", "google/uuid", "x448/float16"}, heavy},
	{"chatctx/exchange", slices.Concat(formats, core), append([]string{"database/sql"}, heavy...)},
	{"chatctx/exchange/html", slices.Concat(formats, []string{"yuin/goldmark"}, core), append([]string{"database/sql"}, heavy...)},
	{"enhancer", append(slices.Clone(core), counting...), []string{"html/template", "text/template", "database/sql", "github.com/urfave/cli/v2"}},
	{"enhancer/tokens", append(slices.Clone(core), counting...), []string{"html/template", "text/template", "database/sql", "github.com/urfave/cli/v2"}},
	{"adapter", append(slices.Clone(core), "golang.org/x/image"), []string{"html/template", "database/sql"}},
	{"cmd/chatctx", slices.Concat(strings.Fields(ofTheCommand), formats, counting, core), []string{"html/template", "go/ast"}},
}

// core are the modules of a program that embeds a store.
var core = []string{"fxamacker/cbor", "google/uuid", "rivo/uniseg", "tidwall/btree", "x448/float16", "go.etcd.io/bbolt", "golang.org/x/crypto", "golang.org/x/sync", "golang.org/x/sys", "golang.org/x/text"}

// formats are the modules that read the files of other programs.
var formats = []string{"klauspost/compress", "vmihailenco/msgpack", "vmihailenco/tagparser"}

// counting are the modules that cut texts into tokens. They bring net/http, which counting never uses.
var counting = []string{"pkoukk/tiktoken-go", "pkoukk/tiktoken-go-loader", "dlclark/regexp2"}

// ofTheCommand are the modules that only the command links: for the terminal interface, PostgreSQL, MCP, Markdown and the formats.
const ofTheCommand = `
charm.land/bubbletea cpuguy83/go-md2man russross/blackfriday urfave/cli charmbracelet/colorprofile charmbracelet/ultraviolet charmbracelet/x/ansi charmbracelet/x/term charmbracelet/x/termios
charmbracelet/x/windows clipperhouse/displaywidth clipperhouse/uax29 fsnotify/fsnotify google/jsonschema-go jackc/pgpassfile jackc/pgservicefile
jackc/pgx jackc/puddle lucasb-eyer/go-colorful mattn/go-runewidth modelcontextprotocol/go-sdk muesli/cancelreader
santhosh-tekuri/jsonschema segmentio/asm segmentio/encoding sergi/go-diff xo/terminfo xrash/smetrics yosida95/uritemplate yuin/goldmark
golang.org/x/image golang.org/x/oauth2 golang.org/x/term golang.org/x/time mvdan.cc/sh`

// heavy are packages that bring much along. No room that a program needs to keep conversations has one.
var heavy = []string{"github.com/pkoukk/tiktoken-go", "github.com/pkoukk/tiktoken-go-loader/assets", "github.com/urfave/cli/v2", "net/http", "crypto/tls", "html/template", "text/template", "encoding/gob", "go/ast",
	"golang.org/x/text/encoding/japanese"}

// TestWeight asks the go command what each room links. It reads all files first, so that a cached result does not hide a change.
func TestWeight(t *testing.T) {
	importsOf(t)
	for _, w := range weights {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", "./"+w.room).Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := 0
		for line := range strings.Lines(string(out)) {
			linked++
			pkg, of, _ := strings.Cut(strings.TrimSpace(line), " ")
			if slices.Contains(w.never, pkg) {
				t.Errorf("%s links %s", w.room, pkg)
			}
			if of != "" && of != strings.TrimSuffix(module, "/") && !slices.Contains(w.modules, shortModule(of)) {
				t.Errorf("%s links %s of the module %s, which is not on its list", w.room, pkg, of)
			}
		}
		if linked < 50 {
			t.Errorf("%s: read only %d packages", w.room, linked)
		}
	}
}

// small is a program that embeds a store and nothing else.
const small = `package main

import (
	"context"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func main() {
	s, err := chatctx.Open("store", chatctx.Options{Create: true})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	c, err := s.New(context.Background(), record.NewContext{})
	if err == nil {
		_, err = c.Append(context.Background(), "", pool.NewText(pool.User, "hello"))
	}
	if err != nil {
		panic(err)
	}
}
`

// largestSmall is the bar on the size of that program, stripped, in bytes.
const largestSmall = 5_500_000

// TestSmallProgram: code for JSON of any type, 200 KB, is not in a program that only embeds a store. One call of it in what each store needs brings it back.
func TestSmallProgram(t *testing.T) {
	importsOf(t)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "small")
	if err := os.WriteFile(source, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stripped := filepath.Join(dir, "stripped")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", stripped, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if info, err := os.Stat(stripped); err != nil || info.Size() > largestSmall {
		t.Errorf("it has more than %d bytes, stripped: %+v, %v", largestSmall, info, err)
	}
	out, err := exec.Command("go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "encoding/json.Valid") {
		t.Error("the table of symbols does not name what is linked")
	}
	for _, name := range []string{"encoding/json.Unmarshal", "encoding/json.Marshal", "encoding/json.typeFields", "regexp.compile"} {
		if slices.Contains(linked, name) {
			t.Errorf("it links %s", name)
		}
	}
}

// shortModule is a module's path without host and major version where it lies on GitHub.
func shortModule(path string) string {
	path = strings.TrimPrefix(path, "github.com/")
	if i := strings.LastIndex(path, "/v"); i > 0 && len(path) == i+3 {
		path = path[:i]
	}
	return path
}
