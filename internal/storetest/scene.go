package storetest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// A Scene is a store in memory with a clock of its own, whose ids have names that are the same in each run: so what is done to it, and which records that
// changes, can stand in a file.
type Scene struct {
	T     testing.TB
	Store *chatctx.Store
	C     *chatctx.ChatContext // the first conversation
	Now   time.Time
	names map[string]string // of ids, in hex and as they are printed
	count map[string]int    // ids by their kind
	was   map[string]string // the records at the last look
	out   strings.Builder
}

// NewScene opens a store for the end of which o may say more.
func NewScene(t testing.TB, o chatctx.Options) *Scene {
	s := &Scene{T: t, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), names: map[string]string{}, count: map[string]int{}, was: map[string]string{}}
	o.Program, o.By, o.Clock = "test", "ann", func() time.Time { return s.Now }
	s.Store = Open(t, "", o)
	return s
}

// Must fails the test for an error.
func (s *Scene) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Do does something a second later. It notes the result or the error, and the records that changed.
func (s *Scene) Do(what string, do func() (any, error)) {
	s.T.Helper()
	s.Now = s.Now.Add(time.Second)
	result, err := do()
	s.look()
	fmt.Fprintf(&s.out, "\n## %s\n", what)
	if err != nil {
		fmt.Fprintln(&s.out, s.Plain(err.Error()))
	} else if result != nil {
		fmt.Fprintln(&s.out, s.JSON(result))
	}
	now := s.records()
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was, had := s.was[key]; !had {
			fmt.Fprintf(&s.out, "+ %s %s\n", s.Plain(key), s.Plain(now[key]))
		} else if was != now[key] {
			fmt.Fprintf(&s.out, "~ %s %s\n", s.Plain(key), s.Plain(now[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.was)) {
		if _, has := now[key]; !has {
			fmt.Fprintf(&s.out, "- %s\n", s.Plain(key))
		}
	}
	s.was = now
}

// Text returns what was noted.
func (s *Scene) Text() string { return s.out.String() }

// JSON returns a value with ids by their names.
func (s *Scene) JSON(v any) string {
	s.T.Helper()
	raw, err := json.Marshal(v)
	s.Must(err)
	return s.Plain(string(raw))
}

// Plain returns a text with ids by their names.
func (s *Scene) Plain(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		n, name := 1, text[:1]
		for _, long := range []int{8, 32, 36} {
			if is, has := s.names[text[:min(long, len(text))]]; has && len(text) >= long {
				n, name = long, is
			}
		}
		out.WriteString(name)
		text = text[n:]
	}
	return process.ReplaceAllString(otherID.ReplaceAllString(out.String(), "ID"), "$1 N")
}

// otherID is an id that has no name, such as a claim's.
var (
	process = regexp.MustCompile(`(process|the claim) [0-9a-f]+`)
	otherID = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?7[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}`)
)

// Name names an id.
func (s *Scene) Name(id pool.ID, kind string) {
	text := hex.EncodeToString(id[:])
	if _, has := s.names[text]; has || id == (pool.ID{}) {
		return
	}
	s.count[kind]++
	s.names[text] = fmt.Sprintf("%s%d", kind, s.count[kind])
	s.names[id.String()], s.names[record.Short(id)] = s.names[text], s.names[text]
}

// look names what is new. Ids are in the order in which they were made.
func (s *Scene) look() {
	s.T.Helper()
	kinds := map[pool.ID]string{}
	s.Must(base.Of(s.Store).DB.View(s.T.Context(), func(tx kv.Tx) error {
		for bucket, kind := range map[string]string{base.ContextBucket: "C", branchstore.Bucket: "B", poolstore.Bucket: "M", base.RuleBucket: "R"} {
			err := tx.Scan(bucket, kv.Range{}, func(key, _ []byte) error {
				if len(key) >= 16 {
					kinds[pool.ID(key[len(key)-16:])] = kind
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	for _, id := range slices.SortedFunc(maps.Keys(kinds), func(a, b pool.ID) int { return slices.Compare(a[:], b[:]) }) {
		s.Name(id, kinds[id])
	}
}

// looked are the buckets of the records. What depends on the process is left out.
var looked = []string{base.ContextBucket, base.RecentBucket, base.LabelBucket, base.OpenBucket, base.CallBucket, base.UnansweredBucket, base.CallIDBucket, base.TagBucket,
	base.MarkBucket, base.KeyBucket, base.RuleBucket, base.ToolBucket, base.QueuedBucket, base.OperationBucket, branchstore.Bucket, branchstore.NameBucket,
	branchstore.EntryBucket, branchstore.PromptBucket, poolstore.Bucket}

// records returns the records of the store.
func (s *Scene) records() map[string]string {
	s.T.Helper()
	all := map[string]string{}
	s.Must(base.Of(s.Store).DB.View(s.T.Context(), func(tx kv.Tx) error {
		for _, bucket := range looked {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				all[fmt.Sprintf("%s %x", bucket, key)] = Shown(value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return all
}

// Shown returns a record as a text, without its checksum, which depends on ids.
func Shown(value []byte) string {
	raw := value
	if of, err := stored.Unseal(value); err == nil {
		raw = of
	}
	text, err := cbor.Diagnose(raw)
	if err != nil || !strings.HasPrefix(text, "{") {
		return hex.EncodeToString(value)
	}
	if at := strings.LastIndex(text, ", 255: "); at > 0 {
		text = text[:at] + "}"
	}
	return nested.ReplaceAllStringFunc(text, func(of string) string {
		raw, err := hex.DecodeString(of[2 : len(of)-1])
		if err == nil && json.Valid(raw) {
			return string(raw)
		}
		if in := Shown(raw); err == nil && strings.HasPrefix(in, "{") {
			return in
		}
		return of
	})
}

// nested is a record within a record.
var nested = regexp.MustCompile(`h'[0-9a-f]{34,}'`)

// Golden compares a text with a file, or writes it.
func Golden(t *testing.T, golden, text string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(raw), "\n"), strings.Split(text, "\n")
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("%s, line %d:\nwant %s\ngot  %s", golden, i+1, want[i], got[i])
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%s has %d lines, and there are %d", golden, len(want), len(got))
	}
}

// A Story is what is done to a store, step by step.
type Story struct {
	What  string
	Steps []Step
}

// A Step is one of a story.
type Step struct {
	What string
	Do   func(s *Scene) (any, error)
}

// Batch is a step that commits a batch on a branch of the first conversation.
func Batch(what, on string, steps func(b *chatctx.Batch)) Step {
	return Step{what, func(s *Scene) (any, error) {
		b := s.C.Begin(on)
		steps(b)
		return b.Commit(s.T.Context())
	}}
}

// Tell tells stories, each in a store of its own, and compares what happens with a file.
func Tell(t *testing.T, golden string, update bool, o func() chatctx.Options, stories []Story) {
	t.Helper()
	local := time.Local
	time.Local = time.UTC // some messages have times of the day
	t.Cleanup(func() { time.Local = local })
	var out strings.Builder
	for _, story := range stories {
		s := NewScene(t, o())
		for _, step := range story.Steps {
			s.Do(step.What, func() (any, error) { return step.Do(s) })
		}
		fmt.Fprintf(&out, "\n# %s\n%s", story.What, s.Text())
	}
	Golden(t, golden, out.String(), update)
}
