package exchange

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
)

// contextsOf returns a store's contexts by their titles.
func contextsOf(t *testing.T, s *chatctx.Store) map[string]*record.ContextInfo {
	t.Helper()
	out := map[string]*record.ContextInfo{}
	for info, err := range s.Contexts(context.Background(), record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		out[info.Title] = info
	}
	return out
}

// TestImportFormats imports the inputs of all formats: what is read is in the store, and a second import adds nothing.
func TestImportFormats(t *testing.T) {
	names, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			s := memoryStore(t)
			first := importInto(t, s, name)
			_, read := readAll(t, Options{}, name)
			if first.Messages+first.Duplicated != read.Messages+read.Duplicated || first.Structural != read.Structural || first.Skipped != read.Skipped {
				t.Errorf("imported %+v\nread %+v", first, read)
			}
			again := importInto(t, s, name)
			if again.Messages != 0 || again.Branches != 0 || again.Contexts != 0 || again.Duplicated != read.Messages+read.Duplicated {
				t.Errorf("a second time: %d messages, %d branches, %d contexts, %d duplicated of %d", again.Messages, again.Branches, again.Contexts,
					again.Duplicated, read.Messages+read.Duplicated)
			}
		})
	}
}

// TestForksAreLinked imports a fork before its original: the messages that it repeats are copies, and counted as known.
func TestForksAreLinked(t *testing.T) {
	for dir, copies := range map[string]int{"testdata/formats/codex/fork": 2, "testdata/formats/claude-code/project": 1} {
		s := memoryStore(t)
		rep := importInto(t, s, dir)
		if rep.Duplicated != copies {
			t.Errorf("%s: %d duplicated, want %d", dir, rep.Duplicated, copies)
		}
		linked := 0
		for info, err := range s.Contexts(context.Background(), record.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.Context(context.Background(), info.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			snap, err := c.Snapshot(context.Background(), "")
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range snap.Entries(context.Background(), 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.CopiedFrom != nil {
					linked++
				}
			}
		}
		if linked != copies {
			t.Errorf("%s: %d messages name what they are copies of, want %d", dir, linked, copies)
		}
	}
}

// TestSubAgentsBelongToTheirSession imports a folder with a session and its sub-agent.
func TestSubAgentsBelongToTheirSession(t *testing.T) {
	s := memoryStore(t)
	importInto(t, s, "testdata/formats/claude-code/project")
	all := contextsOf(t, s)
	if len(all) < 2 || all["A part of it"] == nil || all["delegate it"] == nil {
		t.Fatal(all)
	}
	parent, err := s.Context(context.Background(), all["A part of it"].Parent.String())
	if err != nil || all["A part of it"].Parent == (chatctx.ID{}) {
		t.Fatal(parent, err)
	}
}

// TestPaginatedForks imports a fork that does not repeat the history before it, before and after the session that has it: it is below that one, a warning names
// that one, and a prompt of the same words is no copy.
func TestPaginatedForks(t *testing.T) {
	const dir = "testdata/formats/codex/paginated/"
	for _, files := range [][]string{{"a-fork.jsonl", "b-base.jsonl"}, {"b-base.jsonl", "a-fork.jsonl"}} {
		s := memoryStore(t)
		named := 0
		for _, file := range files {
			rep := importInto(t, s, dir+file)
			for _, w := range rep.Warnings {
				if strings.Contains(w.Text, `session "cx-8"`) && strings.HasSuffix(w.File, "a-fork.jsonl") {
					named++
				}
			}
			if rep.Duplicated != 0 {
				t.Errorf("%q: %d copies", files, rep.Duplicated)
			}
		}
		var base, fork *record.ContextInfo
		for info, err := range s.Contexts(context.Background(), record.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if info.Messages == 3 {
				base = info
			} else {
				fork = info
			}
		}
		if base == nil || fork == nil || fork.Parent != base.ID || base.Parent != (chatctx.ID{}) || named != 1 {
			t.Errorf("%q: %+v below %+v, %d warnings", files, fork, base, named)
		}
		storetest.Check(t, s)
	}
}

// TestLongerSession imports a Claude Code session that was continued: with a compaction and another branch, and nothing twice.
func TestLongerSession(t *testing.T) {
	s := memoryStore(t)
	whole, err := os.ReadFile("testdata/formats/claude-code/compaction.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(whole)), "\n")
	file := filepath.Join(t.TempDir(), "session.jsonl")
	total := 0
	for n := 1; n <= len(lines); n++ {
		if err := os.WriteFile(file, []byte(strings.Join(lines[:n], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		total += importInto(t, s, file).Messages
	}
	info := contextsOf(t, s)["plan the trip"]
	if info == nil || total != 5 || info.Messages != 5 || info.Branches != 1 {
		t.Fatalf("%d messages added, %+v", total, info)
	}
	c, err := s.Context(context.Background(), info.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Draft(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if d.Summary == nil || d.Summary.Text() != "They planned a trip by train." || len(d.Messages) != 2 {
		t.Errorf("the draft has the summary %v and %d messages", d.Summary, len(d.Messages))
	}
}

// TestSubAgentsAnswerCalls: the context of a sub-agent is the task that answered its call, whichever file comes first, and undo takes that back.
func TestSubAgentsAnswerCalls(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	line := func(id, parent, role, content string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","timestamp":"2026-01-02T03:04:05Z","message":{"role":%q,"content":%s}}`+"\n", role, id, parent, role, content)
	}
	call := line("u", "null", "user", `"look"`) + line("a", `"u"`, "assistant", `[{"type":"tool_use","id":"t1","name":"Read","input":{}},{"type":"tool_use","id":"t2","name":"Agent","input":{}}]`)
	result := line("r", `"a"`, "user", `[{"type":"tool_result","tool_use_id":"t2","content":"seen","is_error":true}]`)
	session := filepath.Join(dir, "s.jsonl")
	agent := write(t, filepath.Join(dir, "s", "subagents", "agent-x.jsonl"), strings.Replace(line("x", "null", "user", `"dig"`), `{`, `{"isSidechain":true,"agentId":"x",`, 1))
	write(t, filepath.Join(dir, "s", "subagents", "agent-x.meta.json"), `{"description":"Digs","toolUseId":"t2"}`)
	seen := func(s *chatctx.Store) string {
		t.Helper()
		all := contextsOf(t, s)
		if all["Digs"] == nil {
			return "no sub-agent"
		}
		c, err := s.Context(ctx, all["Digs"].ID.String())
		if err != nil {
			t.Fatal(err)
		}
		task, err := c.TaskInfo(ctx)
		if err != nil {
			return "no task"
		}
		return fmt.Sprint(task.State, " ", task.Index, " ", task.BranchName, " ", task.Reason, " ", task.Message != chatctx.ID{}, task.Summary != chatctx.ID{}, task.ParentGone, task.BranchGone)
	}
	for name, files := range map[string][]string{"session first": {session, agent}, "sub-agent first": {agent, session}} {
		write(t, session, call)
		s := memoryStore(t)
		importInto(t, s, files[0])
		importInto(t, s, files[1])
		if got, want := seen(s), "abandoned 2 main no result true false false false"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		write(t, session, call+result)
		importInto(t, s, session)
		want := "failed 2 main  true true false false"
		if got := seen(s); got != want {
			t.Errorf("%s, with the result: %s, want %s", name, got, want)
		}
		export := exported(t, s, ExportOptions{All: true})
		if importInto(t, s, files...); seen(s) != want {
			t.Errorf("%s, again: %s", name, seen(s))
		}
		again, _ := imported(t, export)
		compareLines(t, exported(t, again, ExportOptions{All: true}), export)
		if got := seen(again); got != want {
			t.Errorf("%s, exported and imported: %s, want %s", name, got, want)
		}
		for _, undo := range []string{contextsOf(t, s)["look"].ID.String(), "", "", ""} { // the result, what it changed of the task, what came second, what came first
			if _, err := s.Undo(ctx, undo, "", ""); err != nil {
				t.Fatalf("%s: %s: %v", name, seen(s), err)
			}
			storetest.Check(t, s)
		}
		if len(contextsOf(t, s)) > 0 {
			t.Errorf("%s, undone: %s", name, seen(s))
		}
	}
	sameInEveryOrder(t, []string{session, agent}, 4, 1)
}
