package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/testkit"
)

// provider speaks Chat Completions: it answers which model it is, a word at a time. The model bad fails, and the model slow waits for go after its first word.
type provider struct {
	*httptest.Server
	slow chan struct{}
}

func (a *api) provider() *provider {
	a.t.Helper()
	p := &provider{slow: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model string }
		raw, _ := io.ReadAll(r.Body)
		json.Unmarshal(raw, &body)
		if body.Model == "bad" {
			http.Error(w, `{"error":{"message":"no such model","type":"invalid_request_error"}}`, 404)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i, word := range []string{"I", " am", " " + body.Model} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
			if i == 0 && body.Model == "slow" {
				select {
				case <-p.slow:
				case <-r.Context().Done():
					return
				}
			}
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
	a.t.Cleanup(p.Close)
	if _, err := a.store.SetSettings(a.t.Context(), map[string]json.RawMessage{"base_url": jsontree.Quote(p.URL + "/v1"), "model": jsontree.Quote("plain"), "retries": json.RawMessage("0")}); err != nil {
		a.t.Fatal(err)
	}
	return p
}

// event is an event of a stream.
type event struct {
	name string
	data object
}

// stream posts a request, and returns the events in their order.
func (a *api) stream(path string, body object) []event {
	a.t.Helper()
	res, raw := a.send("POST", apiPath+path, body, nil)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		a.t.Fatalf("%s gives %d: %s", path, res.StatusCode, raw)
	}
	return eventsIn(a.t, string(raw))
}

func eventsIn(t *testing.T, text string) (all []event) {
	t.Helper()
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		switch key, value, _ := strings.Cut(in.Text(), ": "); key {
		case "event":
			all = append(all, event{name: value})
		case "data":
			if err := errors.Join(testkit.UniqueNames([]byte(value)), json.Unmarshal([]byte(value), &all[len(all)-1].data)); err != nil {
				t.Fatalf("%v: %s", err, value)
			}
		}
	}
	return all
}

func names(all []event) (out []string) {
	for _, e := range all {
		if len(out) == 0 || out[len(out)-1] != e.name {
			out = append(out, e.name)
		}
	}
	return out
}

func TestSendTellsWhatComes(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	id, main := a.context("Boats")
	all := a.stream(main+"/send", object{"text": "Who are you?"})
	if got := strings.Join(names(all), " "); got != "request delta message done" {
		t.Errorf("the events are %s", got)
	}
	text := ""
	for _, e := range all {
		if e.name == "delta" {
			text += e.data["text"].(string)
		}
	}
	if text != "I am plain" {
		t.Errorf("the words are %q", text)
	}
	a.want(all[len(all)-1].data, 2, "answers", 0, "position")
	a.want(all[len(all)-1].data, "plain", "answers", 0, "message", "metadata", "model_id")

	all = a.stream(main+"/send", object{"text": "And you?", "models": []string{"one", "bad", "two"}})
	last := all[len(all)-1].data
	if n := len(last["answers"].([]any)); n != 2 {
		t.Errorf("%d answers of two: %v", n, last)
	}
	a.want(last, "bad", "failed", 0, "model")
	a.want(last, 7, "failed", 0, "error", "code")
	branches := fmt.Sprint(a.get("/contexts/" + id + "/branches"))
	if !strings.Contains(branches, "branch:one") || strings.Contains(branches, "branch:bad") {
		t.Errorf("the branches are %s", branches)
	}
	a.want(a.get(main), true, "active")
	a.want(a.get(main+"/compare?with=one&with=two"), "new", "turns", 0, "cells", 1, "edits", 2, "kind")
	took := a.post(main+"/take", object{"message": "one"})
	a.want(took, 4, "messages", 0, "position")
	a.want(a.get(main+"/messages?from=-1"), "I am one", "items", 0, "content", 0, "text")

	all = a.stream(main+"/retry", object{"model": "again"})
	a.want(all[len(all)-1].data, "main.2", "answers", 0, "branch")
	a.want(a.get(main), true, "active")
	a.want(a.get("/cost?by=model"), 4, "replies") // the one that was taken counts once
	size := a.get(main + "/tokens")
	a.want(size, "plain", "model")
	a.want(size, 4, "states", 0, "messages")
	a.want(a.get(main+"/tokens?brief=true"), at(size, "states", 0, "tokens"), "states", 0, "tokens")
	a.want(a.get(main+"/tokens?brief=true"), "[]", "messages")
	a.want(size, 4, "rows")
	second := a.get(main + "/tokens?from=2&limit=1")
	a.want(second, at(size, "messages", 1, "id"), "messages", 0, "id")
	a.want(second, nil, "messages", 1)
	a.want(second, 4, "rows")
	a.want(a.get(main+"/bill?text=More"), nil, "items", 0, "with_cache_nano")
	a.post("/settings", object{"settings": object{"prices": object{"plain": object{"input": 1, "output": 2}, "dear": object{"input": 3, "output": 2, "currency": "EUR"}}}})
	bill := a.get(main + "/bill?models=plain&models=dear&text=More")
	for i, price := range []float64{1000, 3000} {
		all := at(bill, "items", i, "fresh_tokens").(float64) + at(bill, "items", i, "cached_tokens").(float64)
		a.want(bill, all*price, "items", i, "without_cache_nano")
	}
	a.want(bill, "EUR", "items", 1, "currency")
	if longer := a.get(main + "/bill?text=" + strings.Repeat("word+", 200)); at(longer, "items", 0, "fresh_tokens").(float64) < at(bill, "items", 0, "fresh_tokens").(float64)+100 {
		t.Errorf("a longer message costs %v, and a short one %v", longer, bill)
	}
	a.want(a.get(main), 4, "messages")
	a.want(a.do(404, "POST", "/contexts/"+id+"/branches/none/send", object{"text": "x"}), "not_found", "error", "kind")
	a.want(a.do(400, "POST", main+"/send", object{"text": "x", "model": "a", "models": []string{"b"}}), "usage", "error", "kind")
	all = a.stream(main+"/retry", object{"model": "bad"})
	a.want(all[len(all)-1].data, 7, "error", "code")
	if branches := fmt.Sprint(a.get("/contexts/" + id + "/branches")); strings.Contains(branches, "main.3") {
		t.Errorf("a retry that failed leaves a branch: %s", branches)
	}
}

// TestWhoGoesAwayStopsTheAnswer: the part that arrived is kept.
func TestWhoGoesAwayStopsTheAnswer(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	_, main := a.context("Boats")
	req, _ := http.NewRequestWithContext(t.Context(), "POST", a.http.URL+apiPath+main+"/send", strings.NewReader(`{"text":"x","model":"slow"}`))
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		if strings.Contains(in.Text(), `"type":"text"`) {
			break
		}
	}
	a.want(a.get(main), "test", "replying", "program")
	changes, err := a.store.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for range changes {
		if page := a.get(main + "/messages?from=-1"); at(page, "items", 0, "unfinished") == true {
			a.want(page, "I", "items", 0, "content", 0, "text")
			return
		}
	}
}

// TestAPumpHoldsLittle: a reader that does not read gets fewer words, but everything else.
func TestAPumpHoldsLittle(t *testing.T) {
	var mu sync.Mutex
	var told []string
	words, skipped := 0, false
	gate := make(chan struct{})
	p := newPump(t.Context(), func(event string, v any) error {
		<-gate
		mu.Lock()
		defer mu.Unlock()
		told = append(told, event)
		if d, ok := v.(operation.Delta); ok {
			words += len(d.Text)
			skipped = skipped || d.Skipped
		}
		return nil
	}, &room{most: mostTold})
	word := strings.Repeat("x", 1000)
	p.Put("request", 1)
	for range 10_000 {
		p.Delta(operation.Delta{Branch: "b", Type: "text", Text: word})
	}
	p.mu.Lock()
	if p.words > mostPending || len(p.list) > 3 {
		t.Errorf("%d bytes in %d events wait", p.words, len(p.list))
	}
	p.mu.Unlock()
	p.Put("message", 2)
	close(gate)
	p.Flush()
	p.Delta(operation.Delta{Branch: "b", Type: "text", Text: "y"})
	p.Close()
	if got := strings.Join(told, " "); got != "request delta message delta" || words > mostPending+1 || !skipped {
		t.Errorf("told %s with %d bytes, skipped %v", got, words, skipped)
	}
}
