package openai

import (
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/replies"
)

// ownMembers are members of messages and calls in which a server gives its model's thinking, signed or encrypted, and which it wants back unchanged: Google's
// extra_content, without which it refuses calls, and OpenRouter's reasoning_details.
var ownMembers = []string{"extra_content", "reasoning_details"}

// own reports whether what a reply's server added is sent back: only to the model that it is from, under the name that its server gives it, since other servers
// refuse members that they do not know: openai/gpt-5 is OpenRouter's.
func (r *request) own(provider, model string) bool {
	return provider == Provider && model != "" && maker(model) == maker(r.model.Name) && adapter.Undated(model) == adapter.Undated(r.model.Name)
}

// maker returns what stands before a model's name. Google puts "models" there, or nothing.
func maker(model string) string {
	return strings.TrimSuffix(strings.ToLower(model[:strings.LastIndexByte(model, '/')+1]), "models/")
}

// own returns the ownMembers of a message or a call.
func own(raw json.RawMessage) jsontree.Members {
	o, err := jsontree.ParseObject(raw)
	if err != nil {
		return nil
	}
	var list jsontree.Members
	for _, name := range ownMembers {
		value := o.Get(name)
		if name == "reasoning_details" {
			value = whole(value)
		}
		if len(value) > 0 {
			list = append(list, jsontree.Field{Name: name, Value: value})
		}
	}
	return list
}

// whole joins the pieces in which a stream brings the texts of reasoning_details; each piece has the type and the index of the one before it.
func whole(details json.RawMessage) json.RawMessage {
	var pieces, list []json.RawMessage
	if json.Unmarshal(details, &pieces) != nil {
		return nil
	}
	var last jsontree.Members
	for _, raw := range pieces {
		o, err := jsontree.ParseObject(raw)
		if err == nil && continues(last, o) {
			for _, m := range o {
				last.Set(m.Name, joined(m.Name, last.Get(m.Name), m.Value))
			}
			list[len(list)-1] = last.Bytes()
			continue
		}
		last = o
		list = append(list, raw)
	}
	if len(list) == 0 {
		return nil
	}
	return replies.Array(list)
}

// continues reports whether a piece goes on with the text or summary of the last one.
func continues(last, piece jsontree.Members) bool {
	typ := string(piece.Get("type"))
	return (typ == `"reasoning.text"` || typ == `"reasoning.summary"`) && typ == string(last.Get("type")) &&
		string(last.Get("index")) == string(piece.Get("index")) && len(last.Get("signature")) == 0
}

// joined returns the value of a member after one more piece: texts grow, and anything else that is there replaces what was there.
func joined(name string, value, more json.RawMessage) json.RawMessage {
	switch {
	case string(more) == "null" && len(value) > 0:
		return value
	case name == "text" || name == "summary":
		return jsontree.Quote(string(text(value) + text(more)))
	}
	return more
}
