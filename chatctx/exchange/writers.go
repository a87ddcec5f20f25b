package exchange

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/pool"
)

// The writers of other programs' formats share these functions. Objects are written with a fixed order of keys and without escapes for HTML.

// field is a member of an object to be written.
type field struct {
	key   string
	value any
}

// jsonObject returns an object of the fields whose value is not nil: strings, raw JSON, lists of raw JSON, booleans.
func jsonObject(fields ...field) json.RawMessage {
	w := objectWriter{}
	for _, f := range fields {
		switch x := f.value.(type) {
		case nil:
		case string:
			w.addRaw(f.key, jsonText(x))
		case json.RawMessage:
			w.addRaw(f.key, x)
		case []json.RawMessage:
			w.addRaw(f.key, jsonList(x))
		case bool:
			w.addRaw(f.key, json.RawMessage(map[bool]string{true: "true", false: "false"}[x]))
		case int:
			w.addRaw(f.key, json.RawMessage(itoa(x)))
		}
	}
	if b := w.done(); b != nil {
		return b
	}
	return json.RawMessage("{}")
}

func jsonList(list []json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage{'['}, bytes.Join(rawBytes(list), []byte{','})...), ']')
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, r := range list {
		out[i] = r
	}
	return out
}

// orNil returns nil for an empty text, so that its field is left out.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// line writes a value and ends the line.
func (x *Writing) line(v json.RawMessage) {
	x.Out.Write(v)
	x.Out.WriteByte('\n')
}

// sent returns the messages of a branch that go to a provider; with Options.Hidden also the others.
func (x *Writing) sent(ctx context.Context, snap *chatctx.Snapshot) iter.Seq2[*chatctx.Entry, error] {
	return func(yield func(*chatctx.Entry, error) bool) {
		for e, err := range snap.Entries(ctx, 1, 0) {
			if (err != nil || !e.Unsent || x.Options.Hidden) && !yield(e, err) {
				return
			}
		}
	}
}

// listed writes a list item by item, so that only one is in memory: before, then each item that each adds, then after.
func (x *Writing) listed(before string, each func(add func(json.RawMessage)) error, after string) error {
	x.Out.WriteString(before)
	next := "["
	err := each(func(item json.RawMessage) {
		x.Out.WriteString(next)
		x.Out.Write(item)
		next = ","
	})
	if next == "[" {
		x.Out.WriteString(next)
	}
	x.Out.WriteString("]" + after + "\n")
	return err
}

// argumentsOf returns a call's arguments, {} if it has none.
func argumentsOf(c *pool.Call) json.RawMessage {
	if len(c.Arguments) == 0 {
		return json.RawMessage("{}")
	}
	return c.Arguments
}

// dataOf returns the bytes of an image or document in the store, and their media type.
func (x *Writing) dataOf(ctx context.Context, p *pool.Part) ([]byte, string, error) {
	if len(p.Data) > 0 {
		return p.Data, p.MediaType, nil
	}
	if p.SHA256 == (pool.Hash{}) {
		return nil, "", nil
	}
	data, mediaType, err := x.Artifact(ctx, p.SHA256)
	return data, firstOf(p.MediaType, mediaType), err
}

// blocksOf returns a message's content as blocks of Anthropic's API.
func (x *Writing) blocksOf(ctx context.Context, m *chatctx.Message) ([]json.RawMessage, error) {
	return asBlocks(m, m.Content, toolUse, func(p *pool.Part) (json.RawMessage, error) { return x.block(ctx, p) })
}

// asBlocks returns parts of a message as blocks: calls where they were made, and those without a place at the end. A nil block leaves its part out.
func asBlocks(m *chatctx.Message, parts []pool.Part, call func(*pool.Call) json.RawMessage, block func(*pool.Part) (json.RawMessage, error)) ([]json.RawMessage, error) {
	out := []json.RawMessage{}
	placed := map[string]bool{}
	for i := range parts {
		p := &parts[i]
		if p.Type == pool.CallPart {
			if c := show.CallOf(m, p.CallID); c != nil {
				out, placed[c.ID] = append(out, call(c)), true
			}
			continue
		}
		b, err := block(p)
		if err != nil {
			return nil, err
		}
		if b != nil {
			out = append(out, b)
		}
	}
	for i := range m.Calls {
		if c := &m.Calls[i]; !placed[c.ID] {
			out = append(out, call(c))
		}
	}
	return out, nil
}

func toolUse(c *pool.Call) json.RawMessage {
	if c.Provider == anthropicProvider && c.Raw != nil {
		return c.Raw
	}
	return jsonObject(field{"type", "tool_use"}, field{"id", c.ID}, field{"name", c.Tool}, field{"input", argumentsOf(c)})
}

func (x *Writing) block(ctx context.Context, p *pool.Part) (json.RawMessage, error) {
	switch p.Type {
	case pool.TextPart:
		if p.Raw != nil && p.Provider == anthropicProvider {
			return p.Raw, nil
		}
		return jsonObject(field{"type", "text"}, field{"text", p.Text}), nil
	case pool.ThinkingPart:
		switch {
		case p.Raw != nil && p.Provider == anthropicProvider:
			return p.Raw, nil
		case p.Redacted != "":
			return jsonObject(field{"type", "redacted_thinking"}, field{"data", p.Redacted}), nil
		}
		return jsonObject(field{"type", "thinking"}, field{"thinking", p.Text}, field{"signature", p.Signature}), nil
	case pool.ImagePart, pool.DocumentPart:
		data, mediaType, err := x.dataOf(ctx, p)
		source := jsonObject(field{"type", "base64"}, field{"media_type", mediaType}, field{"data", base64.StdEncoding.EncodeToString(data)})
		if data == nil {
			if p.URL == "" {
				return nil, err
			}
			source = jsonObject(field{"type", "url"}, field{"url", p.URL})
		}
		return jsonObject(field{"type", p.Type}, field{"source", source}, field{"title", orNil(p.Name)}), err
	}
	return p.Raw, nil
}

// toolResultOf returns a result as a block of Anthropic's API.
func (x *Writing) toolResultOf(ctx context.Context, r *pool.Result) (json.RawMessage, error) {
	var content any = r.Text
	switch {
	case len(r.Parts) > 0:
		list := []json.RawMessage{}
		for i := range r.Parts {
			b, err := x.block(ctx, &r.Parts[i])
			if err != nil {
				return nil, err
			}
			if b != nil {
				list = append(list, b)
			}
		}
		content = list
	case len(r.JSON) > 0:
		content = string(r.JSON)
	}
	return jsonObject(field{"type", "tool_result"}, field{"tool_use_id", r.RequestID}, field{"content", content}, field{"is_error", r.IsError}), nil
}

// plainContent returns content for formats that accept a text or parts: a text if there is nothing else, nil if there is no content.
func (x *Writing) plainContent(ctx context.Context, parts []pool.Part) (any, error) {
	list := []json.RawMessage{}
	for i := range parts {
		p := &parts[i]
		switch p.Type {
		case pool.CallPart, pool.ThinkingPart, "refusal":
		case pool.TextPart:
			if len(parts) == 1 {
				return p.Text, nil
			}
			list = append(list, jsonObject(field{"type", "text"}, field{"text", p.Text}))
		case pool.ImagePart, pool.DocumentPart:
			data, mediaType, err := x.dataOf(ctx, p)
			if err != nil {
				return nil, err
			}
			list = append(list, mediaJSON(p, data, mediaType))
		default:
			if p.Raw != nil {
				list = append(list, p.Raw)
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if text, ok := onlyText(parts); ok {
		return text, nil
	}
	return list, nil
}

// onlyText returns the text of content with a single text besides calls and thoughts.
func onlyText(parts []pool.Part) (text string, ok bool) {
	n := 0
	for i := range parts {
		switch parts[i].Type {
		case pool.TextPart:
			n, text = n+1, parts[i].Text
		case pool.CallPart, pool.ThinkingPart, "refusal":
		default:
			return "", false
		}
	}
	return text, n == 1
}

// mediaJSON returns an image or a file in the form of OpenAI's API.
func mediaJSON(p *pool.Part, data []byte, mediaType string) json.RawMessage {
	u := p.URL
	if data != nil {
		u = "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
	}
	if p.Type == pool.ImagePart {
		return jsonObject(field{"type", "image_url"}, field{"image_url", jsonObject(field{"url", u})})
	}
	return jsonObject(field{"type", "file"}, field{"file", jsonObject(field{"filename", orNil(p.Name)}, field{"file_data", u})})
}

// thoughtsOf returns a message's reasoning, joined.
func thoughtsOf(m *chatctx.Message) string {
	var texts []string
	for i := range m.Content {
		if p := &m.Content[i]; p.Type == pool.ThinkingPart && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// resultText returns a result as text.
func resultText(r *pool.Result) string {
	switch {
	case len(r.Parts) > 0:
		return textOf(r.Parts)
	case len(r.JSON) > 0:
		return string(r.JSON)
	}
	return r.Text
}

// writeOpenAI writes a branch as one line {messages}, as in fine-tuning files and requests of Chat Completions.
func writeOpenAI(ctx context.Context, x *Writing) error {
	snap, err := x.Context.Snapshot(ctx, x.Options.Branch)
	if err != nil {
		return err
	}
	return x.listed(`{"messages":`, func(add func(json.RawMessage)) error {
		if snap.Info.System != "" {
			add(jsonObject(field{"role", "system"}, field{"content", snap.Info.System}))
		}
		for e, err := range x.sent(ctx, snap) {
			if err != nil {
				return err
			}
			m, err := x.openAIMessage(ctx, e.Message)
			if err != nil {
				return err
			}
			add(m)
		}
		return nil
	}, "}")
}

func (x *Writing) openAIMessage(ctx context.Context, m *chatctx.Message) (json.RawMessage, error) {
	if m.Result != nil {
		return jsonObject(field{"role", "tool"}, field{"tool_call_id", m.Result.RequestID}, field{"content", resultText(m.Result)}), nil
	}
	content, err := x.plainContent(ctx, m.Content)
	if err != nil {
		return nil, err
	}
	if content == nil {
		content = json.RawMessage("null")
	}
	role := string(m.Role)
	if m.Source != nil && m.Source.Role == "developer" {
		role = "developer"
	}
	var calls any
	if len(m.Calls) > 0 {
		list := []json.RawMessage{}
		for i := range m.Calls {
			c := &m.Calls[i]
			list = append(list, jsonObject(field{"id", c.ID}, field{"type", "function"},
				field{"function", jsonObject(field{"name", c.Tool}, field{"arguments", callText(c)})}))
		}
		calls = list
	}
	var refusal any
	for i := range m.Content {
		if m.Content[i].Type == "refusal" {
			refusal = m.Content[i].Text
		}
	}
	return jsonObject(field{"role", role}, field{"content", content}, field{"reasoning_content", orNil(thoughtsOf(m))},
		field{"refusal", refusal}, field{"tool_calls", calls}), nil
}

// callText returns a call's arguments in OpenAI's form: JSON in a string. Arguments that are a string are text that was not JSON.
func callText(c *pool.Call) string {
	var s string
	if json.Unmarshal(argumentsOf(c), &s) == nil {
		return s
	}
	return string(argumentsOf(c))
}

// writeAnthropic writes a branch as the system text and messages of a request.
func writeAnthropic(ctx context.Context, x *Writing) error {
	snap, err := x.Context.Snapshot(ctx, x.Options.Branch)
	if err != nil {
		return err
	}
	system, model := snap.Info.System, ""
	leading := 0
	first := true // only system messages came so far
	for e, err := range x.sent(ctx, snap) {
		if err != nil {
			return err
		}
		if first = first && e.Role == pool.System; first {
			leading++
			if system != "" {
				system += "\n\n"
			}
			system += e.Text()
		}
		if !first && e.Meta.Provider == anthropicProvider {
			model = firstOf(e.Meta.Model, model)
		}
	}
	head := jsonObject(field{"model", firstOf(model, "claude")}, field{"max_tokens", 4096}, field{"system", orNil(system)})
	return x.listed(string(head[:len(head)-1])+`,"messages":`, func(add func(json.RawMessage)) error { return x.anthropicMessages(ctx, snap, leading, add) }, "}")
}

// anthropicMessages writes the messages after the leading ones. The results for one reply go into one message.
func (x *Writing) anthropicMessages(ctx context.Context, snap *chatctx.Snapshot, leading int, add func(json.RawMessage)) error {
	var results []json.RawMessage
	put := func(role string, content []json.RawMessage) {
		add(jsonObject(field{"role", role}, field{"content", content}))
	}
	for e, err := range x.sent(ctx, snap) {
		if err != nil {
			return err
		}
		if leading > 0 {
			leading--
			continue
		}
		if e.Result != nil {
			b, err := x.toolResultOf(ctx, e.Result)
			if err != nil {
				return err
			}
			results = append(results, b)
			continue
		}
		if len(results) > 0 {
			put("user", results)
			results = nil
		}
		content, err := x.blocksOf(ctx, e.Message)
		if err != nil {
			return err
		}
		role := "user"
		if e.Role == pool.Assistant {
			role = "assistant"
		}
		put(role, content)
	}
	if len(results) > 0 {
		put("user", results)
	}
	return nil
}
