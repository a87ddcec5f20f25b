package glossary_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"example.org/outside/acme/acmetest"
	"example.org/outside/glossary"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/enhancer/standard"
	"github.com/chatctx/chatctx/pool"
)

var meanings = map[string]string{"ketch": "a boat with two masts", "luff": "to turn into the wind"}

func TestGlossary(t *testing.T) {
	server := acmetest.New(t, `{"id":"r1","text":"A ketch.","end":"done"}`)
	c := acmetest.Talk(t, chatctx.Options{})
	b := c.Begin("")
	b.SetPrompt("Be brief.")
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tt := &turn.Turn{Context: c, Getenv: server.Getenv, Enhancers: []enhancer.Enhancer{enhancer.Before("history", glossary.New(meanings))}}
	out, err := tt.Send(t.Context(), pool.NewText(pool.User, "Is a ketch in?"))
	if err != nil {
		t.Fatal(err)
	}
	body := server.Bodies()[0]
	if !strings.Contains(body, `Be brief.\nketch: a boat with two masts`) || strings.Contains(body, "luff") {
		t.Errorf("Acme got %s", body)
	}
	for _, s := range out.Request.Report.Steps {
		if s.Name == glossary.Name && len(s.Notes) == 1 && s.Notes[0].What == "explains ketch" {
			return
		}
	}
	t.Errorf("the steps are %+v", out.Request.Report.Steps)
}

func TestASecondRunChangesNothing(t *testing.T) {
	c := acmetest.Talk(t, chatctx.Options{})
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "Does the ketch luff?")); err != nil {
		t.Fatal(err)
	}
	d, err := c.Draft(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	g := glossary.New(meanings)
	r, err := standard.Fit(t.Context(), c, d, enhancer.Options{}, nil, g, enhancer.After("cache", g))
	if err != nil {
		t.Fatal(err)
	}
	notes := map[int]int{} // of each run
	for i, s := range r.Steps {
		if s.Name == glossary.Name {
			notes[i] = len(s.Notes)
		}
	}
	if !maps.Equal(notes, map[int]int{1: 2, len(r.Steps) - 1: 0}) {
		t.Errorf("the runs explained %v words", notes)
	}
}

// TestAStepThatFails: the request is not sent, and the error names the step.
func TestAStepThatFails(t *testing.T) {
	server := acmetest.New(t)
	fails := enhancer.Func("fails", func(context.Context, *chatctx.Draft) error { return errors.New("no ink") })
	tt := &turn.Turn{Context: acmetest.Talk(t, chatctx.Options{}), Getenv: server.Getenv, Enhancers: []enhancer.Enhancer{fails}}
	if _, err := tt.Send(t.Context(), pool.NewText(pool.User, "hi")); err == nil || !strings.Contains(err.Error(), "fails: no ink") || len(server.Bodies()) > 0 {
		t.Errorf("%v, and %d requests", err, len(server.Bodies()))
	}
}
