package exchange

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/storetest"
)

// TestSpoiltDescriptions: a file that describes another one and cannot be read is named, and what it describes comes in.
func TestSpoiltDescriptions(t *testing.T) {
	session := `{"type":"user","uuid":"u","parentUuid":null,"isSidechain":true,"agentId":"x","sessionId":"s","message":{"role":"user","content":"dig"}}` + "\n"
	for name, c := range map[string]struct {
		meta, title string
		named       bool
	}{
		"whole": {`{"description":"Digs"}`, "Digs", false},
		"empty": {"", "dig", true},
		"cut":   {`{"description":"Di`, "dig", true},
		"list":  {`["Digs"]`, "dig", false},
		"huge":  {`{"description":"` + strings.Repeat("x", 2<<20) + `"}`, "dig", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := write(t, filepath.Join(dir, "subagents", "agent-x.jsonl"), session)
			write(t, filepath.Join(dir, "subagents", "agent-x.meta.json"), c.meta)
			s := memoryStore(t)
			rep, err := Import(t.Context(), s, []string{file}, Options{Limits: Limits{Item: 1 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			named := false
			for _, w := range rep.Warnings {
				named = named || strings.Contains(w.Text, "agent-x.meta.json")
			}
			if named != c.named || rep.Messages != 1 || onlyContext(t, s).Title != c.title {
				t.Errorf("%+v, title %.40q", rep, onlyContext(t, s).Title)
			}
			storetest.Check(t, s)
		})
	}
}
