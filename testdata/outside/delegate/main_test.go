package main

import (
	"strings"
	"testing"

	"example.org/outside/acme/acmetest"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

const asksForTide = `{"id":"r1","model":"acme-1","calls":[{"id":"c1","tool":"tide","with":{}}],"end":"calls"}`

// parent is a conversation with the tool tide, and with a rule about it.
func parent(t *testing.T, effect string) *chatctx.ChatContext {
	t.Helper()
	c := acmetest.Talk(t, chatctx.Options{Judge: approval.Rules{}})
	b := c.Begin("")
	b.Append(pool.NewText(pool.User, "When can we go?"))
	b.PutTool(record.Tool{Name: "tide"})
	b.AddRule(record.Rule{Effect: effect, Tool: "tide"}, record.RuleScope{})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func last(t *testing.T, c *chatctx.ChatContext) *chatctx.Entry {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := snap.Find(t.Context(), "@")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheParentGetsTheSummary(t *testing.T) {
	server := acmetest.New(t, asksForTide, `{"id":"r2","text":"Go at 06:12.","end":"done"}`)
	c := parent(t, record.Allow)
	var out strings.Builder
	if err := delegate(t.Context(), c.Store(), "Harbour", "find the next high water", server.Getenv, &out); err != nil || out.String() != "Go at 06:12.\n" {
		t.Fatalf("%q, %v", &out, err)
	}
	m := last(t, c)
	if m.Kind != "summary" || !strings.HasSuffix(m.Text(), "Go at 06:12.") || !strings.Contains(m.Text(), "find the next high water") {
		t.Errorf("the parent ends with %s %q", m.Kind, m.Text())
	}
	if first, second := server.Bodies()[0], server.Bodies()[1]; strings.Contains(first, "When can we go?") || !strings.Contains(second, "high at 06:12") {
		t.Errorf("Acme got\n%s\n%s", first, second)
	}
}

func TestATaskWaitsForAPerson(t *testing.T) {
	server := acmetest.New(t, asksForTide)
	c := parent(t, record.Ask)
	var out strings.Builder
	if err := delegate(t.Context(), c.Store(), "Harbour", "find the next high water", server.Getenv, &out); err != nil || out.String() != "1 calls wait for a decision\n" {
		t.Fatalf("%q, %v", &out, err)
	}
	if m := last(t, c); m.Text() != "When can we go?" {
		t.Errorf("the parent ends with %q", m.Text())
	}
}

func TestATaskThatMayNotGoOnFails(t *testing.T) {
	answers := []string{asksForTide, asksForTide, asksForTide, asksForTide, asksForTide, asksForTide}
	c := parent(t, record.Allow)
	var out strings.Builder
	err := delegate(t.Context(), c.Store(), "Harbour", "find the next high water", acmetest.New(t, answers...).Getenv, &out)
	if err != nil || !strings.HasPrefix(out.String(), "failed: the task's limit is reached") {
		t.Errorf("%q, %v", &out, err)
	}
	if err := delegate(t.Context(), c.Store(), "Airport", "land", nil, &out); err == nil {
		t.Error("a conversation that is not there gets a task")
	}
}
