package turn

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
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

// TestAProvidersCompactionBeginsASession: its block goes back byte for byte to the model that made it, in place of what it stands for; other models get the
// messages, and so does the model itself once one of them has left the branch.
func TestAProvidersCompactionBeginsASession(t *testing.T) {
	var betas []string
	p := newProvider(t, compacts(&betas, `"ALL-OF-IT"`, `"OPAQUE"`, "ANSWER"), compacts(&betas, `null`, `null`, "FAILED"), says("bye"))
	turn := newTurn(t, p)
	set(t, turn, `{"compact.by":"provider","budget":100000,"anthropic.beta":"mine"}`)
	talked(t, turn, 2)
	if _, err := turn.Send(t.Context(), user("the question")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.bodies[0], `"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":80000}}]}`) || betas[0] != "mine,compact-2026-01-12" {
		t.Errorf("asked with %q\n%s", betas, p.bodies[0])
	}
	holds := func(body, with, without string) {
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
	// a compaction that failed, in the second reply, stands for nothing and begins no session
	if _, err := turn.Send(t.Context(), user("SECOND")); err != nil {
		t.Fatal(err)
	}
	holds(p.bodies[1], `{"type":"compaction","content":"ALL-OF-IT","encrypted_content":"OPAQUE"} ANSWER SECOND`, "question word")
	request := func(settings string) string {
		t.Helper()
		other := *turn
		if err := json.Unmarshal([]byte(settings), &other.Settings); err != nil {
			t.Fatal(err)
		}
		req, err := other.Request(t.Context(), user("THIRD"))
		if err != nil {
			t.Fatal(err)
		}
		return string(req.Body)
	}
	holds(request(`{}`), "ALL-OF-IT ANSWER SECOND FAILED THIRD", "question")
	holds(request(`{"model":"claude-opus-4-1"}`), "question ANSWER SECOND THIRD", "ALL-OF-IT OPAQUE")
	holds(request(`{"provider":"openai","model":"gpt-4o"}`), "question ANSWER SECOND THIRD", "ALL-OF-IT OPAQUE")
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
	on := func(name string) string {
		other := *turn
		other.Branch = name
		req, err := other.Request(t.Context(), user("THIRD"))
		if err != nil {
			t.Fatal(err)
		}
		return string(req.Body)
	}
	holds(on("early"), "word THIRD", "ALL-OF-IT question")
	holds(on("late"), "ALL-OF-IT ANSWER THIRD", "question")
	change(func(b *chatctx.Batch) { b.Drop("@2") })
	holds(request(`{}`), "question ANSWER SECOND THIRD", "ALL-OF-IT OPAQUE")
	if list, err := enhancer.ListSessions(t.Context(), turn.Context, "", enhancer.DefaultOptions()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
