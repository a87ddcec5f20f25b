package exchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Anthropic's Messages API: requests {model, system, messages}, responses {type: message, role, content}, and replies as event streams.

const anthropicName = "anthropic-messages"

func detectAnthropic(h *head) bool {
	if bytes.HasPrefix(h.text, []byte("event: message_start")) {
		return true
	}
	return !h.array && h.any(anthropicItem) || h.array && anthropicItem(h.first())
}

func anthropicItem(v value) bool {
	if v.get("type").str() == "message" && v.get("role").is(stringKind) && v.get("content").is(arrayKind) {
		t := v.get("content").first().get("type").str()
		return t != "output_text" && t != "input_text"
	}
	if !v.get("messages").first().get("role").is(stringKind) {
		return false
	}
	if v.has("max_tokens") && !likeOpenAI(v) || v.get("system").kind() > nullKind && !v.has("conversations") {
		return true
	}
	for m := range v.get("messages").items() {
		for b := range m.get("content").items() {
			switch b.get("type").str() {
			case "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use":
				return true
			}
			if b.get("source").is(objectKind) {
				return true
			}
		}
	}
	return false
}

// likeOpenAI reports whether a request is one of OpenAI's, which have max_tokens too: it looks at the model, the tools and the roles.
func likeOpenAI(v value) bool {
	if model := v.get("model").str(); startsWith(model, []string{"gpt", "o1", "o3", "o4", "chatgpt", "ft:"}) {
		return true
	}
	if v.get("tools").first().get("type").str() == "function" {
		return true
	}
	for m := range v.get("messages").items() {
		switch m.get("role").str() {
		case "system", "developer", "tool", "function":
			return true
		}
	}
	return false
}

func readAnthropic(r *reading) error {
	if bytes.HasPrefix(r.head.text, []byte("event: ")) {
		return readAnthropicStream(r)
	}
	return r.eachItem("", func(at place, v value) error {
		if !v.is(objectKind) {
			r.skipContext(0, at, "%s that is not a request is left out", v.kind())
			return nil
		}
		return readAnthropicItem(r, at, v)
	})
}

func readAnthropicItem(r *reading, at place, v value) error {
	t := r.thread(at)
	in := &record.Incoming{}
	model := v.get("model").str()
	if !v.get("messages").is(arrayKind) {
		in.Conversation = v.get("id").str()
		anthropicMessage(t, at, "1", v, model)
		v.taken()
	} else {
		t.system(textOf(contentParts(v.get("system"))))
		n := 0
		for m := range v.get("messages").items() {
			n++
			anthropicMessage(t, at.in("message "+itoa(n)), itoa(n), m, model)
		}
	}
	in.Conversation = firstOf(in.Conversation, t.contentID(v))
	t.r.about(in, v, allTexts(contentParts(v.get("system")))...)
	return t.emit(in, t.last())
}

func anthropicMessage(t *thread, at place, id string, v value, model string) {
	role := v.get("role").str()
	if role == "" {
		t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	}
	m := &chatctx.Message{}
	roleOf(m, role)
	if m.Role == pool.Assistant {
		m.Meta.Provider, m.Meta.Model = anthropicProvider, model
		m.Meta.FinishReason = v.get("stop_reason").str()
		m.Unfinished = v.get(unstopped).bool()
		anthropicUsage(m, v.get("usage"))
	}
	msgs := blocks(m, v.get("content"), id)
	t.r.whole(at, v, msgs...)
	t.next(at, id, msgs...)
}

// readAnthropicStream assembles the events of a reply and reads the resulting message.
func readAnthropicStream(r *reading) error {
	s := &anthropicStream{r: r}
	lines := liner{r: bufio.NewReader(r.buf), max: r.limits.Line}
	for {
		line, err := lines.next()
		if err == io.EOF {
			return s.end()
		}
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if !ok {
			continue
		}
		v, _, perr := r.parse(atLine(lines.line), data)
		if perr != nil {
			r.skip(0, atLine(lines.line), "the event is not JSON and is left out: %v", perr)
			continue
		}
		if err := s.event(v); err != nil {
			return err
		}
	}
}

// unstopped marks a message whose end is not in the stream.
const unstopped = "unstopped"

type anthropicStream struct {
	r          *reading
	message    map[string]json.RawMessage
	blocks     []map[string]json.RawMessage
	text       []byte // of the block being read
	signature  []byte
	kind       string
	partial    []byte
	usage      map[string]json.RawMessage
	stopReason json.RawMessage
	stopped    bool
}

func (s *anthropicStream) event(v value) error {
	switch v.get("type").str() {
	case "message_start":
		if err := s.end(); err != nil {
			return err
		}
		s.message, s.usage = rawObject(v.get("message")), rawObject(v.at("message", "usage"))
	case "content_block_start":
		b := v.get("content_block")
		s.kind, s.text, s.signature, s.partial = b.get("type").str(), nil, nil, nil
		s.text = append(s.text, b.get("text").str()+b.get("thinking").str()...)
		s.blocks = append(s.blocks, rawObject(b))
	case "content_block_delta":
		d := v.get("delta")
		s.text = append(s.text, d.get("text").str()+d.get("thinking").str()...)
		s.signature = append(s.signature, d.get("signature").str()...)
		s.partial = append(s.partial, d.get("partial_json").str()...)
	case "content_block_stop":
		s.stop()
	case "message_stop":
		s.stopped = true
	case "message_delta":
		for k, x := range v.get("usage").members() {
			if s.usage == nil {
				s.usage = map[string]json.RawMessage{}
			}
			s.usage[k] = x.keep()
		}
		s.stopReason = v.at("delta", "stop_reason").keep()
	}
	return nil
}

// stop finishes the block being read.
func (s *anthropicStream) stop() {
	if len(s.blocks) == 0 {
		return
	}
	b := s.blocks[len(s.blocks)-1]
	switch s.kind {
	case "text":
		b["text"] = jsonText(string(s.text))
	case "thinking":
		b["thinking"] = jsonText(string(s.text))
		if len(s.signature) > 0 {
			b["signature"] = jsonText(string(s.signature))
		}
	}
	if len(s.partial) > 0 && json.Valid(s.partial) {
		b["input"] = s.partial
	}
	s.kind = ""
}

// end passes on the message that the events made.
func (s *anthropicStream) end() error {
	if s.message == nil {
		return nil
	}
	if s.kind != "" {
		s.stop()
	}
	m := s.message
	if !s.stopped {
		s.r.warn(place{}, "the stream ends before the message does; the part that came is kept as unfinished")
		m[unstopped] = json.RawMessage("true")
	}
	s.stopped = false
	m["content"], _ = json.Marshal(s.blocks)
	if s.blocks == nil {
		m["content"] = json.RawMessage("[]")
	}
	m["usage"], _ = json.Marshal(s.usage)
	if s.stopReason != nil {
		m["stop_reason"] = s.stopReason
	}
	s.message, s.blocks = nil, nil
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	v, _, err := new(document).parse(text, false)
	if err != nil {
		return err
	}
	return readAnthropicItem(s.r, place{}, v)
}

// rawObject returns a copy of an object's members.
func rawObject(v value) map[string]json.RawMessage {
	o := map[string]json.RawMessage{}
	for k, x := range v.members() {
		o[k] = x.keep()
	}
	return o
}
