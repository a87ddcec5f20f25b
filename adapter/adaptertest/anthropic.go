package adaptertest

import (
	"regexp"
	"slices"
	"strings"
)

var (
	wordID       = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	word128      = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicTop = []string{"model!", "messages!", "max_tokens!", "cache_control", "container", "context_management", "inference_geo", "mcp_servers",
		"metadata", "output_config", "service_tier", "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools",
		"top_k", "top_p"}
)

// anthropicJudge judges a body in the order in which the API reads it.
type anthropicJudge struct {
	judge
	body    object
	model   int // 0 if not Claude
	marks   int
	short   bool // there was a mark of five minutes
	images  int
	large   int // images over 2000 pixels
	hasTool bool
}

// ValidateAnthropic returns the violations of the Messages API in a body, nil if there are none.
func ValidateAnthropic(body []byte) error {
	j := &anthropicJudge{}
	if j.body = j.read(body); j.body == nil {
		return j.err()
	}
	if len(body) > 32<<20 {
		j.wrongf("%d bytes are over 32 MB", len(body))
	}
	j.keys("body", j.body, anthropicTop...)
	j.model = claude(text(j.body["model"]))
	if text(j.body["model"]) == "" {
		j.wrongf("no model")
	}
	j.within(j.body, "max_tokens", 1, 1e9)
	j.tools()
	j.system()
	messages := list(j.body["messages"])
	if len(messages) == 0 || len(messages) > 100000 {
		j.wrongf("%d messages", len(messages))
	}
	turns := j.messages(messages)
	j.pairs(turns)
	j.last(turns)
	j.mark(j.body, "body")
	if j.marks > 4 {
		j.wrongf("%d cache breakpoints", j.marks)
	}
	if j.images > 20 && j.large > 0 {
		j.wrongf("%d images, %d of them over 2000 pixels", j.images, j.large)
	}
	j.parameters(turns)
	return j.err()
}

// mark judges a cache breakpoint.
func (j *anthropicJudge) mark(o object, where string) {
	v, has := o["cache_control"]
	if !has {
		return
	}
	c := members(v)
	j.keys(where+": cache_control", c, "type!", "ttl")
	j.marks++
	switch text(c["ttl"]) {
	case "", "5m":
		j.short = true
	case "1h":
		if j.short {
			j.wrongf("%s: a breakpoint of 1h after one of 5m", where)
		}
	default:
		j.wrongf("%s: ttl %v", where, c["ttl"])
	}
}

func (j *anthropicJudge) tools() {
	seen := map[string]bool{}
	for _, v := range list(j.body["tools"]) {
		t := members(v)
		j.hasTool = true
		if typ, has := t["type"]; has && text(typ) != "custom" {
			continue
		}
		name := text(t["name"])
		j.keys("tool "+name, t, "name!", "input_schema!", "description", "cache_control", "type", "strict")
		if !word128.MatchString(name) || seen[name] {
			j.wrongf("tool name %q is bad or doubled", name)
		}
		seen[name] = true
		j.schema("tool "+name, t["input_schema"])
		j.mark(t, "tool "+name)
	}
	if v, has := j.body["tools"]; has && len(list(v)) == 0 {
		j.wrongf("tools is empty")
	}
	v, has := j.body["tool_choice"]
	if !has {
		return
	}
	choice := members(v)
	j.keys("tool_choice", choice, "type!", "name", "disable_parallel_tool_use")
	if !j.hasTool {
		j.wrongf("tool_choice without tools")
	}
	if text(choice["type"]) == "tool" && !seen[text(choice["name"])] {
		j.wrongf("tool_choice names no tool")
	}
}

func (j *anthropicJudge) system() {
	v, has := j.body["system"]
	if !has {
		return
	}
	if isText(v) && j.isBlank(text(v)) || !isText(v) && len(list(v)) == 0 {
		j.wrongf("system is empty")
	}
	for _, b := range list(v) {
		o := members(b)
		if text(o["type"]) != "text" {
			j.wrongf("system: %v", o["type"])
		}
		j.block("system", o, "system", nil)
	}
}

// anthropicTurn is a turn, to which the API joins consecutive messages of one role.
type anthropicTurn struct {
	role     string
	blocks   []object
	answered int // messages with tool results
}

func (j *anthropicJudge) messages(messages []any) []*anthropicTurn {
	var turns []*anthropicTurn
	for n, v := range messages {
		m := members(v)
		j.keys("message", m, "role!", "content!")
		role := text(m["role"])
		if role != "user" && role != "assistant" {
			j.wrongf("message %d: role %q", n, role)
		}
		if len(turns) == 0 || turns[len(turns)-1].role != role {
			turns = append(turns, &anthropicTurn{role: role})
		}
		t := turns[len(turns)-1]
		blocks := list(m["content"])
		if s, ok := m["content"].(string); ok {
			blocks = []any{object{"type": "text", "text": s}}
		}
		if len(blocks) == 0 && (n < len(messages)-1 || role != "assistant") {
			j.wrongf("message %d is empty", n)
		}
		results, called := false, false
		for _, b := range blocks {
			o := members(b)
			typ := text(o["type"])
			j.block(role, o, typ, t)
			if called && typ != "tool_use" {
				j.wrongf("message %d: %s after tool_use", n, typ)
			}
			called = called || typ == "tool_use"
			results = results || typ == "tool_result"
			t.blocks = append(t.blocks, o)
		}
		if results {
			t.answered++
		}
	}
	return turns
}

var anthropicPlace = map[string]string{"text": "user assistant system", "image": "user", "document": "user", "tool_result": "user", "tool_use": "assistant",
	"thinking": "assistant", "redacted_thinking": "assistant", "server_tool_use": "assistant", "web_search_tool_result": "assistant",
	"web_fetch_tool_result": "assistant", "code_execution_tool_result": "assistant", "bash_code_execution_tool_result": "assistant"}

// block judges a content block. place is the role, or what contains the block.
func (j *anthropicJudge) block(place string, o object, where string, t *anthropicTurn) {
	typ := text(o["type"])
	if place != "result" && !slices.Contains(strings.Fields(anthropicPlace[typ]), place) {
		j.wrongf("%s: %q in a message of %s", where, typ, place)
	}
	switch typ {
	case "text":
		j.keys("text", o, "type!", "text!", "cache_control", "citations")
		if j.isBlank(text(o["text"])) {
			j.wrongf("%s: blank text", where)
		}
	case "image", "document":
		j.source(typ, o)
	case "thinking":
		j.keys("thinking", o, "type!", "thinking!", "signature!")
		if text(o["signature"]) == "" || !isText(o["thinking"]) {
			j.wrongf("thinking without signature or text")
		}
	case "redacted_thinking":
		j.keys("redacted_thinking", o, "type!", "data!")
	case "tool_use":
		j.keys("tool_use", o, "type!", "id!", "name!", "input!", "cache_control")
		if !wordID.MatchString(text(o["id"])) || !word128.MatchString(text(o["name"])) {
			j.wrongf("tool_use: id %q, name %q", o["id"], o["name"])
		}
		if members(o["input"]) == nil {
			j.wrongf("tool_use %v: input is no object", o["id"])
		}
	case "tool_result":
		j.result(o)
	}
	j.mark(o, where)
}

func (j *anthropicJudge) result(o object) {
	j.keys("tool_result", o, "type!", "tool_use_id!", "content", "is_error", "cache_control")
	for _, v := range list(o["content"]) {
		b := members(v)
		typ := text(b["type"])
		if typ != "text" && typ != "image" && typ != "document" {
			j.wrongf("%q in a result", typ)
		}
		if o["is_error"] == true && typ != "text" {
			j.wrongf("%s in an error result", typ)
		}
		j.block("result", b, "result", nil)
	}
}

func (j *anthropicJudge) source(typ string, o object) {
	j.keys(typ, o, "type!", "source!", "cache_control", "title", "context", "citations")
	s := members(o["source"])
	if typ == "image" {
		j.images++
	}
	switch kind := text(s["type"]); kind {
	case "url":
		if !isWeb(text(s["url"])) {
			j.wrongf("%s: url %q", typ, s["url"])
		}
	case "text":
		if typ != "document" || text(s["media_type"]) != "text/plain" || j.isBlank(text(s["data"])) {
			j.wrongf("%s: bad text source", typ)
		}
	case "base64":
		allowed := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
		if typ == "document" {
			allowed = []string{"application/pdf"}
		}
		raw := j.media(typ, text(s["media_type"]), text(s["data"]), allowed...)
		side := pixels(raw)
		if typ == "image" && (len(text(s["data"])) > 10<<20 || side > 8000) {
			j.wrongf("an image of %d bytes, %d pixels", len(raw), side)
		}
		if side > 2000 {
			j.large++
		}
	default:
		j.wrongf("%s: source %q", typ, kind)
	}
}

// pairs judges that each call is answered once, in the next turn, before anything else, and that each result has its call.
func (j *anthropicJudge) pairs(turns []*anthropicTurn) {
	waiting := map[string]bool{}
	for n, t := range turns {
		if t.role == "assistant" {
			for id := range waiting {
				j.wrongf("call %s is not answered", id)
			}
			waiting = map[string]bool{}
			for _, b := range t.blocks {
				if text(b["type"]) != "tool_use" {
					continue
				}
				if !j.hasTool {
					j.wrongf("a call, and no tools")
				}
				if id := text(b["id"]); waiting[id] {
					j.wrongf("two calls have the id %s", id)
				} else {
					waiting[id] = true
				}
			}
			if len(waiting) > 0 && n == len(turns)-1 {
				j.wrongf("the last calls are not answered")
			}
			continue
		}
		other := false
		for _, b := range t.blocks {
			if text(b["type"]) != "tool_result" {
				other = true
				continue
			}
			if other {
				j.wrongf("a result after something else")
			}
			if id := text(b["tool_use_id"]); !waiting[id] {
				j.wrongf("result of %q without its call right before", id)
			} else {
				delete(waiting, id)
			}
		}
		if t.answered > 1 {
			j.wrongf("results in %d messages", t.answered)
		}
		for id := range waiting {
			j.wrongf("call %s is not answered in the next turn", id)
		}
		waiting = map[string]bool{}
	}
}

// last judges a conversation that ends with an assistant message.
func (j *anthropicJudge) last(turns []*anthropicTurn) {
	if len(turns) == 0 || turns[len(turns)-1].role != "assistant" {
		return
	}
	if j.model == 0 || j.model >= 406 {
		j.wrongf("ends with an assistant")
	}
	blocks := turns[len(turns)-1].blocks
	for _, b := range blocks {
		if strings.Contains(text(b["type"]), "thinking") {
			j.wrongf("thinking in a final assistant message")
		}
	}
	if len(blocks) > 0 && endsInSpace(text(blocks[len(blocks)-1]["text"])) {
		j.wrongf("the final text ends in whitespace")
	}
}

func (j *anthropicJudge) parameters(turns []*anthropicTurn) {
	j.within(j.body, "temperature", 0, 1)
	j.within(j.body, "top_p", 0, 1)
	temperature, hasT := number(j.body["temperature"])
	topP, hasP := number(j.body["top_p"])
	_, hasK := j.body["top_k"]
	switch {
	case j.model >= 407:
		if hasT && temperature != 1 || hasP && topP < 0.99 || hasK {
			j.wrongf("sampling on a model after 4.6")
		}
	case j.model >= 401 && hasT && hasP:
		j.wrongf("both temperature and top_p")
	}
	for _, s := range list(j.body["stop_sequences"]) {
		if j.isBlank(text(s)) {
			j.wrongf("a blank stop sequence")
		}
	}
	thinking := members(j.body["thinking"])
	if text(thinking["type"]) != "enabled" {
		return
	}
	budget, _ := number(thinking["budget_tokens"])
	limit, _ := number(j.body["max_tokens"])
	if budget < 1024 || budget >= limit {
		j.wrongf("budget %g of %g", budget, limit)
	}
	if j.model >= 407 {
		j.wrongf("thinking enabled on a model after 4.6")
	}
	if hasT && temperature != 1 || hasP && topP < 0.95 || hasK {
		j.wrongf("sampling while thinking")
	}
	if c := text(members(j.body["tool_choice"])["type"]); c == "any" || c == "tool" {
		j.wrongf("forced tool choice while thinking")
	}
	j.loop(turns)
}

// loop judges that the assistant's turn of the current tool loop begins with its thinking.
func (j *anthropicJudge) loop(turns []*anthropicTurn) {
	first := -1
	for n := len(turns) - 1; n >= 0; n-- {
		t := turns[n]
		if t.role == "assistant" {
			first = n
			continue
		}
		if len(t.blocks) == 0 || text(t.blocks[0]["type"]) != "tool_result" {
			break
		}
	}
	if first < 0 || first == len(turns)-1 {
		return
	}
	if !strings.Contains(text(turns[first].blocks[0]["type"]), "thinking") {
		j.wrongf("the turn of the tool loop does not begin with thinking")
	}
}
