package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// textRules are a program's rules for answers.
var textRules = []enhancer.Rule{
	{Name: "links", Apply: func(text string) string { return strings.ReplaceAll(text, "https://example.com/", "ex:") }},
	{Name: "asides", Apply: func(text string) string { return strings.ReplaceAll(text, "like, ", "") }},
}

func TestRulesOfAProgram(t *testing.T) {
	w := newWriter(1)
	w.user("go")
	w.use(&pool.Result{Text: strings.Repeat("row 1 | a\n", 3000)}, &pool.Result{Text: strings.Repeat("10:00:00 INFO ok\n", 300)})
	w.assistant(strings.Repeat("see https://example.com/a and, like, more. ", 200))
	for range 5 {
		w.user("next")
		w.assistant("ok")
	}
	w.d.Messages[1].Calls[0].Tool = "query"
	raw := fresh(w.d)
	o := options(2500)
	o.Rules = []enhancer.Rule{
		{Name: "never", Tool: "other", Apply: func(string) string { return "" }},
		{Name: "no rows", Kind: enhancer.JSON, Apply: func(string) string { return "" }},
		{Name: "rows", Tool: "query", Apply: func(text string) string { return text[:min(len(text), 100)] }},
	}
	o.TextRules, o.PruneThreshold = textRules, 1_000_000
	r, err := Standard(o, nil, nil).Run(t.Context(), w.d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Rules {
		names = append(names, fmt.Sprint(f.Name, " ", f.Times))
		if f.After >= f.Before {
			t.Errorf("%+v", f)
		}
	}
	if got, want := strings.Join(names, ", "), "rows 1, log 1, links 1, asides 1"; got != want {
		t.Errorf("the rules did %s, want %s", got, want)
	}
	if got := w.d.Messages[2].Result.Text; got != strings.Repeat("row 1 | a\n", 10) {
		t.Errorf("the tool's rule gave %q", got)
	}
	if got, want := w.d.Messages[4].Text(), strings.Repeat("see ex:a and, more. ", 200); got != want {
		t.Errorf("the answer is %.100q", got)
	}
	later := fresh(raw)
	later.Session = w.d.Session
	if _, err := Standard(o, nil, nil).Run(t.Context(), later); err != nil || sent(later) != sent(w.d) {
		t.Errorf("the next request is another one: %v", err)
	}
}

// shelf is a program's store of artifacts.
type shelf struct {
	kept   map[string]enhancer.Artifact
	broken error
}

func (s *shelf) Keep(_ context.Context, a enhancer.Artifact) error {
	if s.broken == nil {
		s.kept[a.Key] = a
	}
	return s.broken
}

func (s *shelf) List(context.Context) ([]enhancer.Artifact, error) { return nil, nil }

func (s *shelf) Find(_ context.Context, key string) (found []enhancer.Artifact, err error) {
	for k, a := range s.kept {
		if strings.HasPrefix(k, key) {
			found = append(found, a)
		}
	}
	return found, nil
}

func TestWhatIsPutAsideGoesToTheProgramsStore(t *testing.T) {
	text := strings.Repeat("a long line of words\n", 900)
	for _, broken := range []error{nil, errors.New("the disk is full")} {
		w := newWriter(1)
		w.user("go")
		w.use(&pool.Result{Parts: []pool.Part{{Type: pool.ImagePart, MediaType: "image/png", Data: []byte("picture")}}}, &pool.Result{Text: text})
		w.assistant("done")
		w.user("and now?")
		o := options(1500)
		o.Artifacts = &shelf{map[string]enhancer.Artifact{}, broken}
		win := o.Window(nil)
		if err := Outputs(win, o).Enhance(t.Context(), w.d); err != nil {
			t.Fatal(err)
		}
		got := w.d.Messages[3].Result.Text
		if broken != nil {
			if got != text || !slices.ContainsFunc(w.d.Notes, func(n chatctx.Note) bool { return strings.Contains(n.What, "the disk is full") }) {
				t.Errorf("an output that could not be kept is gone: %.80s, notes %v", got, w.d.Notes)
			}
			continue
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(got, pointerMark), " ")
		args, _ := json.Marshal(map[string]string{"key": key})
		back, failed, err := ReadArtifact(t.Context(), o.Artifacts, args)
		if err != nil || failed || !strings.HasSuffix(back, text[:len(back)-len("[page 1 of 4]\n")]) {
			t.Errorf("%v, %v: %.100q for %s", failed, err, back, key)
		}
		if n := len(o.Artifacts.(*shelf).kept); n != 2 {
			t.Errorf("%d artifacts were kept, want 2", n)
		}
	}
}

func TestAProgramsStepsStandWhereItSays(t *testing.T) {
	step := func(name string) enhancer.Enhancer {
		return enhancer.Func(name, func(context.Context, *chatctx.Draft) error { return nil })
	}
	p := Standard(options(1000), nil, nil, enhancer.After("cache", step("f")), step("a"), enhancer.Before("history", step("c")), enhancer.After("tools", step("b")), step("a2"), enhancer.IfOver(step("a3")), enhancer.Before("history", step("d")),
		enhancer.Before("exclude", step("0")))
	var names []string
	for _, e := range p.Enhancers {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "0 exclude a a2 a3 recall prune tools b c d history squeeze trim cache f"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r, err := p.Run(t.Context(), turns(2).d)
	if err != nil || !r.Steps[4].Skipped || r.Steps[3].Skipped {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := Standard(options(1000), nil, nil, enhancer.Before("hystory", step("x"))).Run(t.Context(), turns(2).d); err == nil || !strings.Contains(err.Error(), `"hystory"`) ||
		!strings.Contains(err.Error(), "history") {
		t.Errorf("a step that is not there: %v", err)
	}
}
