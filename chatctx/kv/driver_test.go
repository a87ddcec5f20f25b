package kv_test

import (
	"context"
	"errors"
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/engine"
)

func TestDrivers(t *testing.T) {
	ctx := context.Background()
	asked := ""
	refused := errors.New("refused")
	kv.Register("trial", kv.Driver{
		Open: func(_ context.Context, url string, o kv.OpenOptions) (kv.DB, error) {
			asked = url + " " + o.Program
			return memkv.New(), nil
		},
		Init: func(context.Context, string, func(kv.RwTx) error) error { return refused },
	})
	db, err := kv.Open(ctx, "TRIAL://a/b", kv.OpenOptions{Program: "p"})
	if err != nil || asked != "TRIAL://a/b p" {
		t.Fatalf("the driver was asked for %q, %v", asked, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := kv.Init(ctx, "trial://x", nil); err != refused {
		t.Errorf("Init: %v", err)
	}
	for url, want := range map[string]string{
		"postgres://h/db":   `import _ "github.com/chatctx/chatctx/chatctx/kv/pgkv"`,
		"postgresql://h/db": `import _ "github.com/chatctx/chatctx/chatctx/kv/pgkv"`,
		"mysql://h/db":      "this program has: trial://",
	} {
		if _, err := kv.Open(ctx, url, kv.OpenOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a scheme has two drivers")
		}
	}()
	kv.Register("trial", kv.Driver{})
}

func TestScheme(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://h": "postgres", "POSTGRES://h": "postgres", "a.db": "", `C:\a.db`: "", "C://a": "c", "dir/x://y": "", "://": "", "": "",
	} {
		if got := kv.Scheme(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://me:secret@h/db":                         "postgres://me:***@h/db",
		"postgres://me@h/db":                                "postgres://me@h/db",
		"postgres://h/db?password=secret&sslpassword=other": "postgres://h/db?password=***&sslpassword=***",
		"postgres://me:%zz@h/db":                            "postgres://…",
		"a.db":                                              "a.db",
	} {
		if got := engine.Shown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLane(t *testing.T) {
	ctx := context.Background()
	if got := engine.Lane(ctx); got != "" {
		t.Errorf("lane of nothing: %q", got)
	}
	if got := engine.Lane(engine.WithLane(ctx, "a")); got != "a" {
		t.Errorf("lane: %q", got)
	}
}

// TestFileAlone: a program with the file engine alone is not made larger by the others. It reads the imports of all packages of
// this module that the store is made of.
func TestFileAlone(t *testing.T) {
	const module = "github.com/chatctx/chatctx/"
	seen := []string{"chatctx"}
	for i := 0; i < len(seen); i++ {
		p, err := build.ImportDir(filepath.Join("..", "..", filepath.FromSlash(seen[i])), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "github.com/jackc/") {
				t.Errorf("%s imports %s", seen[i], imp)
			}
			if in, own := strings.CutPrefix(imp, module); own && !slices.Contains(seen, in) {
				seen = append(seen, in)
			}
		}
	}
	if !slices.Contains(seen, "chatctx/kv/boltkv") || slices.Contains(seen, "chatctx/kv/pgkv") {
		t.Errorf("the store is made of %v", seen)
	}
}
