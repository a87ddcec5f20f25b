package logbook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "example.org/outside/logbook"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
)

func TestImport(t *testing.T) {
	store, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	file := filepath.Join(t.TempDir(), "rosalind.log")
	text := "LOGBOOK Rosalind\n08:15 user Is the bridge open? " + strings.Repeat("long ", 20_000) + "\n08:16 assistant Until noon.\n08:20 mate Aye.\n"
	for _, c := range []struct {
		text, format      string
		messages, skipped int
	}{
		{text: text, messages: 2, skipped: 1},
		{text: text + "08:30 user Then we go.", messages: 1, skipped: 1},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := exchange.Import(t.Context(), store, []string{file}, exchange.Options{})
		if err != nil || r.Messages != c.messages || r.Skipped != c.skipped || r.Outcome() != exchange.Partial || len(r.Imported) != 1 || r.Imported[0].Format != "logbook" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	c, err := store.Context(t.Context(), "Rosalind")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := c.Info(t.Context()); err != nil || info.Messages != 3 {
		t.Errorf("%+v, %v", info, err)
	}
}
