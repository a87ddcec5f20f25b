package chatctx

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// finder gives what an expression finds.
func finder(expr string) func(string) ([]Secret, error) {
	re := regexp.MustCompile(expr)
	return func(text string) ([]Secret, error) {
		var out []Secret
		for _, at := range re.FindAllStringIndex(text, -1) {
			out = append(out, Secret{From: at[0], To: at[1], What: "test"})
		}
		return out, nil
	}
}

// TestRedactLeavesNoByte plants strings wherever one can stand, and looks for them afterwards.
func TestRedactLeavesNoByte(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "chats.db"))
	const secret = "planted-key"
	c, err := s.New(t.Context(), NewContext{Title: "with " + secret, System: "use " + secret, Settings: map[string]json.RawMessage{"x": json.RawMessage(`"` + secret + `"`)}})
	if err != nil {
		t.Fatal(err)
	}
	asks := &Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.ThinkingPart, Text: "hm " + secret}}, Calls: []pool.Call{{ID: "c", Tool: "t", Arguments: json.RawMessage(`{"key":"` + secret + `"}`)}}}
	if _, err := c.Append(t.Context(), "", says("my key is "+secret, "nothing here")[0], asks, answers("c", strings.Repeat("the output has "+secret+"\n", 2000))); err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.SetTitle("other " + secret)
	commit(t, b)
	if err := s.Maintenance().Index(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o := RedactOptions{Find: finder("planted-[a-z]+"), DryRun: true}
	plan, err := s.Maintenance().Redact(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if planted(t, dir) == 0 || len(plan.Found) < 2005 {
		t.Fatalf("%d were found, and %d are there", len(plan.Found), planted(t, dir))
	}
	o.DryRun = false
	done, err := s.Maintenance().Redact(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Found) != len(plan.Found) {
		t.Errorf("planned %d, did %d", len(plan.Found), len(done.Found))
	}
	if n := planted(t, dir); n != 0 {
		t.Errorf("%d planted strings are still there", n)
	}
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	page, err := snap.Page(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if page[0].Text() != "my key is [redacted]" || string(page[1].Calls[0].Arguments) != `{"key":"[redacted]"}` || !strings.HasPrefix(page[2].Result.Text, "the output has [redacted]\n") {
		t.Errorf("read %q, %s, %.40q", page[0].Text(), page[1].Calls[0].Arguments, page[2].Result.Text)
	}
	if snap.Info.System != "use [redacted]" {
		t.Errorf("the prompt is %q", snap.Info.System)
	}
	if got := found(t, s, SearchOptions{Text: "planted"}); len(got) != 0 {
		t.Errorf("search finds %v", got)
	}
	if got := found(t, s, SearchOptions{Text: "redacted key"}); len(got) < 1 {
		t.Error("search does not find what stands there now")
	}
	again, err := s.Maintenance().Redact(t.Context(), o)
	if err != nil || len(again.Found) != 0 {
		t.Errorf("a second time found %v, %v", again, err)
	}
}

// TestRedactLeavesWhatIsSigned names parts with signatures and does not change them.
func TestRedactLeavesWhatIsSigned(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "planted-a")
		m := &Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.ThinkingPart, Text: "planted-b", Signature: "sig"}, {Type: pool.TextPart, Text: "planted-c"}}}
		if _, err := c.Append(t.Context(), "", m); err != nil {
			t.Fatal(err)
		}
		done, err := s.Maintenance().Redact(t.Context(), RedactOptions{Find: finder("planted-[a-z]"), Context: c.ID.String()})
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, f := range done.Found {
			if f.Left != "" {
				left++
				if f.Field != "thinking" || f.Message != m.ID {
					t.Errorf("%+v is left", f)
				}
			}
		}
		if left != 1 || len(done.Found) != 3 {
			t.Errorf("%d of %d are left", left, len(done.Found))
		}
		want(t, texts(t, c, ""), "[redacted] [redacted]")
	})
}
