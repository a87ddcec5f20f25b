package compare

import (
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func number(n int64) *int64 { return &n }

// twoAnswers is a conversation with two answers to one question; the second was given in two messages, with a call between them.
func twoAnswers(t *testing.T) *chatctx.ChatContext {
	t.Helper()
	s, err := chatctx.OpenMemory(chatctx.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.New(t.Context(), record.NewContext{Title: "Boats", Messages: []*chatctx.Message{pool.NewText(pool.User, "Name *it* <now>")}})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("main")
	b.Fork("other", chatctx.ForkOptions{Stay: true})
	first := pool.NewText(pool.Assistant, "A small\nfast bird")
	first.Created, first.Meta = 1_000_000, pool.Metadata{Model: "m1", InputTokens: number(10), OutputTokens: number(5), Completed: 3_500_000, FinishReason: "stop"}
	b.Append(first)
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	call := pool.NewText(pool.Assistant, "A small")
	call.Calls = []pool.Call{{ID: "c1", Tool: "look", Arguments: []byte(`{ "at": 1 }`), Status: pool.Approved, Execution: pool.Done}}
	call.Meta = pool.Metadata{Model: "m1", InputTokens: number(10), OutputTokens: number(2)}
	result := &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Text: "seen"}}
	last := pool.NewText(pool.Assistant, "loud bird")
	last.Meta = pool.Metadata{Model: "m2", InputTokens: number(20), OutputTokens: number(3), FinishReason: "content_filter"}
	if _, err := c.Append(t.Context(), "other", call, result, last); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFiguresAddUp(t *testing.T) {
	table, err := Of(t.Context(), twoAnswers(t), "")
	if err != nil {
		t.Fatal(err)
	}
	cells := table.Turns[0].Cells
	for i, want := range []string{"m1, 10 in, 5 out, 2.5 s, stop", "m2, 30 in, 5 out, refused"} {
		if got := strings.Join(cells[i].Figures.Words(), ", "); got != want {
			t.Errorf("the figures of column %d are %q, want %q", i, got, want)
		}
	}
	if want := "assistant: A small\n→ look({\"at\":1})\n\ntool: ← seen\n\nassistant: loud bird"; cells[1].Text != want {
		t.Errorf("the text is %q, want %q", cells[1].Text, want)
	}
	if f := figuresOf(nil, nil); f != nil || f.Words() != nil {
		t.Errorf("nobody's figures are %v", f)
	}
}

// TestPricesOfTheEnvironment: they count where no place sets any.
func TestPricesOfTheEnvironment(t *testing.T) {
	t.Setenv("CHATCTX_PRICES", `{"m1": {"input": 1, "output": 2}}`)
	table, err := Of(t.Context(), twoAnswers(t), "")
	if err != nil {
		t.Fatal(err)
	}
	f := table.Turns[0].Cells[0].Figures
	if f == nil || f.Cost == nil || *f.Cost != 10*1000+5*2000 {
		t.Errorf("the first answer's figures are %+v", f)
	}
}

func TestMarkedStretches(t *testing.T) {
	text := func(words ...string) *ComparedTurn {
		turn := &ComparedTurn{}
		for i, w := range words {
			c := Cell{Text: w}
			if i > 0 {
				c.Edits = Words(words[0], w)
			}
			turn.Cells = append(turn.Cells, c)
		}
		return turn
	}
	show := func(edits []Edit) string {
		var b strings.Builder
		for _, e := range edits {
			b.WriteString(map[Kind]string{Same: "=", Gone: "-", New: "+"}[e.Kind] + e.Text)
		}
		return b.String()
	}
	for _, c := range []struct {
		turn *ComparedTurn
		want []string
	}{
		{text("a b c", "a x c"), []string{"=a -b= c", "=a +x= c"}},
		{text("a b c", "a x c", "a b y"), []string{"=a b c", "=a +x= c", "=a b +y"}},
		{text("same", "same"), []string{"=same", "=same"}},
		{text("", "new"), []string{"", "+new"}},
	} {
		for i, want := range c.want {
			if got := show(c.turn.Marked(i)); got != want {
				t.Errorf("column %d is %q, want %q", i, got, want)
			}
		}
	}
}

func TestWrittenTablesEscape(t *testing.T) {
	table, err := Of(t.Context(), twoAnswers(t), "main", "main", "other")
	if err != nil {
		t.Fatal(err)
	}
	table.Turns[0].Cells[0] = Cell{Text: "x <b>", Messages: table.Turns[0].Cells[0].Messages}
	table.Turns[0].Cells[1] = Cell{Text: "y <i>\nz", Messages: table.Turns[0].Cells[1].Messages, Edits: []Edit{{Gone, "x <b>"}, {New, "y <i>\nz"}}}
	var md, page strings.Builder
	if err := table.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Name \*it\* \<now\>`, "~~x <b>~~", "**y <i>**\n**z**"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("the Markdown has no %q:\n%s", want, md.String())
		}
	}
	for _, want := range []string{"Name *it* &lt;now&gt;", "<del>x &lt;b&gt;</del>", "<ins>y &lt;i&gt;\nz</ins>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, page.String())
		}
	}
}
