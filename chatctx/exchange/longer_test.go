package exchange

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
)

// branchOf returns the messages of a context's active branch.
func branchOf(t *testing.T, s *chatctx.Store, id chatctx.ID) []*chatctx.Message {
	t.Helper()
	ctx := context.Background()
	c, err := s.Context(ctx, id.String())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	var out []*chatctx.Message
	for e, err := range snap.Entries(ctx, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Message)
	}
	return out
}

// ccLines is a session with a reply that calls two tools.
var ccLines = []string{
	ccText("user", "u1", "", "what is here"),
	`{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I look."}]}}` + "\n",
	`{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}]}}` + "\n",
	`{"type":"user","uuid":"r1","parentUuid":"a2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a b"}]}}` + "\n",
	`{"type":"assistant","uuid":"a3","parentUuid":"a2","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"cat","input":{}}]}}` + "\n",
	`{"type":"user","uuid":"r2","parentUuid":"a3","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"no file","is_error":true}]}}` + "\n",
	ccText("assistant", "a4", "r2", "There are a and b."),
}

// TestSessionWhileItIsWritten imports a session after each line, and in one step from each line to the end: the store then has the same as from the whole file.
func TestSessionWhileItIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "session.jsonl")
	write := func(n int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(ccLines[:n], "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func(s *chatctx.Store) (out string, id chatctx.ID) {
		info := contextsOf(t, s)["what is here"]
		if info == nil || info.Branches != 1 {
			t.Fatalf("%+v", info)
		}
		for _, m := range branchOf(t, s, info.ID) {
			out += string(m.Role) + " " + m.Text()
			for _, c := range m.Calls {
				out += " [" + c.ID + " " + record.CallState(c.Status, c.Execution) + " " + c.Reason + "]"
			}
			if m.Result != nil {
				out += m.Result.RequestID
			}
			out += "\n"
		}
		return out, info.ID
	}
	whole := memoryStore(t)
	write(len(ccLines))
	importInto(t, whole, file)
	want, _ := said(whole)
	if !strings.Contains(want, "[t1 approved/done ] [t2 approved/failed ]") {
		t.Fatal(want)
	}
	steps := memoryStore(t)
	for n := 1; n < len(ccLines); n++ {
		write(n)
		importInto(t, steps, file)
		s := memoryStore(t)
		importInto(t, s, file)
		before, id := said(s)
		write(len(ccLines))
		importInto(t, s, file)
		if got, _ := said(s); got != want {
			t.Errorf("from line %d:\n%swant\n%s", n, got, want)
		}
		if again := importInto(t, s, file); again.Messages != 0 || again.Branches != 0 {
			t.Errorf("from line %d, again: %+v", n, again)
		}
		if _, err := s.Undo(context.Background(), id.String(), "", ""); err != nil {
			t.Fatal(err)
		}
		if got, _ := said(s); got != before {
			t.Errorf("undone to line %d:\n%swant\n%s", n, got, before)
		}
		storetest.Check(t, s)
	}
	storetest.Check(t, steps)
	write(len(ccLines))
	importInto(t, steps, file)
	if got, _ := said(steps); got != want {
		t.Errorf("line by line:\n%swant\n%s", got, want)
	}
}

// TestParentsMayComeLater imports a sub-agent's file before its session's: it then belongs to it, until that import is undone.
func TestParentsMayComeLater(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	agent := writeTemp(t, "agent-1.jsonl", `{"type":"user","uuid":"x","parentUuid":null,"isSidechain":true,"agentId":"1","sessionId":"s","message":{"role":"user","content":"a part"}}`+"\n")
	importInto(t, s, agent)
	parent := func() chatctx.ID { return contextsOf(t, s)["a part"].Parent }
	if parent() != (chatctx.ID{}) {
		t.Fatal("it has a parent before that is there")
	}
	importInto(t, s, writeTemp(t, "session.jsonl", strings.Join(ccLines, "")))
	id := contextsOf(t, s)["what is here"].ID
	if parent() != id {
		t.Fatalf("the parent is %v, not %v", parent(), id)
	}
	if _, err := s.Undo(ctx, id.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	if parent() != (chatctx.ID{}) {
		t.Error("the parent is gone and still named")
	}
	storetest.Check(t, s)
}

// TestLinksWhateverTheCommand: a session that continues another is put below it whichever comes first, and a sub-agent below a session that comes from the
// store's own export.
func TestLinksWhateverTheCommand(t *testing.T) {
	ctx := context.Background()
	older := writeTemp(t, "older.jsonl", ccText("user", "gone", "", "plan the trip"))
	newer := "testdata/formats/claude-code/boundary-of-another-file.jsonl"
	for _, files := range [][]string{{older, newer}, {newer, older}} {
		s := memoryStore(t)
		for _, f := range files {
			importInto(t, s, f)
		}
		all := contextsOf(t, s)
		if first := all["plan the trip"]; len(all) != 2 || first.Parent != (chatctx.ID{}) {
			t.Fatal(all)
		} else {
			for title, info := range all {
				if title != "plan the trip" && info.Parent != first.ID {
					t.Errorf("%q is below %v after %v", title, info.Parent, files)
				}
			}
		}
	}
	from, to := memoryStore(t), memoryStore(t)
	importInto(t, from, writeTemp(t, "session.jsonl", strings.Join(ccLines, "")))
	var b bytes.Buffer
	if err := Export(ctx, from, ExportOptions{Format: nativeName, All: true}, &b); err != nil {
		t.Fatal(err)
	}
	importInto(t, to, writeTemp(t, "agent-1.jsonl", `{"type":"user","uuid":"x","parentUuid":null,"isSidechain":true,"agentId":"1","sessionId":"s","message":{"role":"user","content":"a part"}}`+"\n"))
	importInto(t, to, writeTemp(t, "own.jsonl", b.String()))
	if all := contextsOf(t, to); all["a part"].Parent != all["what is here"].ID {
		t.Error("the sub-agent is below", all["a part"].Parent)
	}
}
