package adaptertest

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	word64    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	openaiTop = []string{"model!", "messages!", "audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata",
		"modalities", "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options",
		"prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
		"stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"}
	openaiReasons = regexp.MustCompile(`^(o\d|gpt-5|gpt-6)`)
)

// ValidateOpenAI returns the violations of the Chat Completions API, as OpenAI's own servers apply it, in a body; nil if there are none.
func ValidateOpenAI(body []byte) error {
	j := &judge{}
	o := j.read(body)
	if o == nil {
		return j.err()
	}
	j.keys("body", o, openaiTop...)
	model := text(o["model"])
	if model == "" {
		j.wrongf("no model")
	}
	names := map[string]bool{}
	for _, v := range list(o["tools"]) {
		t := members(v)
		f := members(t["function"])
		j.keys("tool", t, "type!", "function!")
		j.keys("function", f, "name!", "description", "parameters", "strict")
		j.schema("function", f["parameters"])
		if names[text(f["name"])] || !word64.MatchString(text(f["name"])) {
			j.wrongf("tool name %q is bad or doubled", f["name"])
		}
		names[text(f["name"])] = true
	}
	j.openaiTools(o, names)
	messages := list(o["messages"])
	if len(messages) == 0 {
		j.wrongf("no messages")
	}
	j.openaiMessages(messages, strings.HasPrefix(model, "o1-mini") || strings.HasPrefix(model, "o1-preview"))
	j.openaiParameters(o, model, string(body))
	return j.err()
}

// openaiTools judges the fields that need tools.
func (j *judge) openaiTools(o object, names map[string]bool) {
	n := len(list(o["tools"]))
	if _, has := o["tools"]; has && n == 0 || n > 128 {
		j.wrongf("%d tools", n)
	}
	for _, key := range []string{"tool_choice", "parallel_tool_calls"} {
		if _, has := o[key]; has && n == 0 {
			j.wrongf("%s without tools", key)
		}
	}
	if c := members(o["tool_choice"]); c != nil {
		name := text(members(c["function"])["name"])
		if name == "" {
			name = text(c["name"])
		}
		if !names[name] {
			j.wrongf("tool_choice names no tool")
		}
	} else if c := text(o["tool_choice"]); c != "" && c != "none" && c != "auto" && c != "required" {
		j.wrongf("tool_choice %q", c)
	}
}

func (j *judge) openaiParameters(o object, model, body string) {
	j.within(o, "temperature", 0, 2)
	j.within(o, "top_p", 0, 1)
	j.within(o, "max_completion_tokens", 1, 1e9)
	j.within(o, "max_tokens", 1, 1e9)
	if _, has := o["stop"]; has && (len(list(o["stop"])) < 1 || len(list(o["stop"])) > 4) && !isText(o["stop"]) {
		j.wrongf("%d stop texts", len(list(o["stop"])))
	}
	if f := members(o["response_format"]); text(f["type"]) == "json_object" {
		if m, _ := json.Marshal(o["messages"]); !strings.Contains(strings.ToLower(string(m)), "json") {
			j.wrongf("json_object, and the word is nowhere")
		}
	} else if s := members(f["json_schema"]); f != nil && (!word64.MatchString(text(s["name"])) || members(s["schema"]) == nil) {
		j.wrongf("json_schema without name or schema")
	}
	effort, hasEffort := o["reasoning_effort"]
	if !openaiReasons.MatchString(model) || strings.Contains(model, "chat") {
		if hasEffort && strings.HasPrefix(model, "gpt-4") {
			j.wrongf("reasoning_effort on %s", model)
		}
		return
	}
	for _, key := range []string{"max_tokens", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty", "stop"} {
		if _, has := o[key]; has {
			j.wrongf("%s on %s", key, model)
		}
	}
	for _, key := range []string{"temperature", "top_p"} {
		if n, has := number(o[key]); has && n != 1 {
			j.wrongf("%s %g on %s", key, n, model)
		}
	}
	if late := strings.HasPrefix(model, "gpt-5.4") || strings.HasPrefix(model, "gpt-5.6"); late && hasEffort && o["tools"] != nil {
		j.wrongf("reasoning_effort %v and tools on %s", effort, model)
	}
}

// openaiMessages judges the history: each call is answered at once, and each answer has its call.
func (j *judge) openaiMessages(messages []any, noSystem bool) {
	waiting, run := map[string]bool{}, false // run means that answers to the calls may come
	for n, v := range messages {
		m := members(v)
		role := text(m["role"])
		if role != "tool" {
			for id := range waiting {
				j.wrongf("message %d: call %s is not answered", n, id)
			}
			waiting, run = map[string]bool{}, false
		}
		switch role {
		case "system", "developer":
			j.keys(role, m, "role!", "content!", "name")
			j.openaiContent(role, m["content"])
			if noSystem {
				j.wrongf("this model takes no %s message", role)
			}
		case "user":
			j.keys(role, m, "role!", "content!", "name")
			j.openaiContent(role, m["content"])
		case "assistant":
			j.keys(role, m, "role!", "content", "tool_calls", "refusal", "name", "audio")
			if m["content"] != nil || m["tool_calls"] == nil && m["refusal"] == nil {
				j.openaiContent(role, m["content"])
			}
			run = j.openaiCalls(m, waiting)
		case "tool":
			j.keys(role, m, "role!", "content!", "tool_call_id!")
			j.openaiContent(role, m["content"])
			if id := text(m["tool_call_id"]); !run || !waiting[id] {
				j.wrongf("message %d: answer to %q without its call", n, id)
			} else {
				delete(waiting, id)
			}
		default:
			j.wrongf("message %d: role %q", n, role)
		}
	}
	for id := range waiting {
		j.wrongf("call %s is not answered", id)
	}
	if n := len(messages); n > 0 && text(members(messages[n-1])["role"]) == "assistant" {
		j.wrongf("ends with an assistant")
	}
}

func (j *judge) openaiCalls(m object, waiting map[string]bool) bool {
	calls := list(m["tool_calls"])
	if _, has := m["tool_calls"]; has && len(calls) == 0 {
		j.wrongf("tool_calls is empty")
	}
	for _, v := range calls {
		c := members(v)
		f := members(c["function"])
		j.keys("call", c, "id!", "type!", "function!")
		j.keys("function", f, "name!", "arguments!")
		id := text(c["id"])
		if id == "" || len(id) > 40 || waiting[id] {
			j.wrongf("call id %q is bad or doubled", id)
		}
		waiting[id] = true
		if text(c["type"]) != "function" || !word64.MatchString(text(f["name"])) {
			j.wrongf("call %s: type %v, name %v", id, c["type"], f["name"])
		}
		var args object
		if json.Unmarshal([]byte(text(f["arguments"])), &args) != nil || args == nil || loneSurrogate([]byte(text(f["arguments"]))) {
			j.wrongf("call %s: arguments are no object in a string", id)
		}
	}
	return len(calls) > 0
}

func (j *judge) openaiContent(role string, v any) {
	if s, ok := v.(string); ok {
		if j.isBlank(s) {
			j.wrongf("%s: blank content", role)
		}
		return
	}
	if len(list(v)) == 0 {
		j.wrongf("%s: no content", role)
	}
	for _, p := range list(v) {
		o := members(p)
		switch typ := text(o["type"]); {
		case typ == "text":
			j.keys(typ, o, "type!", "text!", "prompt_cache_breakpoint")
			if j.isBlank(text(o["text"])) {
				j.wrongf("%s: blank text", role)
			}
		case typ == "image_url" && role == "user":
			j.keys(typ, o, "type!", "image_url!")
			j.openaiImage(text(members(o["image_url"])["url"]))
		case typ == "file" && role == "user":
			f := members(o["file"])
			j.keys(typ, f, "filename!", "file_data!")
			mediaType, data, ok := dataURL(text(f["file_data"]))
			if !ok || text(f["filename"]) == "" {
				j.wrongf("file: no name or data URL")
			}
			j.media("file", mediaType, data, "application/pdf")
		default:
			j.wrongf("%s: part %q", role, typ)
		}
	}
}

func (j *judge) openaiImage(u string) {
	if isWeb(u) {
		return
	}
	mediaType, data, ok := dataURL(u)
	if !ok {
		j.wrongf("image: neither an address nor a data URL")
		return
	}
	if len(data) > 20<<20 {
		j.wrongf("an image of %d bytes", len(data))
	}
	j.media("image", mediaType, data, "image/png", "image/jpeg", "image/gif", "image/webp")
}
