package exchange

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/storetest"
)

// counts returns the counts of a report, with those of each conversation but without its context and without what only a comparison with the store finds.
func counts(r *Report) Report {
	out := *r
	out.Warnings = slices.DeleteFunc(slices.Clone(r.Warnings), func(w Warning) bool {
		return strings.Contains(w.Text, "is here already; what the file says otherwise is not taken") || strings.Contains(w.Text, "follows the file") || strings.Contains(w.Text, "follow the file")
	})
	out.Imported = nil
	for _, i := range r.Imported {
		i.Context, i.Operations = "", nil
		out.Imported = append(out.Imported, i)
	}
	slices.SortFunc(out.Imported, func(a, b Imported) int { return strings.Compare(a.SourceID, b.SourceID) }) // known files come first
	return out
}

// importReading is importInto without the notes about known files.
func importReading(t *testing.T, s *chatctx.Store, paths ...string) *Report {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	st := &storing{ctx: ctx, store: s, run: intake.NewImportRun(base.Of(s), care.RemoveContext), work: make(chan func() error), done: make(chan struct{})}
	go st.storeAll(cancel)
	rep := &Report{}
	im := newImporter(ctx, Options{}, rep, st.add)
	im.known = st.unchanged
	if err := im.paths(paths); err != nil {
		t.Fatal(err)
	}
	if err := st.flush(); err != nil {
		t.Fatal(err)
	}
	close(st.work)
	<-st.done
	st.addTo(rep)
	return rep
}

// TestAgainAsRead imports each input a second time: the report is the same as when it is read.
func TestAgainAsRead(t *testing.T) {
	names, err := filepath.Glob("testdata/formats/*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			s := memoryStore(t)
			importInto(t, s, name)
			again, read := counts(importInto(t, s, name)), counts(importReading(t, s, name))
			if !reflect.DeepEqual(again, read) {
				t.Errorf("known\n%+v\nread\n%+v", again, read)
			}
		})
	}
}

// isKnown reports whether a file would be imported without being read.
func isKnown(t *testing.T, s *chatctx.Store, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := folder{root: filepath.Dir(path)}.get(info.Name())
	if err != nil {
		t.Fatal(err)
	}
	im := newImporter(context.Background(), Options{}, &Report{}, nil)
	im.knownFile = (&storing{ctx: context.Background(), store: s}).knownFile
	im.counted = func([]record.SourceLink, []record.Imported) error { return nil }
	known, err := im.again(f)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// TestKnownFiles changes a store so that a known file becomes unknown: it is read again, and what is missing comes back.
func TestKnownFiles(t *testing.T) {
	ctx := context.Background()
	text, err := os.ReadFile("testdata/formats/claude-code/compaction.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	file := filepath.Join(t.TempDir(), "session.jsonl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	only := func(s *chatctx.Store) string {
		for info, err := range s.Contexts(ctx, record.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			return info.ID.String()
		}
		t.Fatal("no context")
		return ""
	}
	undo := func(s *chatctx.Store, ref string) error {
		_, err := s.Undo(ctx, ref, "", "")
		return err
	}
	for name, c := range map[string]struct {
		do    func(s *chatctx.Store) error
		known bool
		added int // by the next import
	}{
		"nothing": {func(s *chatctx.Store) error { return nil }, true, 0},
		"undo":    {func(s *chatctx.Store) error { return undo(s, "") }, false, 5},
		"rm": {func(s *chatctx.Store) error {
			_, err := s.Trash(ctx, only(s))
			return err
		}, true, 0},
		"purge": {func(s *chatctx.Store) error {
			_, err := s.Maintenance().PurgeContext(ctx, only(s), chatctx.PurgeOptions{Forget: true})
			return err
		}, false, 5},
		"another version since": {func(s *chatctx.Store) error {
			write(strings.Join(lines, "") + `{"type":"user","uuid":"later","parentUuid":"c6","sessionId":"s","message":{"role":"user","content":"later"}}` + "\n")
			importInto(t, s, file)
			write(string(text))
			return nil
		}, false, 0},
		"another version and back": {func(s *chatctx.Store) error {
			write(strings.Join(lines, "") + `{"type":"user","uuid":"later","parentUuid":"c6","sessionId":"s","message":{"role":"user","content":"later"}}` + "\n")
			importInto(t, s, file)
			write(string(text))
			return undo(s, only(s))
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := memoryStore(t)
			write(string(text))
			importInto(t, s, file)
			if err := c.do(s); err != nil {
				t.Fatal(err)
			}
			if got := isKnown(t, s, file); got != c.known {
				t.Errorf("known: %v", got)
			}
			if rep := importInto(t, s, file); rep.Messages != c.added {
				t.Errorf("added %d messages, want %d", rep.Messages, c.added)
			}
			if name != "rm" && only(s) == "" || !isKnown(t, s, file) { // what is in the trash stays there
				t.Error("it is not known afterwards")
			}
			storetest.Check(t, s)
		})
	}
}
