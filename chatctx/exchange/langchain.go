package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// LangChain's messages have three forms: stored {type, data}, constructor {lc, type: constructor, id, kwargs}, and flat {type, content}. A file is one
// conversation. The ids of constructors only give the type of message.

const langChainName = "langchain"

func detectLangChain(h *head) bool {
	return langChainMessage(h.first())
}

// langChainTypes are the types of flat and stored messages.
var langChainTypes = keys("human", "ai", "system", "tool", "function", "chat", "generic", "remove", "developer", "AIMessageChunk", "HumanMessageChunk",
	"SystemMessageChunk", "ToolMessageChunk", "FunctionMessageChunk", "ChatMessageChunk")

func langChainMessage(v value) bool {
	if n, ok := v.get("lc").int(); ok && n > 0 && v.get("id").is(arrayKind) {
		return true
	}
	return langChainTypes[v.get("type").str()] && (v.get("data").is(objectKind) || v.has("content"))
}

func readLangChain(r *reading) error {
	l := &langChain{r: r, t: r.thread(place{})}
	return r.atEnd(r.eachItem("", l.message), func() error {
		return l.t.emit(&record.Incoming{Conversation: l.t.contentID(value{})}, l.t.last())
	})
}

type langChain struct {
	r *reading
	t *thread
	n int
}

// langChainClasses maps the names of classes to types of messages.
var langChainClasses = map[string]string{
	"HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system", "ToolMessage": "tool", "FunctionMessage": "function", "ChatMessage": "chat",
	"AIMessageChunk": "ai", "HumanMessageChunk": "human", "RemoveMessage": "remove", "SystemMessageChunk": "system", "ToolMessageChunk": "tool",
	"FunctionMessageChunk": "function", "ChatMessageChunk": "chat",
}

func (l *langChain) message(at place, v value) error {
	l.n++
	id := itoa(l.n)
	typ, data := v.get("type").str(), v
	switch {
	case v.get("lc").d != nil:
		class := ""
		for it := range v.get("id").items() {
			class = it.str()
		}
		data = v.get("kwargs")
		if typ = langChainClasses[class]; v.get("type").str() != "constructor" || typ == "" {
			l.t.skip(at, "", "", "the object %q is no message that can be read, and is left out", show.Clip(class, 60))
			return nil
		}
	case v.get("data").is(objectKind):
		data = v.get("data")
	}
	if c, ok := langChainClasses[typ]; ok {
		typ = c
	}
	if typ == "remove" {
		l.t.keep(v)
		l.r.structural(1)
		return nil
	}
	if !data.is(objectKind) || !data.has("content") {
		l.t.skip(at, "", "", "the message has no content and is left out")
		return nil
	}
	m := langChainRead(typ, data, id)
	l.r.whole(at, v, m)
	l.t.next(at, id, m)
	return nil
}

func langChainRead(typ string, v value, id string) *chatctx.Message {
	if typ == "tool" || typ == "function" {
		m := toolResult(v.get("tool_call_id").str(), v.get("name").str(), langChainContent(v.get("content")))
		m.Result.IsError = v.get("status").str() == "error"
		return m
	}
	m := &chatctx.Message{}
	if typ == "chat" || typ == "generic" {
		roleOf(m, v.get("role").str())
	} else {
		roleOf(m, typ)
	}
	m.Content = langChainContent(v.get("content"))
	if text := v.at("additional_kwargs", "reasoning_content").str(); text != "" {
		m.Content = append([]pool.Part{{Type: pool.ThinkingPart, Text: text}}, m.Content...)
	}
	if m.Role == pool.Assistant {
		langChainCalls(m, v, id)
		meta := v.get("response_metadata")
		m.Meta.Model = firstOf(meta.get("model_name").str(), meta.get("model").str())
		m.Meta.Provider = meta.get("model_provider").str()
		m.Meta.FinishReason = firstOf(meta.get("finish_reason").str(), meta.get("stop_reason").str())
		openaiUsage(m, v.get("usage_metadata"))
	}
	return m
}

// langChainCalls adds the calls, each once, even if they are listed twice.
func langChainCalls(m *chatctx.Message, v value, id string) {
	for tc := range v.get("tool_calls").items() {
		call, _ := newCall(tc.get("id").str(), tc.get("name").str(), tc.get("args"))
		addCall(m, call, id)
	}
	for tc := range v.get("invalid_tool_calls").items() {
		call, _ := newCall(tc.get("id").str(), tc.get("name").str(), tc.get("args"))
		addCall(m, call, id)
	}
	if len(m.Calls) > 0 {
		return
	}
	more := v.get("additional_kwargs")
	for tc := range more.get("tool_calls").items() {
		call, _ := newCall(tc.get("id").str(), tc.at("function", "name").str(), tc.at("function", "arguments"))
		addCall(m, call, id)
	}
	if f := more.get("function_call"); f.is(objectKind) && len(m.Calls) == 0 {
		call, _ := newCall("", f.get("name").str(), f.get("arguments"))
		addCall(m, call, id)
	}
}

func langChainContent(v value) []pool.Part {
	if v.is(stringKind) && v.str() == "" {
		return nil
	}
	if !v.is(arrayKind) {
		return contentParts(v)
	}
	var parts []pool.Part
	for it := range v.items() {
		switch it.get("type").str() {
		case "reasoning":
			text := firstOf(it.get("reasoning").str(), textOf(contentParts(it.get("summary"))))
			parts = append(parts, pool.Part{Type: pool.ThinkingPart, Text: text, Raw: rawBeyond(it, keys("type", "reasoning"))})
		case "thinking":
			parts = append(parts, pool.Part{Type: pool.ThinkingPart, Text: it.get("thinking").str(), Signature: it.get("signature").str(),
				Provider: anthropicProvider})
		case "tool_use", "tool_call": // they are in tool_calls
		default:
			if it.is(stringKind) {
				parts = append(parts, textPart(it.str()))
			} else {
				parts = append(parts, contentPart(it))
			}
		}
	}
	return parts
}
