package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/pool"
)

// sailing runs the tool sail in the server, and counts how often.
type sailing struct {
	runs  atomic.Int64
	begun chan struct{} // not nil: it says that it runs, and waits for go
	goes  chan struct{}
	both  *sync.WaitGroup // not nil: a call that has its result waits for the other one's
}

func (s *sailing) options() Options {
	return Options{Executor: func(c *chatctx.ChatContext) (*approval.Executor, func()) {
		e := &approval.Executor{Context: c, Functions: map[string]approval.Function{"sail": func(ctx context.Context, in approval.Invocation) (pool.Result, error) {
			s.runs.Add(1)
			if s.begun != nil {
				s.begun <- struct{}{}
				select {
				case <-s.goes:
				case <-ctx.Done():
				}
			}
			return pool.Result{Text: "at " + string(in.Arguments)}, nil
		}}}
		if both := s.both; both != nil {
			e.Show = func(ev approval.Event) {
				if ev.Step == approval.StepResolved {
					both.Done()
					both.Wait()
				}
			}
		}
		return e, e.Close
	}}
}

// calls puts a turn with calls on a branch, and returns their addresses.
func (a *api) calls(main string, ids ...string) (at []string) {
	a.t.Helper()
	var calls []object
	for _, id := range ids {
		calls = append(calls, object{"id": id, "tool_name": "sail", "arguments": object{"to": "Riga"}})
		at = append(at, main+"/calls/"+id)
	}
	a.post(main+"/messages", object{"messages": []object{{"role": "user", "content": "Sail"}, {"role": "assistant", "tool_calls": calls}}})
	return at
}

// pressed is the press of the longest button of a card.
func (a *api) pressed(call string, more object) object {
	a.t.Helper()
	query := ""
	if arguments, ok := more["arguments"]; ok {
		raw, _ := json.Marshal(arguments)
		query = "?arguments=" + url.QueryEscape(string(raw))
	}
	body := object{"verdict": "approve", "run": true, "go_on": true, "seen": a.get(call + query)["seen"]}
	for name, v := range more {
		if body[name] = v; v == nil {
			delete(body, name)
		}
	}
	return body
}

func (a *api) tokenFor(scopes ...string) string {
	a.t.Helper()
	secret, err := grant.Add(a.t.Context(), base.Of(a.store), strings.Join(scopes, "-"), scopes)
	if err != nil {
		a.t.Fatal(err)
	}
	return secret
}

func TestOnePressDecidesRunsAndGoesOn(t *testing.T) {
	s := &sailing{}
	a := start(t, s.options())
	a.provider()
	_, main := a.context("Boats")
	at := a.calls(main, "c1", "c2")
	all := a.stream(at[0]+"/decide", a.pressed(at[0], object{"arguments": object{"to": "Oslo"}, "reason": "nearer"}))
	if got := strings.Join(names(all), " "); got != "decided running ran done" {
		t.Errorf("the events of a call that is not the last are %s", got)
	}
	a.want(all[0].data, "approved", "approval_status")
	a.want(all[0].data, "Oslo", "effective_arguments", "to")
	a.want(all[2].data, 3, "position")
	a.want(all[3].data, 1, "open")
	a.want(all[3].data, false, "went_on")
	all = a.stream(at[1]+"/decide", a.pressed(at[1], object{"key": "k"}))
	if got := strings.Join(names(all), " "); got != "decided running ran request delta message done" {
		t.Errorf("the events of the last call are %s", got)
	}
	last := all[len(all)-1].data
	a.want(last, true, "went_on")
	a.want(last, "done", "call", "execution")
	a.want(last, 5, "answers", 0, "position")
	a.do(400, "POST", at[1]+"/decide", object{"verdict": "approve"}) // what was seen is missing
	if s.runs.Load() != 2 {
		t.Errorf("the tool ran %d times", s.runs.Load())
	}
}

// TestWhatIsPressedIsWhatWasShown: a decision about anything else than the card showed is a conflict with the new card, and nothing is stored.
func TestWhatIsPressedIsWhatWasShown(t *testing.T) {
	tool := func(a *api, words ...string) {
		if _, err := a.store.PutTool(t.Context(), record.Tool{Name: "sail", Command: words}); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(a *api, id, call string, body object){
		"the tool is another": func(a *api, _, _ string, _ object) { tool(a, "false") },
		"there is a tool":     func(a *api, _, _ string, _ object) { tool(a, "true", "x") },
		"the folder is another": func(a *api, id, _ string, _ object) {
			a.post("/contexts/"+id+"/settings", object{"settings": object{"calls.folder": "/tmp"}})
		},
		"somebody decided":    func(a *api, _, call string, _ object) { a.post(call+"/approve", nil) },
		"somebody denied":     func(a *api, _, call string, _ object) { a.post(call+"/deny", nil) },
		"another hash":        func(_ *api, _, _ string, body object) { body["seen"] = "00" },
		"a rule that is none": func(_ *api, _, _ string, body object) { body["rule"] = object{"effect": "allow", "tool": "*"} },
		"other arguments": func(a *api, _, call string, body object) {
			body["arguments"] = object{"to": "Kiel"}
			delete(body, "rule")
		},
		"a rule of other arguments": func(_ *api, _, _ string, body object) { body["arguments"] = object{"to": "Kiel"} },
	} {
		for _, verdict := range []string{"approve", "deny"} {
			a := start(t, Options{})
			a.provider()
			id, main := a.context("Boats")
			tool(a, "true")
			call := a.calls(main, "c1")[0]
			shown := a.get(call)
			body := object{"verdict": verdict, "seen": shown["seen"], "key": "k"}
			if verdict == "approve" {
				body["run"], body["go_on"] = true, true
				offer := at(shown, "offers", 0).(map[string]any)
				body["rule"] = object{"effect": offer["effect"], "tool": offer["tool"], "when": offer["when"], "scope": "branch"}
			}
			change(a, id, call, body)
			if verdict == "deny" && (body["rule"] != nil || body["arguments"] != nil) {
				continue
			}
			before := a.everything()
			conflict := a.do(409, "POST", call+"/decide", body)
			a.want(conflict, "conflict", "error", "kind")
			if card := at(conflict, "error", "card"); fmt.Sprint(card) != fmt.Sprint(a.get(call)) {
				t.Errorf("%s: the conflict of %s has the card %v", name, verdict, card)
			}
			if after := a.everything(); after != before {
				t.Errorf("%s: %s has stored %s", name, verdict, after)
			}
		}
	}
}

// TestTheWholePressIsRefusedAtOnce: it needs the scope of each thing that is asked for.
func TestTheWholePressIsRefusedAtOnce(t *testing.T) {
	s := &sailing{}
	a := start(t, s.options())
	a.provider()
	_, main := a.context("Boats")
	call := a.calls(main, "c1")[0]
	rule := object{"effect": "allow", "tool": "sail"}
	all := a.token
	for _, c := range []struct {
		scopes []string
		body   object
		status int
	}{
		{[]string{"read", "write", "run", "admin"}, object{"verdict": "approve"}, 403},
		{[]string{"read", "write", "run", "admin"}, object{"verdict": "deny"}, 403},
		{[]string{"read", "decide", "admin"}, object{"verdict": "approve", "run": true}, 403},
		{[]string{"read", "decide", "admin"}, object{"verdict": "deny", "go_on": true}, 403},
		{[]string{"read", "decide", "run"}, object{"verdict": "approve", "run": true, "go_on": true, "rule": rule}, 403},
		{[]string{"read", "decide", "run"}, object{"verdict": "approve", "rule": rule}, 403},
		{nil, object{"verdict": "approve", "go_on": true}, 400},
		{nil, object{"verdict": "deny", "run": true}, 400},
		{nil, object{"verdict": "deny", "rule": rule}, 400},
		{nil, object{"verdict": "deny", "arguments": object{}}, 400},
		{nil, object{"verdict": "perhaps"}, 400},
	} {
		a.token = all
		c.body["seen"] = a.get(call)["seen"]
		before := a.everything()
		if c.scopes != nil {
			a.token = a.tokenFor(c.scopes...)
			before = a.everything()
		}
		a.do(c.status, "POST", call+"/decide", c.body)
		if a.token = all; a.everything() != before || s.runs.Load() > 0 {
			t.Errorf("%v with %v changed something", c.body, c.scopes)
		}
		a.must("tokens.list", object{})
		for _, token := range at(a.get("/tokens"), "items").([]any) {
			a.post("/tokens/"+at(token, "token").(string)+"/remove", nil)
		}
	}
}

// TestAPressIsFinishedWithoutItsPage: the decision and the run are finished when the page goes away, and the same key goes on with the model then.
func TestAPressIsFinishedWithoutItsPage(t *testing.T) {
	s := &sailing{begun: make(chan struct{}), goes: make(chan struct{})}
	a := start(t, s.options())
	a.provider()
	_, main := a.context("Boats")
	call := a.calls(main, "c1")[0]
	body := a.pressed(call, object{"key": "k"})
	raw, _ := json.Marshal(body)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", a.http.URL+apiPath+call+"/decide", strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	<-s.begun
	leave()
	res.Body.Close()
	s.goes <- struct{}{}
	all := a.stream(call+"/decide", body) // it waits for the first one
	if got := all[len(all)-1]; got.name != "done" || at(got.data, "went_on") != true || s.runs.Load() != 1 {
		t.Errorf("with the same key it ends with %v, and the tool ran %d times", got, s.runs.Load())
	}
}

// restarted serves the store as a server that has just begun.
func (a *api) restarted(o Options) *api {
	s := New(a.store, o)
	h := httptest.NewServer(s)
	a.t.Cleanup(func() { s.Close(); h.Close() })
	return &api{t: a.t, store: a.store, server: s, http: h, token: s.RunToken()}
}

// mortal is an engine that makes some changes and then none, as if its program had died.
type mortal struct {
	kv.DB
	left atomic.Int64
}

var errDied = errors.New("the program died")

func (m *mortal) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if m.left.Add(-1) < 0 {
		return errDied
	}
	return m.DB.Update(ctx, fn)
}

// TestTheSameKeyGoesOnAfterADeath: a program dies between any two changes of a press. Another one with the same key finishes what was left, and nothing happens twice.
func TestTheSameKeyGoesOnAfterADeath(t *testing.T) {
	ends := map[string]bool{}
	for _, verdict := range []string{"approve", "deny"} {
		for changes := int64(0); changes < 20; changes++ {
			s := &sailing{}
			db := &mortal{DB: memkv.New()}
			db.left.Store(1 << 30)
			store, err := chatctx.OpenDB(db, chatctx.Options{Create: true, Program: "test", By: "ann", Judge: approval.Rules{}})
			if err != nil {
				t.Fatal(err)
			}
			a := over(t, store, s.options())
			a.provider()
			_, main := a.context("Boats")
			call := a.calls(main, "c1")[0]
			body := a.pressed(call, object{"key": "k", "verdict": verdict})
			if verdict == "deny" {
				delete(body, "run")
			}
			db.left.Store(changes)
			_, first := a.send("POST", apiPath+call+"/decide", body, nil)
			died := db.left.Load() < 0
			db.left.Store(1 << 30)
			other := a.restarted(s.options()) // what the first server keeps in memory is gone
			_, second := other.send("POST", apiPath+call+"/decide", body, nil)
			third := a.restarted(s.options())
			before := third.everything()
			third.send("POST", apiPath+call+"/decide", body, nil)
			if after := third.everything(); after != before {
				t.Errorf("after %d changes a third request changed %s", changes, after)
			}
			shown, count := third.get(call), third.get(main)["messages"]
			end := fmt.Sprint(shown["approval_status"], " ", shown["execution"], " ", count, " messages, ", s.runs.Load(), " runs")
			switch end {
			case "approved done 4 messages, 1 runs", "denied none 4 messages, 0 runs":
			case "approved running 2 messages, 1 runs", "approved running 2 messages, 0 runs": // it died while the tool ran: a person says what became of it
			case "approved done 3 messages, 1 runs", "denied none 3 messages, 0 runs": // it died while the model was asked, and its claim of the branch is not over
			default:
				t.Errorf("%s, died after %d changes: it ends with %s\n%s\n%s", verdict, changes, end, first, second)
			}
			if ends[end] = true; !died {
				break
			}
		}
	}
	for _, end := range []string{"approved done 4 messages, 1 runs", "denied none 4 messages, 0 runs"} {
		if !ends[end] {
			t.Errorf("no press ended with %s: %v", end, ends)
		}
	}
}

// TestOfTwoLastDecisionsOneGoesOn: two people decide the last two calls at one moment, and each asks to go on: the model is asked once.
func TestOfTwoLastDecisionsOneGoesOn(t *testing.T) {
	s := &sailing{begun: make(chan struct{}), goes: make(chan struct{})}
	a := start(t, s.options())
	a.provider()
	_, main := a.context("Boats")
	messages := 0
	for round := range 12 {
		ids := []string{fmt.Sprint("a", round), fmt.Sprint("b", round)}
		calls := a.calls(main, ids...)
		both := []object{a.pressed(calls[0], nil), a.pressed(calls[1], nil)}
		if round%3 == 2 { // one of them denies
			both[1] = object{"verdict": "deny", "go_on": true, "seen": both[1]["seen"]}
		}
		if s.both = nil; round%3 == 0 { // each finds that no call is open
			s.both = &sync.WaitGroup{}
			s.both.Add(2)
		}
		went := make([]bool, 2)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				raw, _ := json.Marshal(both[i])
				r, _ := http.NewRequestWithContext(t.Context(), "POST", a.http.URL+apiPath+calls[i]+"/decide", strings.NewReader(string(raw)))
				r.Header.Set("Authorization", "Bearer "+a.token)
				r.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				text, err := io.ReadAll(res.Body)
				if err != nil {
					t.Error(err)
				}
				all := eventsIn(t, string(text))
				went[i] = len(all) > 0 && all[len(all)-1].data["went_on"] == true
			})
		}
		for range 2 - round%3/2 {
			<-s.begun
		}
		for range 2 - round%3/2 {
			s.goes <- struct{}{}
		}
		wg.Wait()
		messages += 2 + 2 + 1
		if went[0] == went[1] {
			t.Errorf("round %d: of two one goes on, and not %v", round, went)
		}
		a.want(a.get(main), messages, "messages")
	}
}
