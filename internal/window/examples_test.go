package window

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// updating: the flag is that of package wiretest, which tests here import.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

const (
	windowFile   = "../../docs/window.md"
	examplesFrom = "<!-- The examples are made by the program: go test ./internal/window -run TestExamples -update -->\n"
	examplesTo   = "<!-- The examples end. -->\n"
)

// TestExamples compares the examples of docs/window.md with the steps.
func TestExamples(t *testing.T) {
	b, err := os.ReadFile(windowFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(b), examplesFrom)
	have, after, ends := strings.Cut(rest, examplesTo)
	if !begins || !ends {
		t.Fatalf("%s has no place for the examples", windowFile)
	}
	want := "\n"
	for _, e := range examples {
		want += e.shown(t)
	}
	switch {
	case updating():
		if err := os.WriteFile(windowFile, []byte(before+examplesFrom+want+examplesTo+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case have != want:
		t.Errorf("the examples of %s are stale: go test ./internal/window -run TestExamples -update\nthey are\n%s\nand should be\n%s", windowFile, have, want)
	}
}

// example shows what one step does to a conversation: its input, and the resulting request.
type example struct {
	step   string
	says   string
	budget int
	set    func(o *Options)
	talk   func(w *writer)
}

// noted is a Completer that shortens notes as a model might.
type noted struct{}

func (noted) Name() string { return "test" }

func (noted) Complete(context.Context, enhancer.Prompt) (*pool.Message, error) {
	return pool.NewText(pool.Assistant, "/srv/orders-2031.csv broke the importer (ValueError: 'x1'); such rows go to skipped.csv, the schema stays. test_limit and test_reader fail, next: the reader."), nil
}

func (w *writer) call(tool, arguments, output string) {
	w.use(&pool.Result{Text: output})
	c := &w.d.Messages[len(w.d.Messages)-2].Calls[0]
	c.Tool, c.Arguments = tool, json.RawMessage(arguments)
}

// logged returns n lines of a log, where each third one only differs from earlier ones in its time.
func logged(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2031-04-02 03:%02d:%02d INFO batch %d written\n", i/60, i%60, i/3)
	}
	return b.String()
}

var examples = []example{
	{"exclude", "`chatctx exclude` marked the call's result; the call goes along.", 0, nil, func(w *writer) {
		w.user("How many orders came in?")
		w.call("count", `{"of":"orders"}`, "4711")
		w.d.Messages[len(w.d.Messages)-1].State = enhancer.Excluded
		w.assistant("4711 orders.")
	}},
	{"recall", "An earlier request pruned up to #3. There would be room by now; the bytes stay as they were sent.", 4000, nil, func(w *writer) {
		w.user("What does the log say?")
		w.call("read_file", `{"path":"a.log"}`, logged(40))
		w.assistant("All is written.")
		w.user("Thanks. Go on.")
		w.d.Session.PrunedTo = 3
	}},
	{"prune", "Outputs came to more than `prune.threshold` (here 300 tokens); the newest `prune.keep` (here 100) stay.", 4000, func(o *Options) { o.PruneThreshold, o.PruneKeep = 300, 100 }, func(w *writer) {
		w.user("Compare the logs.")
		w.call("read_file", `{"path":"a.log"}`, logged(40))
		w.call("read_file", `{"path":"b.log"}`, logged(3))
		w.assistant("b.log ends early.")
	}},
	{"tools", "The request is over its budget (here 3,000 tokens). A log of 5 KB is shortened, one of over 8 KB put aside.", 3000, nil, func(w *writer) {
		w.user("Compare the logs.")
		w.call("read_file", `{"path":"a.log"}`, logged(120))
		w.call("read_file", `{"path":"b.log"}`, logged(200))
		w.assistant("b.log goes on.")
		w.user("Until when?")
	}},
	{"history", "It is not outputs that take the room: one digest stands for the old turns.", 190, func(o *Options) { o.KeepBlocks, o.DigestTokens = 1, 110 }, older},
	{"squeeze", "`squeeze=true`, and with the digest the request is still over: a model makes that shorter.", 100, func(o *Options) { o.KeepBlocks, o.DigestTokens, o.Squeeze = 1, 110, true }, older},
	{"trim", "What is still over goes, the oldest turn first; here no digest stands for it (`steps.history=false`).", 190, func(o *Options) { o.StepsOff = []string{"history"} }, older},
	{"cache", "The provider is told to keep the request up to the last pruned output, and up to its end.", 4000, func(o *Options) { o.PruneThreshold, o.PruneKeep = 300, 100 }, func(w *writer) {
		w.user("Compare the logs.")
		w.call("read_file", `{"path":"a.log"}`, logged(40))
		w.call("read_file", `{"path":"b.log"}`, logged(3))
		w.assistant("b.log ends early.")
		w.user("Until when?")
	}},
}

// older adds a conversation whose words alone take the room.
func older(w *writer) {
	w.user("The importer breaks on /srv/orders-2031.csv. You must not change the schema of the table.")
	w.assistant("I had a look at how rows are read, and went through the file from its beginning. Most of its rows are as they always were.\n" +
		"ValueError: invalid literal for int() with base 10: 'x1'\n" +
		"One row has letters where a number should be. There are several ways to go on from here, and each of them has its price.\n" +
		"I decided to write such rows to skipped.csv instead of stopping.")
	w.user("Good. Run the tests.")
	w.assistant("I ran all of them, and looked at what they print. Nearly all is as it was before the change, which is what we hoped for.\n" +
		"Two tests still fail: test_limit and test_reader; the next step is the reader.")
	w.user("Go on with the reader.")
}

// shown returns the example as it appears in the docs.
func (e *example) shown(t *testing.T) string {
	w := newWriter(1)
	e.talk(w)
	o := options(e.budget)
	if e.set != nil {
		e.set(&o)
	}
	var before string
	look := enhancer.Func("look", func(_ context.Context, d *chatctx.Draft) error { before = e.talkOf(d); return nil })
	r, err := Standard(o, nil, noted{}, enhancer.Before(e.step, look)).Run(t.Context(), w.d)
	if err != nil {
		t.Fatalf("%s: %v", e.step, err)
	}
	after := e.talkOf(w.d)
	if before == after {
		t.Errorf("%s does nothing in its example", e.step)
	}
	step := r.Steps[slices.IndexFunc(r.Steps, func(s enhancer.Step) bool { return s.Name == e.step })]
	return fmt.Sprintf("**%s.** %s\n\n```text\nbefore, %d tokens\n%safter, %d tokens\n%s```\n\n", e.step, e.says, step.Before, before, step.After, after)
}

// talkOf returns the messages of a draft, one a line.
func (e *example) talkOf(d *chatctx.Draft) string {
	var b strings.Builder
	for _, m := range d.Messages {
		b.WriteString(said(m, e.step == "cache") + "\n")
	}
	return b.String()
}

// said returns a message on one line, or a digest on its lines; marks adds the cache's marks.
func said(m *chatctx.DraftMessage, marks bool) string {
	at, text := fmt.Sprintf("#%d", m.Position), m.Text()
	switch {
	case m.Kind == "digest":
		at, text = " ·", strings.ReplaceAll(text, "\n", "\n                ")
	case m.Result != nil:
		text = m.Result.Text
	}
	if m.State == enhancer.Excluded {
		text += "  (excluded)"
	}
	for _, c := range m.Calls {
		text = fmt.Sprintf("%s %s", c.Tool, c.Arguments)
	}
	if n := strings.Count(strings.TrimSpace(text), "\n"); m.Kind != "digest" && n > 0 {
		first, _, _ := strings.Cut(text, "\n")
		text = fmt.Sprintf("%.60s … %d bytes in %d lines", first, len(text), n+1)
	}
	if marks && m.Cache {
		text += "  ← cached up to here"
	}
	return strings.TrimRight(fmt.Sprintf("%s  %-10s  %s", at, m.Role, text), " ")
}
