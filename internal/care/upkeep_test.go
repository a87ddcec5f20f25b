package care_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// upkeep is what removes records of a store, or changes them, for good.
var upkeep = []struct {
	what string
	do   func(p *planting, s *base.Store) (any, error)
}{
	{"gc of what is old, and nothing is", func(p *planting, s *base.Store) (any, error) {
		return care.GC(p.t.Context(), s, record.GCOptions{OlderThan: 3 * time.Hour})
	}},
	{"gc of everything before the last hour", func(p *planting, s *base.Store) (any, error) {
		return care.GC(p.t.Context(), s, record.GCOptions{OlderThan: time.Hour})
	}},
	{"gc that keeps three operations", func(p *planting, s *base.Store) (any, error) {
		return care.GC(p.t.Context(), s, record.GCOptions{OlderThan: time.Hour, KeepOperations: 3})
	}},
	{"purge of a conversation", func(p *planting, s *base.Store) (any, error) {
		return care.PurgeContext(p.t.Context(), s, p.c.String(), false)
	}},
	{"purge of a conversation that leaves no marks", func(p *planting, s *base.Store) (any, error) {
		return care.PurgeContext(p.t.Context(), s, p.c.String(), true)
	}},
	{"purge of a sub-context", func(p *planting, s *base.Store) (any, error) {
		return care.PurgeContext(p.t.Context(), s, p.task.String(), false)
	}},
	{"purge of a branch", func(p *planting, s *base.Store) (any, error) {
		return care.PurgeBranch(p.t.Context(), s, p.c.String(), "side", false)
	}},
	{"purge of the first message", func(p *planting, s *base.Store) (any, error) {
		return care.PurgeMessages(p.t.Context(), s, p.c.String(), "main", []record.Ref{"@1"}, false)
	}},
	{"purge of a message with calls, and of a result", func(p *planting, s *base.Store) (any, error) {
		return care.PurgeMessages(p.t.Context(), s, p.c.String(), "main", []record.Ref{"@4", "@5"}, false)
	}},
	{"redaction of everything", func(p *planting, s *base.Store) (any, error) {
		return care.Redact(p.t.Context(), s, record.RedactOptions{Find: findWords("one", "result", "brief", "ask", "work", "First", "here", "first")})
	}},
	{"redaction of one conversation", func(p *planting, s *base.Store) (any, error) {
		return care.Redact(p.t.Context(), s, record.RedactOptions{Context: p.task.String(), Find: findWords("do it", "task")})
	}},
	{"sizes of the conversations", func(p *planting, s *base.Store) (any, error) { return care.SpaceByContext(p.t.Context(), s) }},
	{"counts", func(p *planting, s *base.Store) (any, error) { return care.Measure(p.t.Context(), s) }},
}

// findWords returns a function that finds words as secrets.
func findWords(words ...string) func(string) ([]record.Secret, error) {
	return func(text string) (found []record.Secret, err error) {
		for at := 0; at < len(text); {
			i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(text[at:], w) })
			if i < 0 || at > 0 && text[at-1] != ' ' {
				at++
				continue
			}
			found = append(found, record.Secret{From: at, To: at + len(words[i]), What: "word"})
			at += len(words[i])
		}
		return found, nil
	}
}

// dump returns the records of a store but for the search index.
func dump(t *testing.T, s *base.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := s.DB.View(t.Context(), func(tx kv.Tx) error {
		for _, bucket := range append([]string{base.MetaBucket, base.ContextBucket, base.RecentBucket, base.LabelBucket, base.OpenBucket, base.SourceBucket, poolstore.ArtifactBucket, base.GoneBucket, base.LooseBucket}, care.OwnBuckets...) {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				all[fmt.Sprintf("%s %x", bucket, key)] = string(value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// differences lists the keys that are gone, new or changed.
func (p *planting) differences(before, after map[string]string) (lines []string) {
	for key, value := range before {
		if now, has := after[key]; !has {
			lines = append(lines, p.plain("-", 0, key, ""))
		} else if now != value {
			value := ""
			if bucket, _, _ := strings.Cut(key, " "); bucket == base.ContextBucket || bucket == branchstore.Bucket {
				value = storetest.Shown([]byte(now))
			}
			lines = append(lines, p.plain("~", 0, key, value))
		}
	}
	for key := range after {
		if _, had := before[key]; !had {
			lines = append(lines, p.plain("+", 0, key, ""))
		}
	}
	for i, line := range lines {
		if strings.Contains(line, " gone ") || strings.Contains(line, " meta ") && strings.HasPrefix(line, "+") { // made of hashes with a key of the store
			line = line[:strings.Index(line, " 0 ")+8]
		}
		lines[i] = strings.TrimSuffix(strings.Replace(line, " 0 ", " ", 1), ": ")
	}
	slices.Sort(lines)
	return lines
}

// TestUpkeep does each in a store of its own, after two hours in which a branch was removed, history was cut and a conversation came into the trash: which
// records go and change stands in a file, a dry run says the same, and a check finds nothing then.
func TestUpkeep(t *testing.T) {
	const golden = "testdata/upkeep.txt"
	var out strings.Builder
	for _, u := range upkeep {
		fmt.Fprintf(&out, "\n# %s\n", u.what)
		t.Run(u.what, func(t *testing.T) {
			s, p := newPlanting(t, "")
			p.age(s)
			at := base.Of(s)
			before := dump(t, at)
			var planned any
			if err := care.Trial(at, func(trial *base.Store) (err error) { planned, err = u.do(p, trial); return err }); err != nil {
				t.Fatal(err)
			}
			if !mapsEqual(before, dump(t, at)) {
				t.Error("the trial changed the store")
			}
			result, err := u.do(p, at)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := p.json(planned), p.json(result); a != b {
				t.Errorf("the trial says  %s\nit was done as %s", a, b)
			}
			fmt.Fprintln(&out, p.json(result))
			for _, line := range p.differences(before, dump(t, at)) {
				fmt.Fprintln(&out, line)
			}
		})
	}
	storetest.Golden(t, golden, out.String(), *update)
}

// age makes something of each kind that upkeep removes, and lets two hours pass.
func (p *planting) age(s *chatctx.Store) {
	p.t.Helper()
	c, err := s.Context(p.t.Context(), p.c.String())
	p.must(err)
	_, err = c.Append(p.t.Context(), "side", pool.NewText(pool.User, "left behind"), pool.NewText(pool.Assistant, "lost"))
	p.must(err)
	b := c.Begin("side")
	b.Rewind("@-2")
	_, err = b.Commit(p.t.Context())
	p.must(err)
	old, err := s.New(p.t.Context(), record.NewContext{Title: "Old", System: "be old", Messages: []*pool.Message{pool.NewText(pool.User, "old"), pool.NewText(pool.Assistant, "older")}})
	p.must(err)
	p.names[old.ID.String()], p.names[fmt.Sprintf("%x", old.ID[:])] = "OLD", "OLD"
	_, err = s.Trash(p.t.Context(), old.ID.String())
	p.must(err)
	_, err = s.Use(p.t.Context(), p.c.String())
	p.must(err)
	*p.now = p.now.Add(2 * time.Hour)
	_, err = c.Append(p.t.Context(), "main", pool.NewText(pool.User, "six"))
	p.must(err)
}

func (p *planting) json(v any) string {
	p.t.Helper()
	raw, err := json.Marshal(v)
	p.must(err)
	return strings.TrimSuffix(strings.TrimPrefix(p.plain("", 0, "", string(raw)), " 0 : "), "\n")
}

func mapsEqual(a, b map[string]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// TestFilesOfAStore backs a store up, restores it, copies it and salvages it: each has the same records.
func TestFilesOfAStore(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	path := func(name string) string { return filepath.Join(dir, name) }
	s, _ := newPlanting(t, path("s.db"))
	at := base.Of(s)
	want := dump(t, at)
	same := func(what, file string, but ...string) {
		t.Helper()
		other := storetest.Open(t, file, chatctx.Options{Program: "test"})
		got := dump(t, base.Of(other))
		for key, value := range want {
			if bucket, _, _ := strings.Cut(key, " "); !slices.Contains(but, bucket) && got[key] != value {
				t.Errorf("%s: %s is otherwise", what, key)
			}
		}
		for key := range got {
			if bucket, _, _ := strings.Cut(key, " "); want[key] == "" && !slices.Contains(but, bucket) && got[key] != "" {
				t.Errorf("%s: %s is more", what, key)
			}
		}
	}
	var backup bytes.Buffer
	if err := care.Backup(t.Context(), at, &backup); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("backup.db"), backup.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	same("backup", path("backup.db"))
	if _, err := care.Restore(t.Context(), path("restored.db"), path("backup.db")); err != nil {
		t.Fatal(err)
	}
	same("restored", path("restored.db"))
	if err := care.Vacuum(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if !mapsEqual(want, dump(t, at)) {
		t.Error("vacuum changed records")
	}
	copied, err := care.CopyStore(t.Context(), path("backup.db"), path("copy.db"), record.OpenOptions{Program: "test"}, record.CopyOptions{Keep: true})
	if err != nil || copied == nil {
		t.Fatal(err)
	}
	same("copy", path("copy.db"), base.MetaBucket, base.ClaimBucket, base.CallBucket, base.RequestBucket)
	got, err := care.Salvage(t.Context(), path("backup.db"), path("salvaged.db"), record.OpenOptions{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := care.Measure(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if got.Messages != stats.Messages || got.Contexts != stats.Contexts || got.Artifacts != stats.Artifacts {
		t.Errorf("salvaged %+v of %+v", got, stats)
	}
	storetest.Open(t, path("salvaged.db"), chatctx.Options{Program: "test"})
	for what, err := range map[string]error{
		"a backup over a store":    second(care.Restore(t.Context(), path("restored.db"), path("missing.db"))),
		"a salvage over a store":   second(care.Salvage(t.Context(), path("backup.db"), path("copy.db"), record.OpenOptions{})),
		"a copy over a store":      second(care.CopyStore(t.Context(), path("backup.db"), path("restored.db"), record.OpenOptions{}, record.CopyOptions{Keep: true})),
		"a vacuum of a mere store": care.Vacuum(t.Context(), base.Of(storetest.Open(t, "", chatctx.Options{Program: "test"}))),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }
