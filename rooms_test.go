// Package chatctx_test holds what is true of the project as a whole.
package chatctx_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/chatctx/chatctx/"

// rooms lists the packages from the bottom up; imports go down only. A package that is not listed may not exist.
var rooms = []string{
	"chatctx/kv", "chatctx/kv/internal/watch", "chatctx/kv/memkv", "chatctx/kv/boltkv", "chatctx/kv/pgkv", "chatctx/kv/kvtest", "internal/pgtest",
	"internal/sqlite",
	"pool", "branch", "chatctx/internal/words", "chatctx/internal/index", "chatctx/internal/record", "chatctx/internal/view", "chatctx/internal/find", "chatctx/internal/journal", "chatctx/internal/toolcall", "chatctx/internal/intake", "chatctx/internal/care", "chatctx",
	"chatctx/approval", "chatctx/exchange/internal/show", "chatctx/exchange/internal/exchangetest", "chatctx/exchange", "chatctx/exchange/html", "chatctx/exchange/all", "chatctx/secrets",
	"adapter/internal/out", "adapter/wire", "adapter/wire/wiretest", "adapter", "adapter/anthropic", "adapter/openai", "adapter/responses", "adapter/gemini", "adapter/ollama",
	"adapter/all", "adapter/adaptertest",
	"enhancer/tokens", "enhancer",
	"chatctx/turn", "subtask",
	"internal/cli", "cmd/chatctx",
}

// alone names libraries that one room uses and no other.
var alone = map[string]string{
	"go.etcd.io/bbolt":         "chatctx/kv/boltkv",
	"github.com/jackc/pgx/v5":  "chatctx/kv/pgkv",
	"github.com/urfave/cli/v2": "internal/cli",
}

// TestRooms reads the imports of all files; it does not ask the go command, whose cache would hide a change.
func TestRooms(t *testing.T) {
	seen := 0
	for file, imports := range importsOf(t) {
		room := path.Dir(file)
		if room == "." {
			continue
		}
		at := slices.Index(rooms, room)
		if at < 0 {
			t.Errorf("%s: the package %s is in no list of rooms: where does it stand?", file, room)
			continue
		}
		seen++
		for _, imp := range imports {
			if owner, ok := alone[imp]; ok && owner != room {
				t.Errorf("%s imports %s: only %s may", file, imp, owner)
			}
			in, ok := strings.CutPrefix(imp, module)
			if !ok {
				continue
			}
			if below := slices.Index(rooms, in); below < 0 || below > at {
				t.Errorf("%s imports %s, which stands above it: imports go down only", file, in)
			}
		}
	}
	if seen < 20 {
		t.Errorf("read only %d files: the test looks in the wrong place", seen)
	}
}

// quiet rooms do not print, read flags or exit: that is internal/cli's.
func TestOnlyTheCommandLinePrints(t *testing.T) {
	for file, imports := range importsOf(t) {
		if strings.HasPrefix(file, "internal/cli/") || strings.HasPrefix(file, "cmd/") || strings.HasSuffix(path.Dir(file), "test") {
			continue // the last are suites for tests
		}
		for _, imp := range imports {
			if imp == "flag" || imp == "log" {
				t.Errorf("%s imports %s: nothing below internal/cli reads flags or prints", file, imp)
			}
		}
	}
}

// nestedModule tells whether a folder is a module of its own, which nobody needs who builds this one.
func nestedModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != "."
}

// importsOf gives the imports of each Go file that is no test, by its path from the top.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		nested := nestedModule(p) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && p != "."
		if d.IsDir() && nested {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		out[p] = []string{}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			out[p] = append(out[p], imp)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
