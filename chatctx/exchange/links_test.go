package exchange

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
)

// contextsOf returns a store's contexts by their titles.
func contextsOf(t *testing.T, s *chatctx.Store) map[string]*chatctx.ContextInfo {
	t.Helper()
	out := map[string]*chatctx.ContextInfo{}
	for info, err := range s.Contexts(context.Background(), chatctx.ListOptions{}) {
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
		for info, err := range s.Contexts(context.Background(), chatctx.ListOptions{}) {
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
