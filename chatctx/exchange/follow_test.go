package exchange_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/machine"
	"github.com/chatctx/chatctx/internal/storetest"
)

// TestFollower writes a session line by line, with a clock of its own: a message is imported when it is finished, or when the file did not change for a while.
func TestFollower(t *testing.T) {
	ctx := context.Background()
	s := exchange.MemoryStore(t)
	now := time.Unix(1_800_000_000, 0)
	reports := 0
	f := &machine.Follower{Store: s, Now: func() time.Time { return now }, Report: func(string, *exchange.Report) { reports++ }}
	file := filepath.Join(t.TempDir(), "session.jsonl")
	lines := []string{
		exchange.CCText("user", "u1", "", "what is here"),
		exchange.CCText("assistant", "a1", "u1", "I look"),
		exchange.CCText("user", "u2", "a1", "go on"),
		`{"type":"assistant","uuid":"a2","parentUuid":"u2","sessionId":"s","message":{"role":"assistant","content":"done","stop_reason":"end_turn"}}` + "\n",
		exchange.CCText("assistant", "a3", "a2", "and more"),
	}
	said := func() string {
		for _, info := range exchange.ContextsOf(t, s) {
			return strings.TrimSpace(exchange.SaidOn(t, s, info.ID.String()))
		}
		return ""
	}
	for i, c := range []struct {
		lines int
		after time.Duration // since the last step
		want  string
	}{
		{1, 0, ""}, // not at once: more may come in the same moment
		{1, machine.Pause, "main: what is here"},
		{2, 5 * time.Second, "main: what is here"},
		{2, 9 * time.Second, "main: what is here"}, // nothing shows that the answer is finished
		{2, exchange.Still, "main: what is here I look"},
		{3, 5 * time.Second, "main: what is here I look"},
		{3, machine.Pause, "main: what is here I look go on"},
		{4, 0, "main: what is here I look go on"},
		{4, machine.Pause, "main: what is here I look go on done"},
		{5, machine.Pause, "main: what is here I look go on done"},
		{5, exchange.Still, "main: what is here I look go on done and more"},
	} {
		now = now.Add(c.after)
		text := strings.Join(lines[:c.lines], "")
		if old, err := os.ReadFile(file); err != nil || string(old) != text {
			exchange.Write(t, file, text)
			f.Changed(file + map[bool]string{true: "", false: "-wal"}[i%2 == 0])
		}
		if err := f.Take(ctx); err != nil {
			t.Fatal(err)
		}
		if got := said(); got != c.want {
			t.Errorf("step %d: %q, want %q", i, got, c.want)
		}
	}
	if _, waiting := f.Due(); waiting || reports != 5 {
		t.Errorf("waiting %v, %d reports", waiting, reports)
	}
	storetest.Check(t, s)
	if again := exchange.ImportInto(t, s, file); again.Messages != 0 {
		t.Errorf("%+v", again)
	}
}

// TestFollowerPassesOver: a file that is not a conversation, missing or broken ends nothing.
// TestFollowerAfterAPurge: a followed file that grows does not bring back what was purged here, and says so; with Purged it does.
func TestFollowerAfterAPurge(t *testing.T) {
	for _, purged := range []bool{false, true} {
		s := exchange.MemoryStore(t)
		now := time.Unix(1_800_000_000, 0)
		var said []*exchange.Report
		f := &machine.Follower{Store: s, Options: exchange.Options{Purged: purged}, Now: func() time.Time { return now }, Report: func(_ string, r *exchange.Report) { said = append(said, r) }}
		text := exchange.CCText("user", "u1", "", "the key is ZZ4411") + exchange.CCText("assistant", "a1", "u1", "I look")
		file := exchange.Write(t, filepath.Join(t.TempDir(), "session.jsonl"), text)
		exchange.ImportInto(t, s, file)
		if _, err := s.Maintenance().PurgeMessages(t.Context(), exchange.Only(t, s).ID.String(), "", []record.Ref{"@1"}, chatctx.PurgeOptions{}); err != nil {
			t.Fatal(err)
		}
		exchange.Write(t, file, text+exchange.CCText("user", "u2", "a1", "go on"))
		f.Changed(file)
		now = now.Add(exchange.Still)
		if err := f.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := string(exchange.Exported(t, s, exchange.ExportOptions{All: true}))
		if strings.Contains(all, "ZZ4411") != purged || !strings.Contains(all, "go on") {
			t.Errorf("with Purged %v the store has %s", purged, all)
		}
		if len(said) != 1 || (said[0].Purged > 0) == purged {
			t.Errorf("with Purged %v the report is %+v", purged, said)
		}
		storetest.Check(t, s)
	}
}

func TestFollowerPassesOver(t *testing.T) {
	s := exchange.MemoryStore(t)
	now := time.Unix(1_800_000_000, 0)
	f := &machine.Follower{Store: s, Now: func() time.Time { return now }}
	dir := t.TempDir()
	f.Changed(exchange.Write(t, filepath.Join(dir, "notes.txt"), "nothing"))
	f.Changed(filepath.Join(dir, "gone.jsonl"))
	f.Changed(exchange.Write(t, filepath.Join(dir, "cut.json"), `[{"mapping":{`))
	at, waiting := f.Due()
	if !waiting || at != now.Add(machine.Pause) {
		t.Error(at, waiting)
	}
	now = now.Add(exchange.Still)
	if err := f.Take(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, waiting := f.Due(); waiting || len(exchange.ContextsOf(t, s)) != 0 {
		t.Error("something is left")
	}
}

// TestPlaces finds the places of tools, also by their variables, and nothing if there is nothing.
func TestPlaces(t *testing.T) {
	home := t.TempDir()
	codex := t.TempDir()
	put := func(parts ...string) {
		p := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		exchange.Write(t, p, "12345")
	}
	put(home, ".claude", "projects", "x", "s.jsonl")
	put(home, ".codex", "sessions", "s.jsonl")
	put(codex, "sessions", "2026", "a.jsonl")
	put(codex, "sessions", "2026", "b.jsonl")
	put(home, "conf", "Code", "User", "workspaceStorage", "9f", "chatSessions", "c.json")
	put(home, "project", ".aider.chat.history.md")
	m := machine.Folders{Home: home, Config: filepath.Join(home, "conf"), Data: filepath.Join(home, "[data"), Current: filepath.Join(home, "project"),
		Getenv: func(name string) string { return map[string]string{"CODEX_HOME": codex}[name] }}
	got := ""
	for _, p := range m.Places() {
		got += p.Tool + " " + filepath.Base(p.Path) + " " + strconv.Itoa(p.Files) + " " + strconv.Itoa(int(p.Bytes)) + "\n"
		if p.Changed.IsZero() {
			t.Error("no time for", p.Path)
		}
	}
	if want := "aider .aider.chat.history.md 1 5\nclaude-code projects 1 5\ncodex sessions 2 10\nvscode-chat chatSessions 1 5\n"; got != want {
		t.Errorf("%swant\n%s", got, want)
	}
	for _, tool := range machine.Tools() {
		if tool != "roo-code" && !exchange.Reads(tool) { // it is read as cline
			t.Errorf("no format is called %q", tool)
		}
	}
}
