package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// AnythingLLM's export as JSON: a list of turns, each with its workspace. The export has no threads and no sources.

const anythingName = "anythingllm"

func detectAnything(h *head) bool {
	return h.any(func(v value) bool {
		return v.has("prompt") && v.has("response") && v.has("sent_at") && v.has("workspace")
	})
}

func readAnything(r *reading) error {
	g := r.gather()
	n := 0
	err := r.eachItem("", func(at place, v value) error {
		n++
		if !v.is(objectKind) || !v.has("prompt") {
			r.skip(1, at, "%s that is not a turn is left out", v.kind())
			return nil
		}
		t := g.of(at, "workspace "+v.get("workspace").str())
		t.in.Title = v.get("workspace").str()
		anythingTurn(t.thread, at, firstOf(idText(v.get("id")), itoa(n)), v, v.get("response"))
		return nil
	})
	if n > 0 {
		r.warn(place{}, "the export holds no threads, and each workspace becomes one conversation; import anythingllm.db to get the threads")
	}
	return r.atEnd(err, g.emit)
}

// anythingTurn adds a prompt and its answer, below the last message.
func anythingTurn(t *thread, at place, id string, v, response value) {
	prompt := pool.NewText(pool.User, v.get("prompt").str())
	prompt.Created = v.pick("sent_at|createdAt").time()
	for a := range firstPresent(response.get("attachments"), v.get("attachments")).items() {
		prompt.Content = append(prompt.Content, urlPart(a.pick("contentString|url").str(), pool.DocumentPart, a.pick("mime|mimeType").str(), a.get("name").str(), a))
	}
	answer := &chatctx.Message{Role: pool.Assistant, Created: prompt.Created}
	answer.Meta.Model = response.at("metrics", "model").str()
	tokens(answer, response.get("metrics"), []string{"prompt_tokens"}, []string{"completion_tokens"}, nil, nil)
	tu := newTurn(answer, id)
	tu.content(firstPresent(response.get("text"), response), "type", nil)
	msgs := tu.done()
	if len(msgs[0].Content) == 0 {
		msgs = nil // no answer came
	}
	t.r.whole(at, v, append([]*chatctx.Message{prompt}, msgs...)...)
	t.add(at, id, t.last(), prompt)
	if msgs != nil {
		t.add(at, id+"/answer", t.last(), msgs...)
	}
}
