package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/internal/operation"
)

// ending is a context that ends after it was asked a number of times.
type ending struct {
	context.Context
	mu   sync.Mutex
	left int
	done chan struct{}
}

// asked counts a question, and reports whether the context has ended.
func (c *ending) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == -1 {
		close(c.done)
	}
	return c.left < 0
}

func (c *ending) Done() <-chan struct{} {
	c.asked()
	return c.done
}

func (c *ending) Err() error {
	if c.asked() {
		return context.Canceled
	}
	return nil
}

// direct runs a method without a transport, for a caller with all scopes.
func (a *api) direct(ctx context.Context, name string, params object, body string) (outcome, bool) {
	a.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		a.t.Fatal(err)
	}
	m := methodNamed(name)
	in, err := m.read(raw)
	if err != nil {
		a.t.Fatalf("%s with %s: %v", name, raw, err)
	}
	l := &lease{room: a.server.room}
	defer l.free()
	return a.server.do(&request{Request: operation.Request{Ctx: ctx, Store: a.store}, server: a.server, who: Caller{Scopes: Scopes}, room: a.server.room, lease: l, params: raw, body: strings.NewReader(body)}, m, in)
}

// must runs a method that has to succeed, and returns its answer.
func (a *api) must(name string, params object) map[string]any {
	a.t.Helper()
	done, _ := a.direct(a.t.Context(), name, params, "")
	var v map[string]any
	if done.err == nil {
		done.err = json.Unmarshal(done.raw, &v)
	}
	if done.err != nil {
		a.t.Fatalf("%s with %v: %v", name, params, done.err)
	}
	return v
}

// everything is what a store holds for the methods that read, and how much waits for an import.
func (a *api) everything() string {
	a.t.Helper()
	var all strings.Builder
	look := func(name string, params object) map[string]any {
		v := a.must(name, params)
		fmt.Fprintln(&all, name, v)
		return v
	}
	for _, trash := range []bool{false, true} {
		items, _ := look("contexts.list", object{"trash": trash})["items"].([]any)
		for _, c := range items {
			of := object{"context": at(c, "context")}
			for _, name := range []string{"contexts.get", "operations.list", "calls.log", "rules.list", "tools.list"} {
				look(name, of)
			}
		}
	}
	for _, name := range []string{"operations.store", "settings.store", "rules.list", "tools.list", "tokens.list", "calls.list", "gate.status"} {
		look(name, object{})
	}
	fmt.Fprintln(&all, a.server.uploads.size)
	return all.String()
}

// changing is a store in which each brief change has something to do.
func changing(t *testing.T, name string) (a *api, params object) {
	a = start(t, Options{})
	first := a.must("contexts.new", object{"title": "Boats"})["context"]
	of := func(more object) object {
		more["context"], more["branch"] = first, "main"
		return more
	}
	a.must("messages.append", of(object{"messages": []object{{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}}}))
	a.must("branches.fork", of(object{"name": "other"}))
	a.must("messages.append", object{"context": first, "branch": "other", "messages": []object{{"role": "user", "content": "Three"}}})
	a.must("messages.append", of(object{"messages": []object{{"role": "assistant", "tool_calls": []object{{"id": "c1", "tool_name": "sail", "arguments": object{}}}}}}))
	a.must("tags.set", of(object{"message": "@1", "tag": "t"}))
	a.must("labels.add", object{"context": first, "label": "l"})
	task := a.must("tasks.start", of(object{"goal": "Find a boat"}))["context"]
	params = map[string]object{
		"contexts.new": {"title": "x", "activate": true}, "contexts.copy": {"activate": true}, "contexts.rename": {"title": "x"}, "labels.add": {"label": "x"}, "labels.remove": {"label": "l"}, "branches.fork": {"name": "x"},
		"branches.edit": {"message": "@1", "text": "x"}, "branches.rename": {"name": "x"}, "branches.remove": {"branch": "other"}, "branches.prune": {"branches": []string{"other"}}, "messages.append": {"messages": []object{{"role": "user", "content": "x"}}},
		"history.rewind": {"message": "@1"}, "history.drop": {"messages": []string{"@1"}}, "history.pick": {"from": "other", "messages": []string{"@-1"}}, "history.merge": {"from": "other"},
		"messages.shorten": {"text": "x"}, "marks.set": {"messages": []string{"@1"}, "mark": "pinned"}, "tags.set": {"message": "@1", "tag": "x"}, "tags.remove": {"tag": "t"}, "take": {"branch": "other", "message": "@1"}, "prompts.set": {"system": "x"},
		"settings.setBranch": {"settings": object{"model": "m"}}, "settings.setContext": {"settings": object{"model": "m"}}, "settings.setStore": {"settings": object{"model": "m"}},
		"rules.add": {"effect": "ask", "tool": "x"}, "rules.default": {"effect": "deny"}, "tools.put": {"tool": "x", "command": []string{"true"}}, "tools.remove": {"tool": "sail"}, "tasks.start": {"goal": "x"},
		"tasks.return": {"context": task, "summary": "Found"}, "tasks.abandon": {"context": task}, "operations.undo": {"operation": "s2"}, "tokens.add": {"token": "x", "scopes": []string{"read"}}, "tokens.remove": {"token": "t"},
		"calls.ensure": {"agent": "mine", "session": "s", "tool_name": "sail", "arguments": object{}}, "gate.mode": {"agent": "codex", "mode": "record"}, "calls.approve": {"reason": "x"}, "calls.expire": {"at": "2099-01-01T00:00:00Z"}, "calls.resolve": {"text": "x"},
	}[name]
	if params == nil {
		params = object{}
	}
	switch name { // what must be there before
	case "messages.shorten":
		params["message"] = "@4"
		a.must("messages.append", of(object{"messages": []object{{"role": "tool", "tool_result": object{"request_id": "c1", "result": "boats"}}}}))
	case "contexts.restore":
		a.must("contexts.trash", object{"context": first})
	case "branches.restore":
		a.must("branches.remove", object{"context": first, "branch": "other"})
		params["branch"] = "other"
	case "operations.undo":
		a.must("contexts.new", object{})
	case "redo":
		a.must("undo", of(object{}))
	case "rules.remove":
		params["rule"] = a.must("rules.add", object{"context": first, "effect": "ask", "tool": "sail"})["rule"]
	case "tools.remove":
		a.must("tools.put", object{"context": first, "tool": "sail", "command": []string{"true"}})
	case "tokens.remove":
		a.must("tokens.add", object{"token": "t", "scopes": []string{"read"}})
	case "calls.claim", "calls.renew", "calls.resolve":
		a.must("calls.approve", of(object{"call": "c1"}))
		if name != "calls.claim" {
			params["token"] = a.must("calls.claim", of(object{"call": "c1", "hold": 3600}))["token"]
		}
		if name == "calls.renew" {
			params["hold"] = 7200
		}
	}
	for field, v := range map[string]any{"context": first, "branch": "main", "call": "c1"} {
		if params[field] == nil && methodNamed(name).has(field) && name != "tasks.return" {
			params[field] = v
		}
	}
	return a, params
}

// A change whose request ends, at whatever step of it, either did nothing, or it is answered with what it made, and its key gives that again.
func TestAChangeIsMadeAndAnsweredOrNotMade(t *testing.T) {
	for _, m := range methods() {
		if !m.brief() {
			continue
		}
		body := map[bool]string{true: "some bytes"}[m.Upload]
		a, params := changing(t, m.Name)
		before, none, made := a.everything(), 0, false
		for n := 0; !made && n < 1000; n++ {
			params["key"] = fmt.Sprint("key ", n)
			done, _ := a.direct(&ending{Context: t.Context(), left: n, done: make(chan struct{})}, m.Name, params, body)
			if done.err != nil {
				if _, kind, _ := kindOf(done.err); kind != "interrupted" {
					t.Fatalf("%s ends with %v", m.Name, done.err)
				}
				if now := a.everything(); now != before {
					t.Fatalf("%s is answered as interrupted after %d steps, and did something:\n%s\n%s", m.Name, n, before, now)
				}
				none++
				continue
			}
			made = true
			now := a.everything()
			again, known := a.direct(t.Context(), m.Name, params, body)
			if again.err != nil || !known || !bytes.Equal(again.raw, done.raw) || a.everything() != now {
				t.Errorf("%s was made, and its key gives %s %v", m.Name, again.raw, again.err)
			}
		}
		if none == 0 || !made {
			t.Errorf("%s was refused %d times, and made: %v", m.Name, none, made)
		}
	}
}
