package adaptertest

import (
	"encoding/json"
	"strings"
)

var responsesTop = []string{"model!", "input!", "background", "conversation", "include", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
	"parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
	"safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p",
	"truncation", "user"}

// responsesJudge judges the input.
type responsesJudge struct {
	judge
	stored bool
	calls  map[string]bool // call ids so far; true if answered
	ids    map[string]bool
	led    bool // the previous item was reasoning
}

// ValidateResponses returns the violations of the Responses API in a body, nil if there are none.
func ValidateResponses(body []byte) error {
	j := &responsesJudge{calls: map[string]bool{}, ids: map[string]bool{}}
	o := j.read(body)
	if o == nil {
		return j.err()
	}
	j.keys("body", o, responsesTop...)
	j.stored = o["store"] != false
	names := map[string]bool{}
	for _, v := range list(o["tools"]) {
		t := members(v)
		j.keys("tool", t, "type!", "name!", "description", "parameters", "strict")
		if text(t["type"]) != "function" || !word64.MatchString(text(t["name"])) || names[text(t["name"])] {
			j.wrongf("tool %v: type %v, or its name is bad or doubled", t["name"], t["type"])
		}
		names[text(t["name"])] = true
		j.schema("tool", t["parameters"])
	}
	j.openaiTools(o, names)
	input := list(o["input"])
	if len(input) == 0 {
		j.wrongf("no input")
	}
	for _, v := range input {
		j.item(members(v))
	}
	if j.led {
		j.wrongf("reasoning at the end")
	}
	for id, answered := range j.calls {
		if !answered {
			j.wrongf("call %s is not answered", id)
		}
	}
	if n := len(input); n > 0 && text(members(input[n-1])["role"]) == "assistant" {
		j.wrongf("ends with an assistant")
	}
	j.responsesParameters(o)
	return j.err()
}

func (j *responsesJudge) item(o object) {
	typ := text(o["type"])
	if typ == "" {
		typ = "message"
	}
	role := text(o["role"])
	if j.led && (typ != "function_call" && typ != "message" || typ == "message" && role != "assistant") {
		j.wrongf("reasoning followed by %s %s", typ, role)
	}
	j.led = typ == "reasoning"
	if id, has := o["id"]; has {
		if !j.stored {
			j.wrongf("an id, and nothing is stored")
		}
		if j.ids[text(id)] {
			j.wrongf("id %v twice", id)
		}
		j.ids[text(id)] = true
	}
	switch typ {
	case "message":
		j.keys(typ, o, "type", "role!", "content!", "id", "status", "phase")
		j.content(role, o["content"])
	case "function_call":
		j.keys(typ, o, "type!", "call_id!", "name!", "arguments!", "id", "status")
		j.call(o)
	case "function_call_output":
		j.keys(typ, o, "type!", "call_id!", "output!", "id", "status")
		id := text(o["call_id"])
		if answered, has := j.calls[id]; !has || answered {
			j.wrongf("output of %q without its call, or a second one", id)
		}
		j.calls[id] = true
		j.content("output", o["output"])
	case "reasoning":
		j.keys(typ, o, "type!", "summary!", "encrypted_content", "content", "id", "status")
		if _, isList := o["summary"].([]any); !isList || !j.stored && text(o["encrypted_content"]) == "" {
			j.wrongf("reasoning without a summary list or encrypted content")
		}
		if _, has := o["id"]; j.stored && !has {
			j.wrongf("reasoning without id, and it is stored")
		}
	default:
		j.wrongf("item of type %q", typ)
	}
}

func (j *responsesJudge) call(o object) {
	id := text(o["call_id"])
	if _, has := j.calls[id]; has || id == "" || len(id) > 64 {
		j.wrongf("call id %q is bad or doubled", id)
	}
	j.calls[id] = false
	if !word64.MatchString(text(o["name"])) {
		j.wrongf("call name %q", o["name"])
	}
	var args object
	arguments := text(o["arguments"])
	if json.Unmarshal([]byte(arguments), &args) != nil || args == nil || len(arguments) > 1048576 || loneSurrogate([]byte(arguments)) {
		j.wrongf("call %s: arguments are no object in a string, or too long", id)
	}
}

func (j *responsesJudge) content(role string, v any) {
	kind := "input"
	if role == "assistant" {
		kind = "output"
	} else if role != "user" && role != "system" && role != "developer" && role != "output" {
		j.wrongf("role %q", role)
	}
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
		case typ == kind+"_text":
			j.keys(typ, o, "type!", "text!", "annotations", "logprobs", "prompt_cache_breakpoint")
			if j.isBlank(text(o["text"])) {
				j.wrongf("%s: blank text", role)
			}
		case typ == "input_image" && kind == "input" && role != "system":
			j.keys(typ, o, "type!", "detail!", "image_url!", "file_id")
			j.openaiImage(text(o["image_url"]))
		case typ == "input_file" && kind == "input" && role != "system":
			j.keys(typ, o, "type!", "filename", "file_data", "file_url")
			if u, has := o["file_url"]; has {
				if !isWeb(text(u)) {
					j.wrongf("file url %v", u)
				}
				continue
			}
			mediaType, data, ok := dataURL(text(o["file_data"]))
			if !ok || text(o["filename"]) == "" {
				j.wrongf("file: no name or data URL")
			}
			j.media("file", mediaType, data, "application/pdf")
		default:
			j.wrongf("%s: part %q", role, typ)
		}
	}
}

func (j *responsesJudge) responsesParameters(o object) {
	model := text(o["model"])
	if model == "" {
		j.wrongf("no model")
	}
	j.within(o, "temperature", 0, 2)
	j.within(o, "top_p", 0, 1)
	j.within(o, "max_output_tokens", 16, 1e9)
	format := members(members(o["text"])["format"])
	switch text(format["type"]) {
	case "json_object":
		if m, _ := json.Marshal(o["input"]); !strings.Contains(strings.ToLower(string(m)), "json") {
			j.wrongf("json_object, and the word is nowhere")
		}
	case "json_schema":
		if !word64.MatchString(text(format["name"])) || members(format["schema"]) == nil {
			j.wrongf("json_schema without name or schema")
		}
	}
	reasons := openaiReasons.MatchString(model) && !strings.Contains(model, "chat")
	if !reasons && strings.HasPrefix(model, "gpt-") && (o["reasoning"] != nil || o["include"] != nil) {
		j.wrongf("reasoning on %s", model)
	}
	for _, key := range []string{"temperature", "top_p"} {
		if n, has := number(o[key]); reasons && has && n != 1 {
			j.wrongf("%s %g on %s", key, n, model)
		}
	}
}
