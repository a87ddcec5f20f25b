package chatctx

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// must returns a value, and ends the test if there is an error in its place.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// replacing is a conversation with a call of the tool deploy that a person approved.
type replacing struct {
	t *testing.T
	s *Store
	c *ChatContext
}

func replacingIn(t *testing.T, tools ...record.Tool) *replacing {
	t.Helper()
	s, _ := clocked(t)
	c := must(s.New(t.Context(), record.NewContext{Title: "deploys"}))(t)
	r := &replacing{t, s, c}
	for _, tool := range tools {
		r.put(tool)
	}
	must(c.Append(t.Context(), "", pool.NewText(pool.User, "go"), &pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "deploy", Arguments: json.RawMessage(`{"to":"x"}`)}}}))(t)
	r.approve()
	return r
}

func (r *replacing) put(tool record.Tool) {
	r.t.Helper()
	must(r.s.PutTool(r.t.Context(), tool))(r.t)
}

func (r *replacing) batch(do func(*Batch)) {
	r.t.Helper()
	b := r.c.Begin("")
	do(b)
	must(b.Commit(r.t.Context()))(r.t)
}

func (r *replacing) approve() {
	r.t.Helper()
	r.batch(func(b *Batch) { b.Decide("c1", record.Verdict{Status: pool.Approved}) })
}

func (r *replacing) call() *record.Call {
	r.t.Helper()
	return must(r.s.Call(r.t.Context(), r.c.ID.String(), "", "c1"))(r.t)
}

func deployTool(command ...string) record.Tool { return record.Tool{Name: "deploy", Command: command} }

// TestToolReplacedAfterApproval: however another tool comes to stand under the name, the call waits again and says why; the very same one changes nothing.
func TestToolReplacedAfterApproval(t *testing.T) {
	looked := deployTool("touch", "a")
	with := func(change func(*record.Tool)) func(*replacing) {
		return func(r *replacing) { tool := looked; change(&tool); r.put(tool) }
	}
	for name, test := range map[string]struct {
		tools []record.Tool
		do    func(*replacing)
		waits bool
	}{
		"the same again":      {[]record.Tool{looked}, func(r *replacing) { r.put(deployTool("touch", "a")) }, false},
		"another description": {[]record.Tool{looked}, with(func(t *record.Tool) { t.Description, t.Repeatable = "better", true }), false},
		"another value of a variable": {[]record.Tool{{Name: "deploy", Command: []string{"x"}, Env: map[string]string{"A": "1"}}}, func(r *replacing) {
			r.put(record.Tool{Name: "deploy", Command: []string{"x"}, Env: map[string]string{"A": "2"}})
		}, false},
		"there and back": {[]record.Tool{looked}, func(r *replacing) {
			r.put(deployTool("rm"))
			must(r.s.Undo(r.t.Context(), "", "", ""))(r.t)
		}, false},
		"another tool":                 {[]record.Tool{looked, {Name: "other", Command: []string{"x"}}}, func(r *replacing) { r.put(record.Tool{Name: "other", Command: []string{"y"}}) }, false},
		"another command":              {[]record.Tool{looked}, with(func(t *record.Tool) { t.Command = []string{"touch", "b"} }), true},
		"one word more":                {[]record.Tool{looked}, with(func(t *record.Tool) { t.Command = []string{"touch", "a", "-v"} }), true},
		"words cut otherwise":          {[]record.Tool{looked}, with(func(t *record.Tool) { t.Command = []string{"touch a"} }), true},
		"a folder":                     {[]record.Tool{looked}, with(func(t *record.Tool) { t.Dir = "/tmp" }), true},
		"a variable":                   {[]record.Tool{looked}, with(func(t *record.Tool) { t.Env = map[string]string{"PATH": "/evil"} }), true},
		"standard input":               {[]record.Tool{looked}, with(func(t *record.Tool) { t.Stdin = true }), true},
		"dashes":                       {[]record.Tool{looked}, with(func(t *record.Tool) { t.Dashes = true }), true},
		"removed":                      {[]record.Tool{looked}, func(r *replacing) { must(r.s.RemoveTool(r.t.Context(), "deploy"))(r.t) }, true},
		"where none was":               {nil, func(r *replacing) { r.put(looked) }, true},
		"none, as before":              {nil, func(r *replacing) {}, false},
		"the conversation's own":       {[]record.Tool{looked}, func(r *replacing) { r.batch(func(b *Batch) { b.PutTool(deployTool("rm")) }) }, true},
		"the same of the conversation": {[]record.Tool{looked}, func(r *replacing) { r.batch(func(b *Batch) { b.PutTool(looked) }) }, false},
		"the folder of the setting": {[]record.Tool{looked}, func(r *replacing) {
			r.batch(func(b *Batch) {
				b.SetContextSettings(map[string]json.RawMessage{"calls.folder": json.RawMessage(`"/tmp"`)})
			})
		}, true},
		"undo of what was there before": {[]record.Tool{deployTool("old"), looked}, func(r *replacing) { must(r.s.Undo(r.t.Context(), "", "", "s3"))(r.t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := replacingIn(t, test.tools...)
			test.do(r)
			why := must(toolcall.Replaced(t.Context(), base.Of(r.s), r.call()))(t)
			claim, err := r.s.ClaimCall(t.Context(), r.c.ID.String(), "", "c1", record.ClaimOptions{Stored: true})
			c := r.call()
			if !test.waits {
				if err != nil || why != "" || c.Execution != pool.Running {
					t.Fatalf("%v, %q: %s", err, why, c.State())
				}
				if last := c.Decisions[len(c.Decisions)-1]; last.Runs == nil || claim.Older {
					t.Errorf("the claim records %+v", last)
				}
				must(claim.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "done"}}))(t)
				return
			}
			last := c.Decisions[len(c.Decisions)-1]
			if !errors.Is(err, ErrConflict) || c.Status != pool.Pending || c.Effective != nil || !strings.Contains(last.Reason, "replaced") || last.Reason != why {
				t.Fatalf("%v; the call is %s: %q, %q", err, c.State(), last.Reason, why)
			}
			r.approve()
			must(r.s.ClaimCall(t.Context(), r.c.ID.String(), "", "c1", record.ClaimOptions{}))(t)
		})
	}
}

// TestToolOfAServerReplaced: of an MCP server its address counts, and its headers.
func TestToolOfAServerReplaced(t *testing.T) {
	server := func(url string, headers map[string]string) record.Tool {
		return record.Tool{Name: "ops", MCP: true, URL: url, Headers: headers, Remotes: []record.Remote{{Name: "a__b"}, {Name: "up"}}}
	}
	for name, waits := range map[string]bool{"http://127.0.0.1:1": false, "http://127.0.0.1:2": true} {
		s, _ := clocked(t)
		c := must(s.New(t.Context(), record.NewContext{Title: "deploys"}))(t)
		r := &replacing{t, s, c}
		r.put(server("http://127.0.0.1:1", nil))
		must(c.Append(t.Context(), "", pool.NewText(pool.User, "go"), &pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "ops__a__b"}}}))(t)
		r.approve()
		if d := r.call().Decisions; len(d) != 1 || d[0].Runs == nil || d[0].Runs.URL != "http://127.0.0.1:1" || !d[0].Runs.MCP {
			t.Fatalf("the approval holds %+v", d)
		}
		r.put(server(name, nil))
		if why := must(toolcall.Replaced(t.Context(), base.Of(s), r.call()))(t); (why != "") != waits {
			t.Errorf("%s: %q", name, why)
		}
		r.put(server("http://127.0.0.1:1", map[string]string{"X": "TOKEN"}))
		if changed, err := toolcall.Reconsider(t.Context(), base.Of(s), r.call()); !changed || err != nil || r.call().Status != pool.Pending {
			t.Errorf("other headers: %v, %v", changed, err)
		}
		if changed, err := toolcall.Reconsider(t.Context(), base.Of(s), r.call()); changed || err != nil {
			t.Errorf("it is reconsidered twice: %v", err)
		}
	}
}

// TestApprovalOfBefore: an approval that was stored before approvals held what the tool runs counts as it did, and the claim says so.
func TestApprovalOfBefore(t *testing.T) {
	r := replacingIn(t, deployTool("touch", "a"))
	call := r.call()
	key := base.CallKey(call.Context, call.Message, 0)
	err := r.s.at().DB.Update(t.Context(), func(tx kv.RwTx) error {
		rec := &record.CallRecord{}
		if _, err := base.GetRecord(tx, base.CallBucket, key, rec); err != nil {
			return err
		}
		rec.Decisions[0].Runs = nil
		return base.PutRecord(tx, base.CallBucket, key, rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.put(deployTool("touch", "b"))
	if why := must(toolcall.Replaced(t.Context(), base.Of(r.s), r.call()))(t); why != "" {
		t.Errorf("it waits again: %s", why)
	}
	claim := must(r.s.ClaimCall(t.Context(), r.c.ID.String(), "", "c1", record.ClaimOptions{Stored: true}))(t)
	steps := r.call().Decisions
	if ran := steps[len(steps)-1].Runs; !claim.Older || ran == nil || ran.String() != "touch b" || claim.Tool.Command[1] != "b" {
		t.Errorf("%v: the claim records %v", claim.Older, ran)
	}
	must(claim.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "done"}}))(t)
}
