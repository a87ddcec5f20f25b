package chatctx

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// finder gives what an expression finds.
func finder(expr string) func(string) ([]record.Secret, error) {
	re := regexp.MustCompile(expr)
	return func(text string) ([]record.Secret, error) {
		var out []record.Secret
		for _, at := range re.FindAllStringIndex(text, -1) {
			out = append(out, record.Secret{From: at[0], To: at[1], What: "test"})
		}
		return out, nil
	}
}

// TestRedactLeavesNoByte plants strings wherever one can stand, and looks for them afterwards.
func TestRedactLeavesNoByte(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "chats.db"))
	const secret = "planted-key"
	c, err := s.New(t.Context(), record.NewContext{Title: "with " + secret, System: "use " + secret, Settings: map[string]json.RawMessage{"app.x": json.RawMessage(`"` + secret + `"`)}})
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
	o := record.RedactOptions{Find: finder("planted-[a-z]+"), DryRun: true}
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
	if got := found(t, s, record.SearchOptions{Text: "planted"}); len(got) != 0 {
		t.Errorf("search finds %v", got)
	}
	if got := found(t, s, record.SearchOptions{Text: "redacted key"}); len(got) < 1 {
		t.Error("search does not find what stands there now")
	}
	again, err := s.Maintenance().Redact(t.Context(), o)
	if err != nil || len(again.Found) != 0 {
		t.Errorf("a second time found %v, %v", again, err)
	}
}

// TestRedactLeavesWhatIsSigned names parts with signatures and does not change them.
// TestUndoOfNewAfterRedact: once no journal has the operations on a context any more, an undo of the operation that made it does not remove the whole context.
func TestUndoOfNewAfterRedact(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "chats.db"))
	c := newContext(t, s, "a")
	appendTo(t, c, "", pool.NewText(pool.User, "a planted-key"))
	if _, err := s.Maintenance().Redact(t.Context(), record.RedactOptions{Find: finder("planted-[a-z]+")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), "", "", "s1"); !errors.Is(err, ErrConflict) {
		t.Errorf("undo of new gives %v", err)
	}
	if info, err := c.Info(t.Context()); err != nil || info.Trashed != 0 || info.Messages != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	appendTo(t, c, "", pool.NewText(pool.User, "more"))
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Errorf("undo of what came after it gives %v", err)
	}
}

func TestRedactLeavesWhatIsSigned(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "planted-a")
		m := &Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.ThinkingPart, Text: "planted-b", Signature: "sig"}, {Type: pool.TextPart, Text: "planted-c"}}}
		if _, err := c.Append(t.Context(), "", m); err != nil {
			t.Fatal(err)
		}
		done, err := s.Maintenance().Redact(t.Context(), record.RedactOptions{Find: finder("planted-[a-z]"), Context: c.ID.String()})
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

// plantText is what plantings plant, as a text, as JSON, and as a key.
const plantText = "planted-key"

var (
	plantJSON = json.RawMessage(`"` + plantText + `"`)
	plantKey  = map[string]json.RawMessage{"app." + plantText: json.RawMessage(`1`)}
)

// planting puts the secret in one kind of place. Where it stays, a redaction leaves it and says so.
type planting struct {
	name  string
	stays bool
	plant func(t *testing.T, s *Store, c *ChatContext)
}

// putting plants by an append of a copy, since the store gives an id to what it appends and takes the data of files out.
func putting(m *Message) func(*testing.T, *Store, *ChatContext) {
	return stepping(func(b *Batch) {
		own := *m
		own.Content, own.Calls = slices.Clone(m.Content), slices.Clone(m.Calls)
		b.Append(&own)
	})
}

// stepping plants by a step.
func stepping(fn func(*Batch)) func(*testing.T, *Store, *ChatContext) {
	return func(t *testing.T, _ *Store, c *ChatContext) {
		t.Helper()
		b := c.Begin("")
		fn(b)
		commit(t, b)
	}
}

func failOn(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func plantFile(media string) *Message {
	return &Message{Role: pool.User, Content: []pool.Part{{Type: pool.DocumentPart, MediaType: media, Data: []byte(`{"key":"` + plantText + `"}`)}}}
}

var plantings = []planting{
	{"document", false, putting(plantFile("text/plain"))},
	{"document of no known type", false, putting(plantFile("application/x-log"))},
	{"file stored before its message", false, func(t *testing.T, s *Store, c *ChatContext) {
		h, err := s.PutArtifact(t.Context(), []byte("has "+plantText), "text/plain")
		failOn(t, err)
		putting(&Message{Role: pool.User, Content: []pool.Part{{Type: pool.DocumentPart, MediaType: "text/plain", SHA256: h}}})(t, s, c)
	}},
	{"file that nothing refers to", false, func(t *testing.T, s *Store, _ *ChatContext) {
		_, err := s.PutArtifact(t.Context(), []byte("has "+plantText), "text/plain")
		failOn(t, err)
	}},
	{"large result of JSON", false, putting(&Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: json.RawMessage(`["` + strings.Repeat("x", 9000) + plantText + `"]`)}})},
	{"large part of a type not known here", false, putting(&Message{Role: pool.User, Content: []pool.Part{{Type: "odd", Raw: json.RawMessage(`{"type":"odd","a":"` + strings.Repeat("x", 9000) + " " + plantText + `"}`)}}})},
	{"large record as it came", false, putting(&Message{Role: pool.User, Source: &pool.Source{Format: "f", Raw: []byte(strings.Repeat("x", 9000) + " " + plantText)}})},
	{"branch", false, stepping(func(b *Batch) { b.Fork(plantText, ForkOptions{Stay: true}) })},
	{"two branches", false, stepping(func(b *Batch) {
		b.Fork(plantText, ForkOptions{Stay: true})
		b.Fork(plantText+"x", ForkOptions{Stay: true})
	})},
	{"removed branch", false, stepping(func(b *Batch) {
		b.Fork(plantText, ForkOptions{Stay: true})
		b.RemoveBranch(plantText)
	})},
	{"tag", false, stepping(func(b *Batch) { b.Tag(plantText, "@1"); b.Tag(plantText+"y", "@2") })},
	{"settings' key", false, stepping(func(b *Batch) { b.SetSettings(plantKey) })},
	{"context's settings' key", false, stepping(func(b *Batch) { b.SetContextSettings(plantKey) })},
	{"app data's key", false, stepping(func(b *Batch) { b.SetContextData(plantText, plantJSON) })},
	{"message's data", false, stepping(func(b *Batch) { b.SetMessageData("@1", plantText, plantJSON) })},
	{"title that was", false, func(t *testing.T, s *Store, c *ChatContext) {
		stepping(func(b *Batch) { b.SetTitle(plantText) })(t, s, c)
		stepping(func(b *Batch) { b.SetTitle("now another") })(t, s, c)
	}},
	{"prompt that was", false, stepping(func(b *Batch) { b.SetSystem(plantText); b.SetSystem("be kind") })},
	{"idempotency key", false, stepping(func(b *Batch) { b.AppendWith(AppendOptions{Key: plantText}, says("x")[0]) })},
	{"rewound message", false, stepping(func(b *Batch) { b.Append(says(plantText)[0]); b.Rewind("@2") })},
	{"digest", false, stepping(func(b *Batch) {
		b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 1, Digests: []branch.Digest{{From: 1, To: 1, Text: plantText}}, Data: map[string]json.RawMessage{"x": plantJSON}}})
	})},
	{"tool of the context", false, stepping(func(b *Batch) {
		b.PutTool(record.Tool{Name: "t", Description: plantText, Schema: json.RawMessage(`{"title":"` + plantText + `"}`)})
	})},
	{"tool of the store", false, func(t *testing.T, s *Store, _ *ChatContext) {
		_, err := s.PutTool(t.Context(), record.Tool{Name: "t", Description: plantText})
		failOn(t, err)
	}},
	{"tool that was", false, func(t *testing.T, s *Store, _ *ChatContext) {
		_, err := s.PutTool(t.Context(), record.Tool{Name: "t", Description: plantText})
		failOn(t, err)
		_, err = s.RemoveTool(t.Context(), "t")
		failOn(t, err)
	}},
	{"settings of the store", false, func(t *testing.T, s *Store, _ *ChatContext) {
		_, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"app.a": plantJSON, "app." + plantText: plantJSON})
		failOn(t, err)
	}},
	{"rule's reason", false, func(t *testing.T, s *Store, _ *ChatContext) {
		_, err := s.AddRule(t.Context(), record.Rule{Effect: "ask", Tool: "t", Reason: plantText})
		failOn(t, err)
	}},
	{"call's id", true, putting(&Message{Role: pool.Assistant, Calls: []pool.Call{{ID: plantText, Tool: "t", Arguments: json.RawMessage(`{}`)}}})},
	{"tool's name", true, putting(&Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c", Tool: plantText, Arguments: json.RawMessage(`{}`)}}})},
	{"model", true, putting(&Message{Role: pool.Assistant, Content: says("x")[0].Content, Meta: pool.Metadata{Model: plantText}})},
	{"imported id", true, func(t *testing.T, s *Store, _ *ChatContext) {
		in := &record.Incoming{Format: "test", Conversation: plantText, Title: "In", Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}, Nodes: []record.Node{{ID: plantText + "n", Message: says("x")[0]}}}
		_, err := s.Import(t.Context(), []*record.Incoming{in})
		failOn(t, err)
	}},
	{"command of a tool", true, stepping(func(b *Batch) { b.PutTool(record.Tool{Name: "t", Command: []string{"run", plantText}}) })},
}

// TestRedactLooksEverywhere plants a secret in each kind of place on its own. Where the plan says that all of it goes, no byte of it is left in the file; where
// something stays, the plan says so and the file has it.
func TestRedactLooksEverywhere(t *testing.T) {
	for _, place := range plantings {
		t.Run(place.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, filepath.Join(dir, "chats.db"))
			c := newContext(t, s, "one", ">two")
			place.plant(t, s, c)
			if planted(t, dir) == 0 {
				t.Fatal("nothing was planted")
			}
			o := record.RedactOptions{Find: finder("planted-key"), DryRun: true}
			plan, err := s.Maintenance().Redact(t.Context(), o)
			failOn(t, err)
			if len(plan.Found) == 0 {
				t.Fatal("the plan found nothing")
			}
			o.DryRun = false
			done, err := s.Maintenance().Redact(t.Context(), o)
			failOn(t, err)
			if !reflect.DeepEqual(plan.Found, done.Found) {
				t.Errorf("planned %+v\ndid %+v", plan.Found, done.Found)
			}
			left := 0
			for _, f := range done.Found {
				if f.Left != "" {
					left++
				}
			}
			if n := planted(t, dir); (n > 0) != place.stays || (left > 0) != place.stays {
				t.Errorf("%d are left in the file, and %d are named; found %+v", n, left, done.Found)
			}
			want(t, texts(t, c, "main")[:len("one >two")], "one >two")
		})
	}
}

// TestRedactFindsWhatIsEscaped redacts a string that JSON writes otherwise than it reads, and does not show a title with a secret in it.
func TestRedactFindsWhatIsEscaped(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "one")
	asks := &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c", Tool: "t", Arguments: json.RawMessage(`{"a":"pl\u0061nted-key \"x\"","b":"\\"}`)}}}
	if _, err := c.Append(t.Context(), "", asks); err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.SetTitle("a planted-key")
	commit(t, b)
	done, err := s.Maintenance().Redact(t.Context(), record.RedactOptions{Find: finder("planted-key")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Message(t.Context(), asks.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Calls[0].Arguments); got != `{"a":"[redacted] \"x\"","b":"\\"}` {
		t.Errorf("read %s", got)
	}
	for _, f := range done.Found {
		if f.Title != "a [redacted]" {
			t.Errorf("shows the title %q", f.Title)
		}
	}
}
