package turn

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/window"
)

// compacts answers with a compaction, streamed as Anthropic does, and words.
func compacts(betas *[]string, summary, encrypted, text string) func(*writer, *http.Request) {
	return func(w *writer, r *http.Request) {
		*betas = append(*betas, r.Header.Get("Anthropic-Beta"))
		w.event(`{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":7}}}`)
		w.event(`{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"encrypted_content":null}}`)
		w.event(`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":%s,"encrypted_content":%s}}`, summary, encrypted)
		w.event(`{"type":"content_block_stop","index":0}`)
		w.event(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)
		w.event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"` + text + `"}}`)
		w.event(`{"type":"content_block_stop","index":1}`)
		w.event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`)
		w.event(`{"type":"message_stop"}`)
	}
}

// talkCompacted is a conversation whose first reply brings a compaction, and whose second one a compaction that failed.
func talkCompacted(t *testing.T) (turn *Turn, bodies func(i int) string, betas *[]string) {
	betas = &[]string{}
	p := newProvider(t, compacts(betas, `"ALL-OF-IT"`, `"OPAQUE"`, "ANSWER"), compacts(betas, `null`, `null`, "FAILED"), says("bye"))
	turn = newTurn(t, p)
	set(t, turn, `{"compact.by":"provider","budget":100000,"anthropic.beta":"mine"}`)
	talked(t, turn, 2)
	for _, text := range []string{"the question", "SECOND"} {
		if _, err := turn.Send(t.Context(), user(text)); err != nil {
			t.Fatal(err)
		}
	}
	return turn, func(i int) string { return p.bodies[i] }, betas
}

// holds looks for words in a request's body, and for others that it must not have.
func holds(t *testing.T, body, with, without string) {
	t.Helper()
	for word := range strings.FieldsSeq(with) {
		if !strings.Contains(body, word) {
			t.Errorf("the request lacks %s\n%s", word, body)
		}
	}
	for word := range strings.FieldsSeq(without) {
		if strings.Contains(body, word) {
			t.Errorf("the request has %s\n%s", word, body)
		}
	}
}

// requestOn is the body of the next request on a branch, with other settings.
func requestOn(t *testing.T, turn *Turn, branchName, settings string) string {
	t.Helper()
	other := *turn
	other.Branch = branchName
	if err := json.Unmarshal([]byte(settings), &other.Settings); err != nil {
		t.Fatal(err)
	}
	req, err := other.Request(t.Context(), user("THIRD"))
	if err != nil {
		t.Fatal(err)
	}
	return string(req.Body)
}

// TestAProvidersCompactionBeginsASession: its block goes back byte for byte to the model that made it, in place of what it stands for; other models get the
// messages. A compaction that failed stands for nothing and begins no session.
func TestAProvidersCompactionBeginsASession(t *testing.T) {
	turn, bodies, betas := talkCompacted(t)
	if !strings.Contains(bodies(0), `"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":80000}}]}`) || (*betas)[0] != "mine,compact-2026-01-12" {
		t.Errorf("asked with %q\n%s", *betas, bodies(0))
	}
	holds(t, bodies(1), `{"type":"compaction","content":"ALL-OF-IT","encrypted_content":"OPAQUE"} ANSWER SECOND`, "question word")
	holds(t, requestOn(t, turn, "", `{}`), "ALL-OF-IT ANSWER SECOND FAILED THIRD", "question")
	for settings, want := range map[string]int{`{}`: 2, `{"model":"claude-opus-4-1"}`: 1, `{"provider":"openai","model":"gpt-4o"}`: 1} {
		other := *turn
		if err := json.Unmarshal([]byte(settings), &other.Settings); err != nil {
			t.Fatal(err)
		}
		o, err := optionsOf(t.Context(), &other)
		if err != nil {
			t.Fatal(err)
		}
		list, err := window.ListSessions(t.Context(), turn.Context, "", o)
		if err != nil || len(list) != 2 || list[0].Provider != "" || list[1].Provider != "anthropic" || list[1].Session.Model != "claude-sonnet-4-5" {
			t.Fatalf("%+v, %v", list, err)
		}
		if list[0].Current != (want == 1) || list[1].Current != (want == 2) || list[0].End != 8 || list[1].Start != 6 || list[1].End != 8 {
			t.Errorf("with %s, session %d is not the current one: %+v", settings, want, list)
		}
		if _, err := window.Resume(t.Context(), turn.Context, "", o, "2"); !errors.Is(err, chatctx.ErrConflict) {
			t.Errorf("the provider's session was resumed: %v", err)
		}
		if want == 1 {
			holds(t, requestOn(t, turn, "", settings), "question ANSWER SECOND THIRD", "ALL-OF-IT OPAQUE")
		}
	}
}

// TestAProvidersCompactionEnds: it stands on branches that hold all that it tells of, and nowhere else.
func TestAProvidersCompactionEnds(t *testing.T) {
	turn, _, _ := talkCompacted(t)
	change := func(do func(b *chatctx.Batch)) {
		t.Helper()
		b := turn.Context.Begin("")
		do(b)
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	change(func(b *chatctx.Batch) { b.Fork("early", chatctx.ForkOptions{At: "@2", Stay: true}) })
	change(func(b *chatctx.Batch) { b.Fork("late", chatctx.ForkOptions{At: "@6", Stay: true}) })
	holds(t, requestOn(t, turn, "early", `{}`), "word THIRD", "ALL-OF-IT question")
	holds(t, requestOn(t, turn, "late", `{}`), "ALL-OF-IT ANSWER THIRD", "question")
	change(func(b *chatctx.Batch) { b.Drop("@2") })
	holds(t, requestOn(t, turn, "", `{}`), "question ANSWER SECOND THIRD", "ALL-OF-IT OPAQUE")
	if list, err := window.ListSessions(t.Context(), turn.Context, "", window.DefaultOptions()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestAProvidersCompactionLeavesExcludedMessages: what was excluded when the provider compacted is not in its compaction, and is sent once it is included again.
func TestAProvidersCompactionLeavesExcludedMessages(t *testing.T) {
	var betas []string
	turn := newTurn(t, newProvider(t, says("ONE"), compacts(&betas, `"ALL-OF-IT"`, `null`, "TWO")))
	mark := func(m string) {
		t.Helper()
		b := turn.Context.Begin("")
		b.Mark("@1", m)
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"HIDDEN", "OPEN"} {
		if _, err := turn.Send(t.Context(), user(text)); err != nil {
			t.Fatal(err)
		}
		if text == "HIDDEN" {
			mark(enhancer.Excluded)
		}
	}
	for _, included := range []bool{false, true} {
		if included {
			mark("")
		}
		req, err := turn.Request(t.Context(), user("NEXT"))
		if err != nil {
			t.Fatal(err)
		}
		if body := string(req.Body); strings.Contains(body, "HIDDEN") != included || !strings.Contains(body, "ALL-OF-IT") || strings.Contains(body, "OPEN") {
			t.Errorf("included %v: %s", included, body)
		}
	}
}

// TestResponsesCompactionBeginsASession: the item of a reply goes back to the model that made it, before what followed, in place of what came before.
func TestResponsesCompactionBeginsASession(t *testing.T) {
	answer := func(items string) string {
		return `data: {"type":"response.completed","response":{"id":"r","status":"completed","model":"gpt-5","output":[` + items +
			`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ANSWER","annotations":[]}]}],"usage":{"input_tokens":7,"output_tokens":3}}}` + "\n\n"
	}
	answers := []string{answer(`{"id":"cmp_1","type":"compaction","encrypted_content":"OPAQUE"},`), answer("")}
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answers[len(bodies)-1])
	}))
	t.Cleanup(server.Close)
	turn := newTurn(t, newProvider(t))
	env := map[string]string{"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": server.URL}
	turn.Getenv = func(name string) string { return env[name] }
	set(t, turn, `{"provider":"openai-responses","model":"gpt-5","compact.by":"provider","budget":100000}`)
	for _, text := range []string{"FIRST", "SECOND"} {
		if _, err := turn.Send(t.Context(), user(text)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(bodies[0], `"context_management":[{"type":"compaction","compact_threshold":80000}]`) {
		t.Errorf("asked with %s", bodies[0])
	}
	last := bodies[1]
	at := strings.Index(last, `"encrypted_content":"OPAQUE"`)
	if at < 0 || strings.Contains(last, "FIRST") || strings.Index(last, "ANSWER") < at || strings.Index(last, "SECOND") < at {
		t.Errorf("the next request is %s", last)
	}
	turn.Settings = map[string]json.RawMessage{"model": json.RawMessage(`"gpt-4o"`)}
	req, err := turn.Request(t.Context(), user("THIRD"))
	if err != nil {
		t.Fatal(err)
	}
	if body := string(req.Body); strings.Contains(body, "OPAQUE") || !strings.Contains(body, "FIRST") {
		t.Errorf("another model gets %s", body)
	}
}

// TestCompactionApartByTheProvider: an automatic compaction that a request cannot bring, since the number of turns makes it due, asks the provider's own endpoint. What
// is excluded, and what stays, does not go there; the items come back as they are. An answer that cannot be used is asked for once.
func TestCompactionApartByTheProvider(t *testing.T) {
	const items = `{"type":"message","role":"user","content":[{"type":"input_text","text":"KEPT"}]},{"id":"cmp","type":"compaction","encrypted_content":"OPAQUE"}`
	answer, asked := `[]`, []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path+string(body))
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"response.compaction","output":`+answer+`,"usage":{"input_tokens":70,"output_tokens":30}}`)
	}))
	t.Cleanup(server.Close)
	turn := newTurn(t, newProvider(t))
	env := map[string]string{"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": server.URL}
	turn.Getenv = func(name string) string { return env[name] }
	set(t, turn, `{"provider":"openai-responses","model":"gpt-5","compact.by":"provider","budget":100000,"compact.at_turns":3}`)
	talked(t, turn, 5)
	b := turn.Context.Begin("")
	b.Mark("@1", enhancer.Excluded)
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var unusable *enhancer.UnusableError
	if done, err := turn.Compact(t.Context()); done != nil || !errors.As(err, &unusable) || len(asked) != 1 {
		t.Fatalf("an empty answer: %+v, %v after %q", done, err, asked)
	}
	if done, err := turn.Compact(t.Context()); done != nil || err != nil || len(asked) != 1 {
		t.Errorf("it was asked again: %+v, %v after %q", done, err, asked)
	}
	talked(t, turn, 4)
	answer = "[" + items + "]"
	req, err := turn.Request(t.Context())
	if err != nil || !window.Of(req).Forecast.Due {
		t.Fatalf("no compaction is due: %+v, %v", req, err)
	}
	done, err := turn.Compact(t.Context())
	if err != nil || done == nil || done.By != "provider" || done.After > window.Of(req).Forecast.Tokens {
		t.Fatalf("%+v, %v; foretold were %d tokens", done, err, window.Of(req).Forecast.Tokens)
	}
	holds(t, asked[1], `/responses/compact{"model":"gpt-5","input":[{"type":"message","role":"assistant" word`, "instructions context_management")
	if n := strings.Count(asked[1], `"role":"user"`); n != 8 {
		t.Errorf("%d questions went there, and one of ten is excluded and one kept: %s", n, asked[1])
	}
	next := requestOn(t, turn, "", `{}`)
	if holds(t, next, "THIRD", ""); !strings.Contains(next, items) || strings.Count(next, `"role":"user"`) != 3 {
		t.Errorf("the next request is %s", next)
	}
	holds(t, requestOn(t, turn, "", `{"compact.by":"self"}`), `OPAQUE THIRD`, "")
	holds(t, requestOn(t, turn, "", `{"model":"gpt-4o"}`), `word THIRD`, "OPAQUE KEPT")
	if done, err := turn.Compact(t.Context()); done != nil || err != nil {
		t.Errorf("compacted again: %+v, %v", done, err)
	}
}
