package adaptertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// state is a conversation that a provider refused when a client sent it unchanged. The body must contain has and must not contain hasNot; only, if not empty,
// is the only provider to try.
type state struct {
	number  int
	what    string
	only    string
	make    func(*maker) []*pool.Message
	has     []string
	hasNot  []string
	setting map[string]string
}

// maker makes messages for a provider and a model.
type maker struct {
	provider, model string
	draft           *chatctx.Draft
	seq             byte
}

func (m *maker) message(role pool.Role, parts []pool.Part, calls ...pool.Call) *pool.Message {
	m.seq++
	msg := &pool.Message{ID: pool.ID{15: m.seq}, Role: role, Content: parts, Calls: calls}
	if role == pool.Assistant {
		msg.Meta.Provider, msg.Meta.Model = m.provider, m.model
	}
	return msg
}

func (m *maker) user(texts ...string) *pool.Message { return m.message(pool.User, words(texts)) }
func (m *maker) assistant(texts ...string) *pool.Message {
	return m.message(pool.Assistant, words(texts))
}

func (m *maker) system(text string) *pool.Message {
	return m.message(pool.System, words([]string{text}))
}

func (m *maker) calls(calls ...pool.Call) *pool.Message {
	return m.message(pool.Assistant, nil, calls...)
}

func (m *maker) result(id, text string) *pool.Message {
	msg := m.message(pool.ToolRole, nil)
	msg.Result = &pool.Result{RequestID: id, Text: text}
	return msg
}

// thinks returns an assistant's message that begins with a model's thinking.
func (m *maker) thinks(provider, model string, parts []pool.Part, calls ...pool.Call) *pool.Message {
	p := pool.Part{Type: pool.ThinkingPart, Text: "let me see", Signature: Signature(provider, model), Provider: provider, Model: model}
	if provider == "openai-responses" {
		p.Signature = ""
		p.Raw = json.RawMessage(`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"` + Signature(provider, model) + `"}`)
	}
	return m.message(pool.Assistant, append([]pool.Part{p}, parts...), calls...)
}

func words(texts []string) []pool.Part {
	var parts []pool.Part
	for _, t := range texts {
		parts = append(parts, pool.Part{Type: pool.TextPart, Text: t})
	}
	return parts
}

func call(id string) pool.Call {
	return pool.Call{ID: id, Tool: "search", Arguments: json.RawMessage(`{"q":1}`), Status: pool.Approved}
}

func with(c pool.Call, change func(*pool.Call)) pool.Call {
	change(&c)
	return c
}

func denied(id, reason string) pool.Call {
	return with(call(id), func(c *pool.Call) { c.Status, c.Reason = pool.Denied, reason })
}

func named(id, tool string) pool.Call { return with(call(id), func(c *pool.Call) { c.Tool = tool }) }

func arguments(id, args string) pool.Call {
	return with(call(id), func(c *pool.Call) { c.Arguments = json.RawMessage(args) })
}

func picture(width int) pool.Part {
	return pool.Part{Type: pool.ImagePart, MediaType: "image/png", Name: "shot.png", Data: PNG(width, 10)}
}

// shown is in a body with a picture.
const shown = "iVBOR"

type messages = []*pool.Message

func (s Subject) states(t *testing.T) {
	covered := map[int]bool{}
	for _, st := range states {
		covered[st.number] = true
		for _, model := range s.Models {
			if st.only == "" || st.only == s.Provider {
				t.Run(fmt.Sprintf("%02d %s/%s", st.number, st.what, model), func(t *testing.T) { s.state(t, &st, model) })
			}
		}
	}
	for n := 1; n <= 58; n++ {
		if !covered[n] {
			t.Errorf("state %d is not tried", n)
		}
	}
}

func (s Subject) state(t *testing.T, st *state, model string) {
	m := &maker{provider: s.Provider, model: model}
	m.draft = &chatctx.Draft{Settings: map[string]json.RawMessage{"model": json.RawMessage(`"` + model + `"`)}, System: "You help.",
		Tools: []record.Tool{{Name: "search"}}}
	for key, v := range st.setting {
		m.draft.Settings[key] = json.RawMessage(v)
	}
	for _, msg := range st.make(m) {
		d := &chatctx.DraftMessage{}
		d.Message = msg
		m.draft.Messages = append(m.draft.Messages, d)
	}
	s.without(m.draft)
	m.draft.Notes = nil
	raw := s.body(t, m.draft)
	if err := s.Judge(model, raw); err != nil {
		t.Errorf("%v\n%s", err, raw)
	}
	if foreign := s.foreign(raw, model); foreign != "" {
		t.Errorf("sends a signature of %s\n%s", foreign, raw)
	}
	for _, want := range st.has {
		if s.TextOnly && want == shown {
			want = "[image shot.png left out"
		}
		if !bytes.Contains(raw, []byte(want)) {
			t.Errorf("no %q in\n%s", want, raw)
		}
	}
	for _, not := range st.hasNot {
		if bytes.Contains(raw, []byte(not)) {
			t.Errorf("%q is in\n%s", not, raw)
		}
	}
	for _, n := range m.draft.Notes {
		if n.Step != "adapter" || n.What == "" {
			t.Errorf("a note that says nothing: %+v", n)
		}
	}
}

// states are those of the reports of refused requests, with their numbers in the list from which this was made.
var states = []state{
	{number: 1, what: "denied, stored without result", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(denied("c1", "no")), m.user("why not?")}
	}, has: []string{"denied: no"}},
	{number: 2, what: "one approved, one declined, two result messages", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), denied("c2", "not that")), m.result("c1", "fine"), m.result("c2", "")}
	}, has: []string{"fine", "denied: not that"}},
	{number: 3, what: "one rejected, siblings without result", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), denied("c2", "no"), call("c3")), m.result("c2", ""), m.user("and now?")}
	}, has: []string{"denied: no", adapter.NoResult}},
	{number: 4, what: "denial without a reason", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(denied("c1", "")), m.result("c1", " ")}
	}, has: []string{`denied`}},
	{number: 5, what: "denial never sent as a result", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(denied("c1", "no"))}
	}, has: []string{"denied: no"}},
	{number: 6, what: "interrupted while a tool runs, then speaks", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(with(call("c1"), func(c *pool.Call) { c.Execution = pool.Running })), m.user("stop")}
	}, has: []string{adapter.NoResult, "stop"}},
	{number: 7, what: "stopped, then the same again", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1")), m.user("go"), m.calls(call("c1")), m.user("go")}
	}},
	{number: 8, what: "text after a call in one message", make: func(m *maker) messages {
		parts := []pool.Part{{Type: pool.TextPart, Text: "first"}, {Type: pool.CallPart, CallID: "c1"}, {Type: pool.TextPart, Text: "after"}}
		return messages{m.user("go"), m.message(pool.Assistant, parts, call("c1")), m.result("c1", "r")}
	}, has: []string{"first", "after"}},
	{number: 9, what: "only those before a failure answered", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), call("c2"), call("c3")), m.result("c1", "one"), m.user("hm")}
	}, has: []string{"one", adapter.NoResult}},
	{number: 10, what: "ends with a result", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1")), m.result("c1", "one")}
	}, has: []string{"one"}, hasNot: []string{adapter.Continue}},
	{number: 11, what: "a branch from a leaf with open calls", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(with(call("c1"), func(c *pool.Call) { c.Status = pool.Pending }))}
	}, has: []string{adapter.NoResult}},
	{number: 12, what: "an edit while a question is open", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(with(call("c1"), func(c *pool.Call) { c.Status = pool.Pending })), m.user("edited"), m.result("c1", "late one")}
	}, has: []string{adapter.NoResult, "late result of search", "late one"}},
	{number: 13, what: "trimmed inside a pair", make: func(m *maker) messages {
		return messages{m.result("c1", "orphan"), m.assistant("so"), m.user("go")}
	}, hasNot: []string{"orphan"}},
	{number: 14, what: "orphans around partly answered calls", make: func(m *maker) messages {
		return messages{m.result("c0", "orphan"), m.user("go"), m.calls(call("c1"), call("c2")), m.result("c2", "two"), m.result("c9", "orphan"), m.user("on"), m.result("c8", "orphan")}
	}, has: []string{"two", adapter.NoResult}, hasNot: []string{"orphan"}},
	{number: 15, what: "a summary between call and result", make: func(m *maker) messages {
		m.draft.Summary = &chatctx.DraftMessage{}
		m.draft.Summary.Message = m.user("summary of before")
		return messages{m.result("c1", "orphan"), m.user("go")}
	}, has: []string{"summary of before"}, hasNot: []string{"orphan"}},
	{number: 16, what: "a summary while results are open", make: func(m *maker) messages {
		m.draft.Summary = &chatctx.DraftMessage{}
		m.draft.Summary.Message = m.message(pool.System, words([]string{"summary of before"}))
		return messages{m.calls(call("c1")), m.result("c1", "one")}
	}, has: []string{"summary of before", "one"}},
	{number: 17, what: "calls of a turn with one id, or none", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), call("c1"), call(""), call("")), m.result("c1", "one"), m.result("c1", "two"), m.result("", "three"), m.result("", "four")}
	}, has: []string{"one", "two", "three", "four"}, hasNot: []string{adapter.NoResult}},
	{number: 18, what: "calls doubled as parts and as calls", make: func(m *maker) messages {
		parts := []pool.Part{{Type: pool.CallPart, CallID: "c1"}, {Type: pool.CallPart, CallID: "c1"}, {Type: "tool_use", Raw: json.RawMessage(`{"type":"tool_use","id":"c1"}`)}}
		return messages{m.user("go"), m.message(pool.Assistant, parts, call("c1")), m.result("c1", "one")}
	}, hasNot: []string{adapter.NoResult}},
	{number: 19, what: "empty assistant turn; thinking alone", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant(), m.user("again"), m.thinks(m.provider, m.model, nil), m.user("and again")}
	}},
	{number: 20, what: "whitespace-only assistant", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant(" "), m.user("again"), m.assistant("\n\n\t"), m.user("third")}
	}},
	{number: 21, what: "an empty text beside a call", make: func(m *maker) messages {
		return messages{m.user("go"), m.message(pool.Assistant, words([]string{""}), call("c1")), m.result("c1", "one")}
	}},
	{number: 22, what: "a tool that returned nothing", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1")), m.result("c1", "")}
	}, has: []string{adapter.NoOutput}},
	{number: 23, what: "an image with an empty text", make: func(m *maker) messages {
		return messages{m.message(pool.User, append(words([]string{""}), picture(10)))}
	}},
	{number: 24, what: "the last text ends in whitespace", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant("I will \n")}
	}},
	{number: 25, what: "ends with an assistant", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant("done")}
	}},
	{number: 26, what: "thinking of another model and of another provider", make: func(m *maker) messages {
		return messages{m.user("go"), m.thinks("anthropic", "claude-other-9", words([]string{"a"})), m.user("on"), m.thinks("gemini", "gemini-other", words([]string{"b"})), m.user("on")}
	}},
	{number: 27, what: "thinking after a summary", make: func(m *maker) messages {
		m.draft.Summary = &chatctx.DraftMessage{}
		m.draft.Summary.Message = m.user("summary of before")
		return messages{m.thinks(m.provider, m.model, words([]string{"a"})), m.user("on")}
	}},
	{number: 28, what: "thinking dropped before a call while thinking is on", make: func(m *maker) messages {
		return messages{m.user("go"), m.thinks("anthropic", "claude-other-9", nil, call("c1")), m.result("c1", "one")}
	}, setting: map[string]string{"thinking": `"low"`}},
	{number: 29, what: "thinking twice in the latest turn", make: func(m *maker) messages {
		second := m.thinks(m.provider, m.model, words([]string{"b"}))
		first := m.thinks(m.provider, m.model, append(words([]string{"a"}), second.Content...), call("c1"))
		return messages{m.user("go"), first, m.result("c1", "one")}
	}},
	{number: 30, what: "thinking switched off, the end still holds it", make: func(m *maker) messages {
		return messages{m.user("go"), m.thinks(m.provider, m.model, words([]string{"a"}))}
	}, setting: map[string]string{"thinking": `"off"`}},
	{number: 31, what: "ids over 40 and 64 characters", make: func(m *maker) messages {
		long, longer := strings.Repeat("i", 41), strings.Repeat("i", 90)
		return messages{m.user("go"), m.calls(call(long), call(longer)), m.result(longer, "two"), m.result(long, "one")}
	}, hasNot: []string{adapter.NoResult}},
	{number: 32, what: "nine characters for Mistral", only: "openai", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("toolu_01")), m.result("toolu_01", "one"), m.user("on")}
	}, setting: map[string]string{"profile": `"mistral"`}, has: []string{adapter.GoOn}, hasNot: []string{"toolu_01"}},
	{number: 33, what: "a foreign signature on a call", make: func(m *maker) messages {
		c := with(call("c1"), func(c *pool.Call) {
			c.Provider, c.Model = "anthropic", "claude-other-9"
			c.Raw = json.RawMessage(`{"thoughtSignature":"` + Signature("anthropic", "claude-other-9") + `"}`)
		})
		return messages{m.user("go"), m.calls(c), m.result("c1", "one")}
	}},
	{number: 34, what: "a call without a signature", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), call("c2")), m.result("c1", "one"), m.result("c2", "two"), m.calls(call("c3")), m.result("c3", "three")}
	}},
	{number: 35, what: "a signature beside the call", only: "gemini", make: func(m *maker) messages {
		c := with(call("c1"), func(c *pool.Call) {
			c.Provider, c.Model = m.provider, m.model
			c.Raw = json.RawMessage(`{"functionCall":{"name":"search","args":{}},"thoughtSignature":"` + Signature(m.provider, m.model) + `"}`)
		})
		return messages{m.user("go"), m.calls(c), m.result("c1", "one")}
	}, has: []string{`"thoughtSignature":"U0lHO`}},
	{number: 36, what: "one result missing, one doubled", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), call("c2")), m.result("c1", "one"), m.result("c1", "doubled")}
	}, has: []string{"one", adapter.NoResult}, hasNot: []string{"doubled"}},
	{number: 37, what: "begins with a call", make: func(m *maker) messages {
		return messages{m.system("be brief"), m.calls(call("c1")), m.result("c1", "one")}
	}},
	{number: 38, what: "results split over two turns", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(call("c1"), call("c2")), m.result("c1", "one"), m.user("and?"), m.result("c2", "two")}
	}, has: []string{"one", "late result of search"}},
	{number: 39, what: "messages without parts", make: func(m *maker) messages {
		return messages{m.user(), m.assistant(), m.user("go"), m.message(pool.User, []pool.Part{{}})}
	}},
	{number: 40, what: "results that are text, a list, a number, an object", make: func(m *maker) messages {
		list := messages{m.user("go"), m.calls(call("c1"), call("c2"), call("c3"), call("c4")), m.result("c1", "plain words")}
		for id, raw := range map[string]string{"c2": `[1,2]`, "c3": "7", "c4": `{"a":1}`} {
			r := m.result(id, "")
			r.Result.JSON = json.RawMessage(raw)
			list = append(list, r)
		}
		return list
	}, has: []string{"plain words"}, hasNot: []string{adapter.NoResult}},
	{number: 41, what: "ends with a model", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant("a"), m.assistant("b")}
	}},
	{number: 42, what: "names with spaces, digits, over the limit", make: func(m *maker) messages {
		m.draft.Tools = []record.Tool{{Name: "9 lives"}, {Name: strings.Repeat("t", 150)}, {Name: "größe"}, {Name: ""}, {Name: "search"}}
		return messages{m.user("go"), m.calls(named("c1", "9 lives"), named("c2", strings.Repeat("t", 150)), named("c3", "größe"), named("c4", "")), m.user("on")}
	}, has: []string{`"search"`}, hasNot: []string{"9 lives"}},
	{number: 43, what: "a schema as MCP servers give it", make: func(m *maker) messages {
		m.draft.Tools = []record.Tool{{Name: "mcp", Schema: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array"},"b":{"type":"object","properties":{"c":{"type":["array","null"]}}}},"additionalProperties":false}`)}}
		return messages{m.user("go")}
	}, has: []string{`"items":{}`}},
	{number: 44, what: "reasoning without what follows it", make: func(m *maker) messages {
		return messages{m.user("go"), m.thinks(m.provider, m.model, nil), m.user("on"), m.thinks(m.provider, m.model, words([]string{" "})), m.user("on")}
	}},
	{number: 45, what: "reasoning ids with nothing stored", only: "openai-responses", make: func(m *maker) messages {
		return messages{m.user("go"), m.thinks(m.provider, m.model, words([]string{"a"})), m.user("on")}
	}, has: []string{"encrypted_content", `"store":false`}, hasNot: []string{"rs_1"}},
	{number: 46, what: "encrypted reasoning of another model", make: func(m *maker) messages {
		return messages{m.user("go"), m.thinks("openai-responses", "gpt-other", words([]string{"a"})), m.user("on")}
	}, hasNot: []string{`"encrypted_content"`}},
	{number: 47, what: "assistant text as input text", only: "openai-responses", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant("a"), m.user("on")}
	}, has: []string{`"output_text"`}},
	{number: 48, what: "an output whose call was dropped", make: func(m *maker) messages {
		return messages{m.user("go"), m.result("gone", "orphan"), m.user("on")}
	}, hasNot: []string{"orphan"}},
	{number: 49, what: "a result with an image", make: func(m *maker) messages {
		r := m.result("c1", "")
		r.Result.Parts = []pool.Part{{Type: pool.TextPart, Text: "look"}, picture(10)}
		return messages{m.user("go"), m.calls(call("c1"), call("c2")), r, m.result("c2", "two")}
	}, has: []string{"look", shown}},
	{number: 50, what: "an assistant with an image", make: func(m *maker) messages {
		return messages{m.user("draw"), m.message(pool.Assistant, []pool.Part{picture(10)}), m.user("again")}
	}, has: []string{"[image shot.png left out"}},
	{number: 51, what: "a system message in the middle", make: func(m *maker) messages {
		return messages{m.user("go"), m.assistant("a"), m.system("be brief"), m.user("on")}
	}, has: []string{"be brief"}},
	{number: 51, what: "and on a strict server", only: "openai", make: func(m *maker) messages {
		m.draft.Prompt = "And politely."
		return messages{m.user("go"), m.assistant("a"), m.system("be brief"), m.user("on")}
	}, setting: map[string]string{"profile": `"strict"`}, has: []string{"be brief", "You help.\\n\\nAnd politely."}},
	{number: 52, what: "two user messages in a row", make: func(m *maker) messages {
		return messages{m.user("go"), m.user("now"), m.assistant("a"), m.user("on")}
	}},
	{number: 52, what: "and on a strict server", only: "openai", make: func(m *maker) messages {
		return messages{m.assistant("hello"), m.user("go"), m.user("now"), m.assistant("a"), m.assistant("b"), m.user("on")}
	}, setting: map[string]string{"profile": `"strict"`}, has: []string{`go\n\nnow`, `a\n\nb`}},
	{number: 53, what: "no reasoning_content of another model", only: "openai", make: func(m *maker) messages {
		m.draft.Settings["profile"] = json.RawMessage(`"compatible"`)
		return messages{m.user("go"), m.thinks("anthropic", "claude-other-9", nil, call("c1")), m.result("c1", "one")}
	}},
	{number: 54, what: "arguments that were cut off", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(arguments("c1", `{"path":"/tmp/a`), arguments("c2", `["a"]`), arguments("c3", `"words"`)), m.user("on")}
	}, has: []string{"invalid_arguments", "/tmp/a"}},
	{number: 55, what: "a call without arguments", make: func(m *maker) messages {
		return messages{m.user("go"), m.calls(arguments("c1", ""), arguments("c2", "null"), arguments("c3", `""`)), m.user("on")}
	}, hasNot: []string{"invalid_arguments"}},
	{number: 56, what: "arguments in a string; several parts", make: func(m *maker) messages {
		return messages{m.user("go", "now"), m.calls(arguments("c1", `"{\"in\":1}"`)), m.user("on")}
	}, hasNot: []string{"invalid_arguments"}},
	{number: 57, what: "five breakpoints", make: func(m *maker) messages {
		m.draft.Summary = &chatctx.DraftMessage{Cache: true}
		m.draft.Summary.Message = m.user("summary of before")
		for range 5 {
			d := &chatctx.DraftMessage{Cache: true}
			d.Message = m.thinks(m.provider, m.model, words([]string{"a"}))
			m.draft.Messages = append(m.draft.Messages, d)
		}
		return messages{m.user("go")}
	}, setting: map[string]string{"cache": "true", "cache.ttl": `"1h"`}},
	{number: 58, what: "21 images, some large; one too large; one in an error", make: func(m *maker) messages {
		parts := []pool.Part{picture(9000)}
		for i := range 20 {
			parts = append(parts, picture(100+i*120))
		}
		r := m.result("c1", "")
		r.Result.Parts, r.Result.IsError = []pool.Part{picture(3000)}, true
		return messages{m.message(pool.User, parts), m.calls(call("c1")), r, m.user("on")}
	}},
}
