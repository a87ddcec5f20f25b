package adaptertest

import "slices"

var ollamaTop = []string{"model!", "messages!", "format", "keep_alive", "logprobs", "options", "shift", "stream", "think", "tools", "top_logprobs", "truncate"}

// ValidateOllama returns the violations of Ollama's chat in a body, nil if there are none. Its server checks little; the models' templates require the rest.
func ValidateOllama(body []byte) error {
	j := &judge{}
	o := j.read(body)
	if o == nil {
		return j.err()
	}
	j.keys("body", o, ollamaTop...)
	if text(o["model"]) == "" {
		j.wrongf("no model")
	}
	switch think := o["think"].(type) {
	case nil, bool:
	case string:
		if !slices.Contains([]string{"low", "medium", "high", "max"}, think) {
			j.wrongf("think %q", think)
		}
	default:
		j.wrongf("think %v", think)
	}
	if f, has := o["format"]; has && f != "json" && members(f) == nil {
		j.wrongf("format %v", f)
	}
	for _, v := range list(o["tools"]) {
		f := members(members(v)["function"])
		j.keys("function", f, "name!", "description", "parameters!")
		j.schema("function", f["parameters"])
		for name, p := range members(members(f["parameters"])["properties"]) {
			if members(p) == nil {
				j.wrongf("property %s is no object", name)
			}
		}
	}
	messages := list(o["messages"])
	if len(messages) == 0 {
		j.wrongf("no messages")
	}
	j.ollamaMessages(messages)
	return j.err()
}

func (j *judge) ollamaMessages(messages []any) {
	var waiting []object // calls in order that must be answered next
	for n, v := range messages {
		m := members(v)
		j.keys("message", m, "role!", "content!", "images", "thinking", "tool_calls", "tool_name", "tool_call_id")
		role := text(m["role"])
		if !isText(m["content"]) {
			j.wrongf("message %d: content is no text", n)
		}
		empty := j.isBlank(text(m["content"]))
		if empty && m["images"] == nil && m["tool_calls"] == nil {
			j.wrongf("message %d: nothing in it", n)
		}
		for _, i := range list(m["images"]) {
			if role != "user" {
				j.wrongf("message %d: an image of %s", n, role)
			}
			j.ollamaImage(text(i))
		}
		if role == "tool" {
			waiting = j.ollamaAnswer(n, m, waiting)
			continue
		}
		if len(waiting) > 0 {
			j.wrongf("message %d: %d calls before it are not answered", n, len(waiting))
		}
		waiting = nil
		if role != "system" && role != "user" && role != "assistant" {
			j.wrongf("message %d: role %q", n, role)
		}
		for _, c := range list(m["tool_calls"]) {
			f := members(members(c)["function"])
			if role != "assistant" || text(f["name"]) == "" || members(f["arguments"]) == nil {
				j.wrongf("message %d: a call of %s, without a name, or whose arguments are no object", n, role)
			}
			waiting = append(waiting, members(c))
		}
	}
	if len(waiting) > 0 {
		j.wrongf("the last calls are not answered")
	}
	if n := len(messages); n > 0 && text(members(messages[n-1])["role"]) == "assistant" {
		j.wrongf("ends with an assistant")
	}
}

func (j *judge) ollamaAnswer(n int, m object, waiting []object) []object {
	if len(waiting) == 0 {
		j.wrongf("message %d: an answer without a call", n)
		return nil
	}
	call := waiting[0]
	if m["tool_name"] != members(call["function"])["name"] || m["tool_call_id"] != call["id"] {
		j.wrongf("message %d: an answer to another call", n)
	}
	return waiting[1:]
}

func (j *judge) ollamaImage(data string) {
	for _, kind := range []string{"image/png", "image/jpeg", "image/webp"} {
		try := &judge{}
		if try.media("image", kind, data, kind); try.err() == nil {
			return
		}
	}
	j.wrongf("an image that is none of PNG, JPEG, WebP, or no bare base64")
}
