package exchange

import (
	"bytes"
	"io"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// An aichat session is YAML: a model, the messages that were summarized already, and those since. Images are under data_urls, by the hashes that messages name.

const aichatName = "aichat"

func detectAichat(h *head) bool {
	text := h.text
	if len(h.values) > 0 || !bytes.Contains(text, []byte("messages:")) {
		return false
	}
	return (bytes.HasPrefix(text, []byte("model:")) || bytes.Contains(text, []byte("\nmodel:"))) && bytes.Contains(text, []byte("role:")) &&
		(bytes.HasPrefix(text, []byte("messages:")) || bytes.Contains(text, []byte("\nmessages:")) || bytes.Contains(text, []byte("\ncompressed_messages:")))
}

func readAichat(r *reading) error {
	text, err := io.ReadAll(io.LimitReader(r.buf, int64(r.limits.Item)+1))
	if err != nil {
		return err
	}
	if len(text) > r.limits.Item {
		r.skipContext(0, place{}, "a session of more than %d MB is left out", r.limits.Item>>20)
		return nil
	}
	utf8, _ := repairUTF8(text)
	raw, err := yamlJSON(utf8)
	if err != nil {
		return err
	}
	v, _, err := new(document).parse(raw, false)
	if err != nil {
		return err
	}
	r.repeatedKeys(place{}, v)
	a := &aichat{t: r.thread(place{}), urls: v.get("data_urls"), model: v.get("model").str()}
	a.messages(v.get("compressed_messages"))
	a.messages(v.get("messages"))
	in := &record.Incoming{Title: r.stem(), Conversation: r.stem(), System: v.get("agent_instructions").str()}
	return a.t.handOn(in, v, "")
}

type aichat struct {
	t     *thread
	urls  value
	model string
	n     int
}

func (a *aichat) messages(list value) {
	for v := range list.items() {
		a.n++
		at, id := a.t.at.in("message "+itoa(a.n)), itoa(a.n)
		if v.get("role").str() == "" {
			a.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
			continue
		}
		m := &chatctx.Message{}
		roleOf(m, v.get("role").str())
		if m.Role == pool.Assistant || v.get("role").str() == "tool" {
			m.Role, m.Meta.Model, m.Source = pool.Assistant, a.model, nil
		}
		t := newTurn(m, id)
		body := v.get("content")
		t.content(body.get("text"), "type", nil)
		for res := range body.get("tool_results").items() {
			name := res.at("call", "name").str()
			call := t.call(res.at("call", "id").str(), name, res.at("call", "arguments"))
			t.result(call, name, res.get("output"), false)
		}
		if !body.is(objectKind) {
			t.content(body, "type", map[string]partReader{"text": saying("text"), "image_url": a.image})
		}
		a.t.take(at, id, a.t.last(), v, t.done()...)
	}
}

// image reads an image: its address, or the hash of one.
func (a *aichat) image(t *turn, p value) {
	u := p.at("image_url", "url").str()
	if kept := a.urls.get(u); kept.is(stringKind) {
		kept.taken()
		t.put(urlPart(kept.str(), pool.ImagePart, "", "", kept))
		return
	}
	t.put(urlPart(u, pool.ImagePart, "", "", p))
}
