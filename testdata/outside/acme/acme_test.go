package acme_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.org/outside/acme"
	"example.org/outside/acme/acmetest"
	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/pool"
)

func TestAdapter(t *testing.T) {
	s := adaptertest.Of(acme.Name, acme.Adapter, "acme-1", "acme-mini")
	s.Judge, s.TextOnly = acmetest.Judge, true
	adaptertest.Run(t, s)
}

// TestRegistered: Acme is a provider like those of the module, by its name and by its models' names.
func TestRegistered(t *testing.T) {
	if got := adapter.ProviderOf("Acme-2"); got != acme.Name {
		t.Errorf("the model acme-2 is of %q", got)
	}
	if _, err := adapter.ServiceOf("acne"); !errors.Is(err, adapter.ErrProvider) || !strings.Contains(err.Error(), "acme") {
		t.Errorf("no provider acne: %v", err)
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct{ what, answer, text, cause string }{
		{what: "streamed", answer: "{\"id\":\"r1\",\"model\":\"acme-1\"}\n{\"text\":\"Two \"}\n{\"text\":\"boats.\"}\n{\"end\":\"done\",\"read\":9,\"wrote\":2}", text: "Two boats."},
		{what: "in one piece", answer: `whole {"id":"r1","model":"acme-1","text":"Two boats.","end":"done","read":9,"wrote":2}`, text: "Two boats."},
		{what: "broken off", answer: "{\"id\":\"r1\"}\n{\"text\":\"Two \"}", text: "Two ", cause: "before the reply's end"},
		{what: "an error in the stream", answer: "{\"text\":\"Two \"}\n{\"error\":{\"message\":\"the harbour is closed\"}}", text: "Two ", cause: "the harbour is closed"},
		{what: "refused", answer: "429 slow down", cause: "slow down"},
	} {
		t.Run(c.what, func(t *testing.T) {
			server := acmetest.New(t, c.answer)
			shown := ""
			tt := &turn.Turn{Context: acmetest.Talk(t, chatctx.Options{}), Getenv: server.Getenv, Show: func(e turn.Event) {
				if e.Delta != nil {
					shown += e.Delta.Text
				}
			}}
			out, err := tt.Send(t.Context(), pool.NewText(pool.User, "What is in?"))
			var failed *wire.Error
			if c.cause == "" && err != nil || c.cause != "" && (!errors.As(err, &failed) || !strings.Contains(err.Error(), c.cause)) {
				t.Fatalf("the error is %v", err)
			}
			m := out.Reply()
			if c.text == "" {
				if m != nil || len(out.Asked) != 1 {
					t.Errorf("there is the reply %+v, and %d questions", m, len(out.Asked))
				}
				return
			}
			if m == nil || m.Text() != c.text || shown != c.text || m.Unfinished != (c.cause != "") || m.Meta.Provider != acme.Name {
				t.Errorf("the reply is %+v, and %q was shown", m, shown)
			}
			if c.cause == "" && (m.Meta.Model != "acme-1" || *m.Meta.InputTokens != 9 || *m.Meta.OutputTokens != 2 || m.Meta.FinishReason != "done") {
				t.Errorf("its figures are %+v", m.Meta)
			}
		})
	}
}

// TestCalls: a reply with calls is stored, the calls run, and Acme is asked again, with their results. Acme knows the tool by another name.
func TestCalls(t *testing.T) {
	server := acmetest.New(t, `{"id":"r1","model":"acme-1","calls":[{"id":"c1","tool":"look_out_5e1f3f4a","with":{"at":"sea"}}],"end":"calls"}`, `{"id":"r2","text":"A gull.","end":"done"}`)
	c := acmetest.Talk(t, chatctx.Options{Judge: approval.Rules{}})
	b := c.Begin("")
	b.PutTool(record.Tool{Name: "look.out"})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := &approval.Executor{Context: c, Allowed: map[string]bool{"look.out": true}, Functions: map[string]approval.Function{
		"look.out": func(_ context.Context, in approval.Invocation) (pool.Result, error) {
			return pool.Result{Text: "a gull at " + string(in.Arguments)}, nil
		},
	}}
	defer runs.Close()
	tt := &turn.Turn{Context: c, Getenv: server.Getenv, Calls: runs.Calls}
	out, err := tt.Send(t.Context(), pool.NewText(pool.User, "What is in?"))
	if err != nil || len(out.Replies) != 2 || out.Reply().Text() != "A gull." {
		t.Fatalf("%+v, %v", out, err)
	}
	if call := out.Replies[0].Calls[0]; call.Tool != "look.out" {
		t.Errorf("the call is of %q", call.Tool)
	}
	second := server.Bodies()[1]
	for _, want := range []string{`"name":"look_out_5e1f3f4a"`, `{"from":"assistant","calls":[{"id":"c1","tool":"look_out_5e1f3f4a","with":{"at":"sea"}}]}`, `{"from":"tool","text":"a gull at {\"at\":\"sea\"}","call":"c1"}`} {
		if !strings.Contains(second, want) {
			t.Errorf("no %s in %s", want, second)
		}
	}
}
