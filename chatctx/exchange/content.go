package exchange

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Content in the formats that follow the APIs of OpenAI and Anthropic.

// textPart returns a part of plain text.
func textPart(s string) pool.Part { return pool.Part{Type: pool.TextPart, Text: s} }

// contentParts returns the parts of a text, or of a list of parts in the form of OpenAI's APIs and similar ones.
func contentParts(v value) []pool.Part {
	switch v.kind() {
	case stringKind:
		return []pool.Part{textPart(v.str())}
	case objectKind:
		return []pool.Part{contentPart(v)}
	case arrayKind:
		parts := make([]pool.Part, 0, v.len())
		for it := range v.items() {
			parts = append(parts, itemParts(it)...)
		}
		return parts
	case numberKind, boolKind:
		return []pool.Part{textPart(string(v.keep()))}
	}
	return nil
}

// itemParts returns the part of an item of a list, none for null.
func itemParts(v value) []pool.Part {
	switch v.kind() {
	case stringKind:
		return []pool.Part{textPart(v.str())}
	case objectKind:
		return []pool.Part{contentPart(v)}
	case nullKind:
		return nil
	}
	return []pool.Part{textPart(string(v.keep()))}
}

func contentPart(v value) pool.Part {
	switch v.get("type").str() {
	case "text", "input_text", "output_text", "":
		for _, key := range []string{"text", "value", "content"} {
			switch x := v.get(key); {
			case x.is(stringKind):
				return textPart(x.str())
			case x.get("value").is(stringKind):
				return textPart(x.get("value").str())
			}
		}
	case "refusal":
		return pool.Part{Type: "refusal", Text: v.get("refusal").str(), Raw: v.keep()}
	case "image_url", "input_image":
		x := v.get("image_url")
		return urlPart(firstOf(x.str(), x.get("url").str()), pool.ImagePart, "", "", v)
	case "image":
		if x := v.get("source"); x.is(objectKind) {
			return sourcePart(v)
		}
		return urlPart(firstOf(v.get("image").str(), v.get("url").str(), v.get("data").str(), v.get("value").str()), pool.ImagePart,
			firstOf(v.get("mediaType").str(), v.get("mimeType").str()), "", v)
	case "document":
		return sourcePart(v)
	case "file", "input_file":
		f := v.get("file")
		if !f.is(objectKind) {
			f = v
		}
		name := firstOf(f.get("filename").str(), f.get("name").str())
		return urlPart(firstOf(f.get("file_data").str(), f.get("data").str(), f.get("file_url").str(), f.get("url").str()), pool.DocumentPart,
			firstOf(f.get("mediaType").str(), f.get("mimeType").str()), name, v)
	}
	return unknownPart(v)
}

// sourcePart returns an image or document in the form of Anthropic's API.
func sourcePart(v value) pool.Part {
	src, kind := v.get("source"), v.get("type").str()
	name := firstOf(v.get("title").str(), v.get("name").str())
	switch src.get("type").str() {
	case "base64":
		if b := base64Bytes(src.get("data").str()); len(b) > 0 {
			return dataPart(kind, src.get("media_type").str(), name, b)
		}
	case "url":
		if u := src.get("url").str(); u != "" {
			return pool.Part{Type: kind, URL: u, Name: name}
		}
	case "text":
		if s := src.get("data").str(); s != "" {
			return dataPart(kind, firstOf(src.get("media_type").str(), "text/plain"), name, []byte(s))
		}
	}
	return unknownPart(v)
}

// urlPart returns an image or document from an address, from a data: address, or from bare base64 if its type is known.
func urlPart(s, kind, mediaType, name string, v value) pool.Part {
	switch data, typ, ok := dataURL(s); {
	case ok && len(data) > 0:
		return dataPart(kind, firstOf(mediaType, typ), name, data)
	case s == "" || ok:
	case strings.Contains(s, "://") || strings.HasPrefix(s, "/"):
		return mediaKind(pool.Part{Type: kind, URL: s, MediaType: mediaType, Name: name})
	case mediaType != "":
		if b := base64Bytes(s); len(b) > 0 {
			return dataPart(kind, mediaType, name, b)
		}
	default:
		return mediaKind(pool.Part{Type: kind, URL: s, Name: name})
	}
	return unknownPart(v)
}

// dataPart returns bytes as an image or document of the given type.
func dataPart(kind, mediaType, name string, b []byte) pool.Part {
	p := filePart(name, b)
	if mediaType == "" {
		return p
	}
	p.Type, p.MediaType = kind, mediaType
	return mediaKind(p)
}

// mediaKind sets the type of a part to image or document, by its media type.
func mediaKind(p pool.Part) pool.Part {
	if p.MediaType != "" {
		p.Type = pool.DocumentPart
		if strings.HasPrefix(p.MediaType, "image/") {
			p.Type = pool.ImagePart
		}
	}
	return p
}

// dataURL splits a data: address. ok reports whether it is one, even if its bytes cannot be read.
func dataURL(s string) (data []byte, mediaType string, ok bool) {
	rest, ok := strings.CutPrefix(s, "data:")
	if !ok {
		return nil, "", false
	}
	head, body, _ := strings.Cut(rest, ",")
	head, packed := strings.CutSuffix(head, ";base64")
	mediaType, _, _ = strings.Cut(head, ";")
	if packed {
		return base64Bytes(body), mediaType, true
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, mediaType, true
	}
	return []byte(text), mediaType, true
}

// base64Bytes decodes base64 in either alphabet, with or without padding and line breaks; it returns nil if it cannot.
func base64Bytes(s string) []byte {
	if b, err := base64.StdEncoding.DecodeString(s); err == nil { // it accepts line breaks
		return b
	}
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "").Replace(s), "=")
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}

// newCall returns a call of a file. args is a JSON value, or JSON in a string. A string that is not JSON is kept as a string, and bad is set.
func newCall(id, tool string, args value) (c pool.Call, bad bool) {
	c = pool.Call{ID: id, Tool: firstOf(tool, "unknown")}
	switch {
	case args.is(stringKind):
		c.Arguments, bad = argumentText(args.str())
		args.taken()
	case args.kind() > nullKind:
		c.Arguments = args.keep()
	}
	return c, bad
}

// argumentText parses arguments that are JSON in a string. A text that is not JSON becomes a JSON string, and bad is set.
func argumentText(s string) (args json.RawMessage, bad bool) {
	if strings.TrimSpace(s) == "" {
		return nil, false
	}
	if v, rest, err := new(document).parse([]byte(s), false); err == nil && skipSpace(rest, 0) == len(rest) {
		return v.keep(), false
	}
	return jsonText(s), true
}

// addCall adds a call to a message, at the current end of its content. A call without an id, or with one that the message has already, gets a new one, made
// from the record's id.
func addCall(m *chatctx.Message, c pool.Call, record string) {
	taken := func(id string) bool {
		for i := range m.Calls {
			if m.Calls[i].ID == id {
				return true
			}
		}
		return id == ""
	}
	for n := len(m.Calls) + 1; taken(c.ID); n++ {
		c.ID = "call-" + record + "-" + itoa(n)
	}
	m.Calls = append(m.Calls, c)
	m.Content = append(m.Content, pool.Part{Type: pool.CallPart, CallID: c.ID})
}

// toolResult returns a tool message. A single text part becomes its text.
func toolResult(call, tool string, parts []pool.Part) *chatctx.Message {
	res := &pool.Result{RequestID: call, Tool: tool}
	if len(parts) == 1 && parts[0].Type == pool.TextPart && parts[0].Raw == nil {
		res.Text = parts[0].Text
	} else {
		res.Parts = parts
	}
	return &chatctx.Message{Role: pool.ToolRole, Result: res}
}

// toolOutput returns a tool message of any JSON: a string as text, anything else unchanged.
func toolOutput(call, tool string, v value) *chatctx.Message {
	m := toolResult(call, tool, nil)
	switch {
	case v.is(stringKind):
		m.Result.Text = v.str()
	case v.kind() > nullKind:
		m.Result.JSON = v.keep()
	}
	return m
}

// tokens reads figures from an object of usage: the first key of each list with a number counts.
func tokens(m *chatctx.Message, usage value, input, output, cached, reasoning []string) {
	if !usage.is(objectKind) {
		return
	}
	first := func(keys []string) *int64 {
		for _, k := range keys {
			if n := usage.at(strings.Split(k, ".")...).count(); n != nil {
				return n
			}
		}
		return nil
	}
	m.Meta.InputTokens, m.Meta.OutputTokens = first(input), first(output)
	m.Meta.CacheRead, m.Meta.ReasoningTokens = first(cached), first(reasoning)
	m.Meta.Usage = usage.keep()
}

// openaiUsage reads usage from Chat Completions or Responses.
func openaiUsage(m *chatctx.Message, usage value) {
	tokens(m, usage, []string{"prompt_tokens", "input_tokens"}, []string{"completion_tokens", "output_tokens"},
		[]string{"prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "input_token_details.cache_read", "cached_input_tokens"},
		[]string{"completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens", "output_token_details.reasoning", "reasoning_output_tokens"})
}

// roleOf sets the role of a name. An unknown name becomes user and is kept in the source.
func roleOf(m *chatctx.Message, name string) {
	switch name {
	case "user", "human", "prompter", "USER":
		m.Role = pool.User
	case "assistant", "ai", "gpt", "model", "chatgpt", "bing", "bard", "bot", "ASSISTANT":
		m.Role = pool.Assistant
	case "system":
		m.Role = pool.System
	case "developer":
		m.Role = pool.System
		source(m).Role = name
	default:
		m.Role = pool.User
		source(m).Role = name
	}
}

// keepRest keeps the unread members of a record with the message, under the format's name.
func keepRest(m *chatctx.Message, format string, v value, known map[string]bool) {
	if rest := unknownFields(v, known); rest != nil {
		m.Meta.ProviderData = map[string]json.RawMessage{format: rest}
	}
}

// keys returns a set.
func keys(list ...string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, k := range list {
		set[k] = true
	}
	return set
}

// appData returns data of a conversation under the format's name; nil if there are none.
func appData(format string, raw json.RawMessage) map[string]json.RawMessage {
	if raw == nil {
		return nil
	}
	return map[string]json.RawMessage{format: raw}
}

func itoa(n int) string { return strconv.Itoa(n) }
