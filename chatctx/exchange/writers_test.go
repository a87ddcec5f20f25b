package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// said returns what every requested format can hold of a message, to compare before and after.
func said(m *chatctx.Message, thinking bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", m.Role)
	for i := range m.Content {
		switch p := &m.Content[i]; p.Type {
		case pool.TextPart:
			fmt.Fprintf(&b, " text %q", p.Text)
		case pool.ThinkingPart:
			if thinking {
				fmt.Fprintf(&b, " thinking %q %q %q", p.Text, p.Signature, p.Redacted)
			}
		case pool.ImagePart:
			fmt.Fprintf(&b, " image %s %d %s", p.MediaType, max(int64(len(p.Data)), p.Size), p.URL)
		case pool.CallPart:
		default:
			fmt.Fprintf(&b, " %s %s", p.Type, p.Raw)
		}
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, " call %s %s %s %s", c.ID, c.Tool, argumentsOf(&c), c.Execution)
	}
	if r := m.Result; r != nil {
		fmt.Fprintf(&b, " result %s %q", r.RequestID, resultText(r))
	}
	return b.String()
}

// treeText describes the branches by their texts, the active one first.
func treeText(in *record.Incoming, thinking bool) string {
	var out []string
	for _, br := range in.Branches {
		var b strings.Builder
		for _, n := range pathTo(in, br.Leaf) {
			b.WriteString("  " + said(in.Nodes[n].Message, thinking) + "\n")
		}
		out = append(out, b.String())
	}
	slices.Sort(out[1:])
	return strings.Join(out, "or\n")
}

func text(role pool.Role, s string) *chatctx.Message { return pool.NewText(role, s) }

// writable returns a conversation with what the formats can hold.
func writable() *record.Incoming {
	call := &chatctx.Message{Role: pool.Assistant, Meta: pool.Metadata{Provider: "anthropic", Model: "claude-kite", FinishReason: "tool_use"}, Content: []pool.Part{
		{Type: pool.ThinkingPart, Text: "first the <b>wind</b>", Signature: "c2lnbmF0dXJl", Provider: "anthropic"},
		textPart("I look  "), {Type: pool.CallPart, CallID: "c-1"}, {Type: pool.CallPart, CallID: "c-2"}},
		Calls: []pool.Call{{ID: "c-1", Tool: "look", Arguments: []byte(`{"at":"sky"}`), Status: pool.Approved, Execution: pool.Done},
			{ID: "c-2", Tool: "feel", Status: pool.Approved, Execution: pool.Done}}}
	in := &record.Incoming{Format: "test", Conversation: "w", Title: "Writable", Nodes: []record.Node{
		{ID: "0", Parent: 0, Message: text(pool.System, "Be airy.")},
		{ID: "1", Parent: 1, Message: &chatctx.Message{Role: pool.User, Content: []pool.Part{textPart("See\r\n\u2028\x00é"), filePart("", []byte(exchangetest.OnePixel))}}},
		{ID: "2", Parent: 2, Message: call},
		{ID: "3", Parent: 3, Message: toolResult("c-1", "look", []pool.Part{textPart("blue")})},
		{ID: "4", Parent: 4, Message: toolResult("c-2", "feel", []pool.Part{textPart("mild")})},
		{ID: "5", Parent: 5, Message: text(pool.Assistant, "Fly it.")},
		{ID: "6", Parent: 6, Message: text(pool.User, "how high?")},
		{ID: "7", Parent: 7, Message: text(pool.Assistant, "high")},
		{ID: "8", Parent: 6, Message: text(pool.User, "how far?")},
		{ID: "9", Parent: 9, Message: text(pool.Assistant, "far")},
	}, Branches: []record.IncomingBranch{{Name: "main", Leaf: 8}, {Name: "other", Leaf: 10}}}
	return in
}

// TestWriters writes a conversation in each format and reads it back: what the format can hold comes back the same.
func TestWriters(t *testing.T) {
	tree := map[string]bool{claudeCodeName: true, piName: true}
	for _, format := range []string{openAIName, anthropicName, shareGPTName, claudeCodeName, piName} {
		for _, branch := range []string{"", "other"} {
			t.Run(format+" "+branch, func(t *testing.T) {
				s := memoryStore(t)
				want := writable()
				done, err := s.Import(context.Background(), []*record.Incoming{want})
				if err != nil {
					t.Fatal(err)
				}
				if branch == "other" {
					want.Branches = want.Branches[1:]
				} else if !tree[format] {
					want.Branches = want.Branches[:1]
				}
				file := filepath.Join(t.TempDir(), "out")
				if err := os.WriteFile(file, exported(t, s, ExportOptions{Format: format, Context: done[0].Context.String(), Branch: branch}), 0o600); err != nil {
					t.Fatal(err)
				}
				all, rep := readAll(t, Options{}, file)
				if len(all) != 1 || all[0].Format != format || len(rep.Warnings) > 0 || rep.Skipped+rep.Repaired+rep.Duplicated > 0 {
					t.Fatalf("%d conversations, %v", len(all), rep.Warnings)
				}
				got := all[0]
				if format == shareGPTName {
					if g, w := flatText(got), flatText(withoutTextsOfCalls(want)); g != w {
						t.Errorf("got\n%s\nwant\n%s", g, w)
					}
					return
				}
				thinking := format != openAIName
				if g, w := treeText(got, thinking), treeText(want, thinking); g != w {
					t.Errorf("got\n%s\nwant\n%s", g, w)
				}
				if tree[format] && got.Title != "Writable" {
					t.Errorf("the title %q", got.Title)
				}
			})
		}
	}
}

// withoutTextsOfCalls returns a conversation as ShareGPT's strict turns hold it.
func withoutTextsOfCalls(in *record.Incoming) *record.Incoming {
	for _, n := range in.Nodes {
		if len(n.Message.Calls) > 0 {
			n.Message.Content = nil
		}
	}
	return in
}

// TestShareGPTAlternates: turns alternate between what is asked and what is answered, several calls and their results are one turn each and come back, and what the format
// cannot hold is named.
func TestShareGPTAlternates(t *testing.T) {
	call := func(id, text string) *chatctx.Message {
		return &chatctx.Message{Role: pool.Assistant, Content: []pool.Part{textPart(text)}, Calls: []pool.Call{{ID: id + "1", Tool: "look", Status: pool.Approved, Execution: pool.Done}, {ID: id + "2", Tool: "feel", Status: pool.Approved, Execution: pool.Done}}}
	}
	results := func(id string) []*chatctx.Message {
		return []*chatctx.Message{toolResult(id+"1", "look", []pool.Part{textPart("4")}), toolResult(id+"2", "feel", []pool.Part{textPart("mild air")})}
	}
	picture := &chatctx.Message{Role: pool.User, Content: []pool.Part{textPart("see"), filePart("", []byte(exchangetest.OnePixel))}}
	for name, c := range map[string]struct {
		messages []*chatctx.Message
		turns    string
		leftOut  int
	}{
		"two calls":        {append([]*chatctx.Message{text(pool.User, "a"), call("c", "")}, append(results("c"), text(pool.Assistant, "b"))...), "human function_call observation gpt", 0},
		"text and calls":   {append([]*chatctx.Message{text(pool.User, "a"), call("c", "said")}, append(results("c"), text(pool.Assistant, "b"))...), "human function_call observation gpt", 1},
		"twice the same":   {[]*chatctx.Message{text(pool.User, "a"), text(pool.User, "b"), text(pool.Assistant, "c"), text(pool.Assistant, "d")}, "human gpt", 0},
		"a picture":        {[]*chatctx.Message{picture, text(pool.Assistant, "c")}, "human gpt", 1},
		"an answer first":  {[]*chatctx.Message{text(pool.Assistant, "c"), text(pool.User, "a")}, "gpt human", 1},
		"asked in between": {append([]*chatctx.Message{text(pool.User, "a"), call("c", "")}, append(results("c"), text(pool.User, "b"), text(pool.Assistant, "c"))...), "human function_call observation human gpt", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := memoryStore(t)
			made, err := s.New(t.Context(), record.NewContext{Title: "T"})
			if err != nil {
				t.Fatal(err)
			}
			b := made.Begin("main")
			b.Append(c.messages...)
			if _, err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			var left []string
			raw := exported(t, s, ExportOptions{Format: shareGPTName, Context: made.ID.String(), LeftOut: func(what string) { left = append(left, what) }})
			var rows []struct {
				Conversations []struct{ From, Value string }
			}
			if err := json.Unmarshal(raw, &rows); err != nil {
				t.Fatal(err)
			}
			var turns []string
			for _, turn := range rows[0].Conversations {
				turns = append(turns, turn.From)
			}
			if strings.Join(turns, " ") != c.turns || len(left) != c.leftOut {
				t.Errorf("%s, left out %q", raw, left)
			}
			file := filepath.Join(t.TempDir(), "rows.json")
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			back, _ := readAll(t, Options{}, file)
			got := flatText(back[0])
			for _, m := range c.messages {
				if m.Result != nil && !strings.Contains(got, m.Result.Text) || len(m.Calls) > 0 && strings.Count(got, "call ") != 2 {
					t.Errorf("read back as\n%s", got)
				}
			}
		})
	}
}

// flatText describes a path by its texts, calls and results alone: ShareGPT has a place for these.
func flatText(in *record.Incoming) string {
	var b strings.Builder
	for _, n := range pathTo(in, in.Branches[0].Leaf) {
		m := in.Nodes[n].Message
		if text := m.Text(); text != "" {
			fmt.Fprintf(&b, "%s %q\n", m.Role, text)
		}
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "call %s %s\n", c.Tool, argumentsOf(&c))
		}
		if m.Result != nil {
			fmt.Fprintf(&b, "result %q\n", m.Result.Text)
		}
	}
	return b.String()
}
