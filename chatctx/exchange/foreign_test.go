package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// idsOf returns the ids after a key in an export, each once.
func idsOf(export []byte, key string) []string {
	var out []string
	for _, m := range regexp.MustCompile(key+`":\{"id":"([^"]+)"`).FindAllSubmatch(export, -1) {
		if id := string(m[1]); !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// nameless returns an export with its ids numbered in their order, and without the originals of copies.
func nameless(export []byte) []byte {
	numbers := map[string]string{}
	export = regexp.MustCompile(`,"copied_from":"[^"]+"`).ReplaceAll(export, nil)
	return uuids.ReplaceAllFunc(export, func(id []byte) []byte {
		if numbers[string(id)] == "" {
			numbers[string(id)] = fmt.Sprint("#", len(numbers))
		}
		return []byte(numbers[string(id)])
	})
}

// TestForeignIDsComeAsCopies: a context with another id, but with messages of one that is here, gets messages of its own, and all references to them follow.
func TestForeignIDsComeAsCopies(t *testing.T) {
	s := richStore(t)
	first := exported(t, s, ExportOptions{All: true})
	edited := first
	for i, id := range idsOf(first, "context") {
		edited = bytes.ReplaceAll(edited, []byte(id), fmt.Appendf(nil, "01a22200-0000-7000-8000-%012d", i))
	}
	for range 2 {
		rep, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(edited)})
		if err != nil || rep.Outcome() != Complete {
			t.Fatalf("%v %+v", err, rep)
		}
		storetest.Check(t, s)
	}
	for i, id := range idsOf(first, "context") {
		was := exported(t, s, ExportOptions{Context: id})
		now := exported(t, s, ExportOptions{Context: fmt.Sprintf("01a22200-0000-7000-8000-%012d", i)})
		for _, m := range idsOf(was, "message") {
			if strings.Contains(string(now), `"id":"`+m) || !strings.Contains(string(now), `"copied_from":"`+m) {
				t.Errorf("message %s came in under its id, or names nothing that it is a copy of", m)
			}
		}
		compareLines(t, nameless(now), nameless(was))
	}
}

// TestRedactedStaysRedacted: an export from before a redaction does not bring the redacted text back.
func TestRedactedStaysRedacted(t *testing.T) {
	ctx := context.Background()
	s := richStore(t)
	before := exported(t, s, ExportOptions{All: true})
	secret := regexp.MustCompile("tw|output out|ls")
	find := func(text string) (out []record.Secret, err error) {
		for _, at := range secret.FindAllStringIndex(text, -1) {
			out = append(out, record.Secret{What: "word", From: at[0], To: at[1]})
		}
		return out, nil
	}
	if _, err := s.Maintenance().Redact(ctx, record.RedactOptions{Find: find}); err != nil {
		t.Fatal(err)
	}
	rep, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(before)})
	if err != nil || rep.Outcome() != Complete || rep.Messages != 0 {
		t.Fatalf("%v %+v", err, rep)
	}
	storetest.Check(t, s)
	if after := exported(t, s, ExportOptions{All: true}); bytes.Contains(after, []byte(`"two"`)) || bytes.Contains(after, []byte("output out")) {
		t.Errorf("what was redacted is back:\n%s", after)
	}
}

// TestMixedNativeFiles: whatever was edited in exports of related stores, and in whatever order they come, no message is in two contexts, and everything is
// imported or reported, once.
func TestMixedNativeFiles(t *testing.T) {
	for seed := range testkit.Seeds(t, 12) {
		r := rand.New(rand.NewPCG(seed, 11))
		dir := t.TempDir()
		var files []string
		var all [][]byte
		for i := range 2 + r.IntN(3) {
			s := memoryStore(t)
			if i > 0 && r.IntN(2) == 0 { // continues another one
				if _, err := Import(context.Background(), s, []string{"-"}, Options{Stdin: bytes.NewReader(all[r.IntN(i)])}); err != nil {
					t.Fatal(err)
				}
			}
			randomContext(t, s, r)
			all = append(all, exported(t, s, ExportOptions{All: true}))
		}
		for i, text := range all {
			for range r.IntN(6) {
				text = editedExport(r, text, all)
			}
			files = append(files, filepath.Join(dir, fmt.Sprint(i, ".jsonl")))
			if err := os.WriteFile(files[i], text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := memoryStore(t)
		for turn := range 3 {
			r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
			whole := 0 // in the first turn, the number of files that are imported alone: all their content is there
			if turn == 0 {
				whole = r.IntN(len(files) + 1)
			}
			for _, f := range files[:whole] {
				importMixed(t, s, turn, f)
			}
			if whole < len(files) {
				importMixed(t, s, turn, files[whole:]...)
			}
			storetest.Check(t, s)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// importMixed imports files and looks for their contents.
func importMixed(t *testing.T, s *chatctx.Store, turn int, files ...string) {
	t.Helper()
	rep, err := imports(t, s, files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if turn == 2 && (rep.Messages > 0 || rep.Branches > 0) {
		t.Errorf("once more the files brought %+v", rep)
	}
	here := map[string]map[string]bool{} // texts of each context
	for c, m := range nativeMessages(exported(t, s, ExportOptions{All: true})) {
		if here[c] == nil {
			here[c] = map[string]bool{}
		}
		here[c][m.Text()] = true
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for c, m := range nativeMessages(text) {
			if !here[c][m.Text()] && rep.SkippedContexts == 0 {
				t.Errorf("%q of context %s is neither there nor named: %+v", m.Text(), c, rep)
			}
		}
	}
}

// nativeMessages returns the messages of an export, each with its context.
func nativeMessages(export []byte) func(yield func(string, *chatctx.Message) bool) {
	return func(yield func(string, *chatctx.Message) bool) {
		at := ""
		for _, line := range bytes.Split(export, []byte("\n")) {
			var l struct {
				Context        struct{ ID string }
				Message, Loose *chatctx.Message
			}
			if json.Unmarshal(line, &l) != nil {
				continue
			}
			at = firstOf(l.Context.ID, at)
			for _, m := range []*chatctx.Message{l.Message, l.Loose} {
				if m != nil && m.Role != pool.System && !yield(at, m) {
					return
				}
			}
		}
	}
}

// editedExport changes something in an export, as a person or a script might.
func editedExport(r *rand.Rand, text []byte, all [][]byte) []byte {
	pick := func(key string, of []byte) string {
		ids := idsOf(of, key)
		if len(ids) == 0 {
			return pool.NewID().String()
		}
		return ids[r.IntN(len(ids))]
	}
	other := all[r.IntN(len(all))]
	switch r.IntN(7) {
	case 0, 1:
		return bytes.ReplaceAll(text, []byte(pick("context", text)), []byte(pool.NewID().String()))
	case 2:
		return bytes.ReplaceAll(text, []byte(pick("context", text)), []byte(pick("context", other)))
	case 3, 4:
		return bytes.ReplaceAll(text, []byte(pick("message", text)), []byte(pick("message", other)))
	case 5:
		return bytes.ReplaceAll(text, fmt.Appendf(nil, "text %d", r.IntN(40)), fmt.Appendf(nil, "text %d, edited", r.IntN(40)))
	default:
		lines := bytes.SplitAfter(text, []byte("\n"))
		i := 1 + r.IntN(len(lines)-1)
		return slices.Concat(bytes.Join(lines[:i], nil), lines[i-1], bytes.Join(lines[i:], nil))
	}
}

// TestAMessageTwiceOnABranch: messages after one that is twice on one branch are exported too.
func TestAMessageTwiceOnABranch(t *testing.T) {
	s := memoryStore(t)
	if _, err := s.New(context.Background(), record.NewContext{Title: "echo", Messages: []*chatctx.Message{pool.NewText(pool.User, "one"), pool.NewText(pool.Assistant, "two")}}); err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(exported(t, s, ExportOptions{All: true}), []byte("\n"))
	twice := slices.Insert(lines, 4, fmt.Appendf(nil, "{\"again\":[%q]}\n", idsOf(lines[3], "message")[0]))
	other, rep := imported(t, bytes.Join(twice, nil))
	if rep.Outcome() != Complete {
		t.Fatalf("%+v", rep)
	}
	compareLines(t, exported(t, other, ExportOptions{All: true}), bytes.Join(twice, nil))
	storetest.Check(t, other)
}
