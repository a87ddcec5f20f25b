package pool_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

func TestReadRefuses(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"nothing", ``, "not valid JSON"},
		{"a cut line", `{"role":"user","content":"a"`, "not valid JSON"},
		{"a list", `[]`, "must be an object"},
		{"null", `null`, "must be an object"},
		{"no role", `{"content":"a"}`, "no role"},
		{"no contents", `{"role":"user"}`, "it needs content, tool_calls or tool_result"},
		{"null contents", `{"role":"user","content":null}`, "it needs content, tool_calls or tool_result"},
		{"another case", `{"Role":"user","content":"a"}`, `it has the unknown key "Role"`},
		{"unknown key", `{"role":"user","content":"a","cache_control":{}}`, `it has the unknown key "cache_control"`},
		{"unknown key in a part", `{"role":"user","content":[{"type":"text","text":"a","Text":"b"}]}`, `/content/0: it has the unknown key "Text"`},
		{"text of thinking", `{"role":"assistant","content":[{"type":"thinking","text":"a"}]}`, `/content/0: it has the unknown key "text"`},
		{"unknown key in a call", `{"role":"assistant","tool_calls":[{"name":"t"}]}`, `/tool_calls/0: it has the unknown key "name"`},
		{"unknown key in metadata", `{"role":"user","content":"","metadata":{"model":"m"}}`, `/metadata: it has the unknown key "model"`},
		{"key twice", `{"role":"user","role":"user","content":"a"}`, `it has the key "role" twice`},
		{"name twice", `{"role":"user","content":"a","app_data":{"x":1,"x":2}}`, `/app_data: it has the key "x" twice`},
		{"part without a type", `{"role":"user","content":[{"text":"a"}]}`, "/content/0: a part needs a type"},
		{"part that is text", `{"role":"user","content":["a"]}`, "/content/0: it must be an object"},
		{"number for text", `{"role":"user","content":[{"type":"text","text":1}]}`, "/content/0/text: it must be a string"},
		{"text for a list", `{"role":"assistant","tool_calls":"a"}`, "/tool_calls: it must be a list"},
		{"half a number", `{"role":"user","content":"","metadata":{"input_tokens":1.5}}`, "/metadata/input_tokens: it must be a whole number"},
		{"text for yes or no", `{"role":"user","content":"","hidden":"true"}`, "/hidden: it must be true or false"},
		{"no time", `{"role":"user","content":"","created_at":"yesterday"}`, "/created_at: \"yesterday\" is not a time"},
		{"no id", `{"id":"1234","role":"user","content":""}`, `/id: "1234" is not an id`},
		{"id in braces", `{"id":"{01970000-0000-7000-8000-000000000002}","role":"user","content":""}`, `is not an id`},
		{"short hash", `{"role":"user","content":[{"type":"image","sha256":"00"}]}`, "/content/0/sha256"},
		{"no base64", `{"role":"user","content":[{"type":"image","data":"*"}]}`, "/content/0/data: it is not base64"},
		{"bad UTF-8", "{\"role\":\"user\",\"content\":\"\xff\"}", "not UTF-8"},
		{"bad UTF-8 in raw JSON", "{\"role\":\"user\",\"content\":[{\"type\":\"x\",\"y\":\"\xff\"}]}", "not UTF-8"},
		{"high surrogate", `{"role":"user","content":"a\ud800"}`, "/content: the text has half of a surrogate pair"},
		{"low surrogate", `{"role":"user","content":"\udc00 a"}`, "surrogate"},
		{"two high ones", `{"role":"user","content":"\ud83d\ud83d\ude00"}`, "surrogate"},
		{"exact of another value", `{"role":"user","content":[{"type":"x"}],"exact":{"/content/0":"{\"type\":\"y\"}"}}`, "/content/0: its exact text is another value"},
		{"exact of nothing", `{"role":"user","content":"","exact":{"/content/7":"1"}}`, `no JSON at "/content/7"`},
		{"exact of a number", `{"role":"user","content":"","exact":1}`, "exact and extra are objects"},
		{"extra of nothing", `{"role":"user","content":"","extra":{"/x":"oRhkAQ=="}}`, `extra: nothing at "/x"`},
		{"extra with a known key", `{"role":"user","content":"","extra":{"":"oQIB"}}`, "key 2 has a field"},
		{"extra that is none", `{"role":"user","content":"","extra":{"":"AQ=="}}`, "no CBOR map"},
		{"extra that makes a text part", `{"role":"user","content":[{}],"extra":{"/content/0":"oQFkdGV4dA=="}}`, `type "text" has fields of its own`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := pool.Message{Role: "before"}
			err := m.UnmarshalJSON([]byte(test.input))
			if !errors.Is(err, pool.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if m.Role != "before" {
				t.Error("the message was changed")
			}
		})
	}
}

func TestReadByHand(t *testing.T) {
	call := pool.Call{Tool: "t", Arguments: json.RawMessage(`{"a" : 1.0}`)}
	tests := []struct {
		input string
		want  pool.Message
	}{
		{`{"role":"user","content":"a\ud83d\ude00\n"}`, *pool.NewText(pool.User, "a😀\n")},
		{`{"role":"user","content":[]}`, pool.Message{Role: pool.User}},
		{` { "role" : "assistant" , "tool_calls" : [ {"tool_name":"t","arguments":{"a" : 1.0}} ] } `, pool.Message{Role: pool.Assistant, Calls: []pool.Call{call}}},
		{`{"role":"tool","tool_result":{"request_id":"c","result":null}}`, pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: json.RawMessage("null")}}},
		{`{"role":"tool","tool_result":{"result":"x","text":null,"is_error":true}}`, pool.Message{Role: pool.ToolRole, Result: &pool.Result{Text: "x", IsError: true}}},
		{`{"role":"tool","tool_result":{"result":[1, 2]}}`, pool.Message{Role: pool.ToolRole, Result: &pool.Result{JSON: json.RawMessage("[1, 2]")}}},
		{`{"role":"user","content":[{"type":"video","url":"\ud800"}]}`, pool.Message{Role: pool.User, Content: []pool.Part{{Type: "video", Raw: json.RawMessage(`{"type":"video","url":"\ud800"}`)}}}},
		{`{"role":"user","content":"","created_at":"2024-02-03T01:00:00.1234567+01:00","parent_id":null,"turn":"u1","position":1,"session":1,"tags":["a"]}`,
			pool.Message{Role: pool.User, Content: []pool.Part{{Type: pool.TextPart}}, Created: 1_706_918_400_123_456}},
	}
	for _, test := range tests {
		var got pool.Message
		if err := json.Unmarshal([]byte(test.input), &got); err != nil {
			t.Errorf("%s: %v", test.input, err)
			continue
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s gives\n%+v, want\n%+v", test.input, got, test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	part := func(p pool.Part) *pool.Message { return &pool.Message{Role: pool.User, Content: []pool.Part{p}} }
	call := func(c pool.Call) *pool.Message { return &pool.Message{Role: pool.Assistant, Calls: []pool.Call{c}} }
	deep := json.RawMessage(strings.Repeat("[", 1001) + strings.Repeat("]", 1001))
	tests := []struct {
		name string
		m    *pool.Message
		want string // "" for valid
	}{
		{"empty text", pool.NewText(pool.User, ""), ""},
		{"no contents", &pool.Message{Role: pool.Assistant}, ""},
		{"calls of one id", &pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "t"}, {ID: "a", Tool: "t"}}}, ""},
		{"result without a call", &pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "x"}}, ""},
		{"foreign part", part(pool.Part{Type: "x", Raw: json.RawMessage(`{}`)}), ""},
		{"no role", &pool.Message{}, "no role"},
		{"unknown role", &pool.Message{Role: "developer"}, `role "developer"`},
		{"user with calls", &pool.Message{Role: pool.User, Calls: []pool.Call{{Tool: "t"}}}, "only an assistant"},
		{"user with a result", &pool.Message{Role: pool.User, Result: &pool.Result{}}, "only a tool message"},
		{"tool without a result", &pool.Message{Role: pool.ToolRole}, "needs a result"},
		{"call without a tool", call(pool.Call{ID: "a"}), "/tool_calls/0: a call needs a tool's name"},
		{"unknown status", call(pool.Call{Tool: "t", Status: "maybe"}), `approval status "maybe"`},
		{"unknown execution", call(pool.Call{Tool: "t", Execution: "soon"}), `execution "soon"`},
		{"bad arguments", call(pool.Call{Tool: "t", Arguments: json.RawMessage(`{"a":`)}), "/tool_calls/0/arguments: it is not valid JSON"},
		{"empty arguments", call(pool.Call{Tool: "t", Arguments: json.RawMessage{}}), "/tool_calls/0/arguments"},
		{"deep arguments", call(pool.Call{Tool: "t", Arguments: deep}), "deeper than 1000"},
		{"bad result", &pool.Message{Role: pool.ToolRole, Result: &pool.Result{JSON: json.RawMessage("x")}}, "/tool_result/result: it is not valid JSON"},
		{"place of no call", part(pool.Part{Type: pool.CallPart, CallID: "a"}), `/content/0: no tool call has the id "a"`},
		{"no type", part(pool.Part{Text: "a"}), "/content/0: it has no type"},
		{"image of nothing", part(pool.Part{Type: pool.ImagePart}), "needs data, sha256 or url"},
		{"image of no bytes", part(pool.Part{Type: pool.ImagePart, Data: []byte{}}), "needs data, sha256 or url"},
		{"data of a text", part(pool.Part{Type: pool.TextPart, Data: []byte("a")}), "holds no data"},
		{"foreign part without JSON", part(pool.Part{Type: "x"}), `type "x" is not known here`},
		{"image in a result", &pool.Message{Role: pool.ToolRole, Result: &pool.Result{Parts: []pool.Part{{Type: pool.ImagePart}}}}, "/tool_result/parts/0"},
		{"bad UTF-8", pool.NewText(pool.User, "a\xff"), "/content/0/text: the text is not UTF-8"},
		{"bad UTF-8 in a name", &pool.Message{Role: pool.User, AppData: map[string]json.RawMessage{"\xff": json.RawMessage("1")}}, "/app_data"},
		{"app data without JSON", &pool.Message{Role: pool.User, AppData: map[string]json.RawMessage{"a/b": nil}}, "/app_data/a~1b: it has no JSON"},
		{"year 10000", &pool.Message{Role: pool.User, Created: 253_402_300_800_000_000}, "/created_at: the time lies"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.m.Validate()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, pool.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A message that Validate would refuse gives an error or JSON that can be read, never half of one.
func TestWriteRefuses(t *testing.T) {
	for name, m := range map[string]*pool.Message{
		"bad UTF-8": pool.NewText(pool.User, "\xff"),
		"bad JSON":  {Role: pool.Assistant, Calls: []pool.Call{{Tool: "t", Arguments: json.RawMessage(`{"a"`)}}},
		"no JSON":   {Role: pool.Assistant, Calls: []pool.Call{{Tool: "t", Arguments: json.RawMessage{}}}},
		"far time":  {Role: pool.User, Created: 1 << 62},
	} {
		if b, err := m.AppendJSON(nil); !errors.Is(err, pool.ErrInvalid) || b != nil {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if b, err := json.Marshal(pool.Entry{Position: 1}); err != nil || !json.Valid(b) {
		t.Errorf("an entry without a message: %s, %v", b, err)
	}
}

func TestAppendJSONAppends(t *testing.T) {
	b, err := pool.NewText(pool.User, "a").AppendJSON([]byte(`{"x":`))
	if err != nil || !strings.HasPrefix(string(b), `{"x":{"id":null,"role":"user"`) || !json.Valid(append(b, '}')) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestNamesTwiceInStoredJSON: strict readers can read a message whatever JSON it holds, and reading it again restores that byte for byte.
func TestNamesTwiceInStoredJSON(t *testing.T) {
	twice := json.RawMessage(`{"a":1,"b":{"c":1, "c":2},"a":3}`)
	for name, m := range map[string]*pool.Message{
		"arguments":     {Role: pool.Assistant, Calls: []pool.Call{{Tool: "t", Arguments: twice, Raw: twice}}},
		"result":        {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: twice}},
		"app data":      {Role: pool.User, AppData: map[string]json.RawMessage{"x": twice}},
		"usage":         {Role: pool.Assistant, Meta: pool.Metadata{Usage: twice}},
		"foreign part":  {Role: pool.User, Content: []pool.Part{{Type: "x", Raw: json.RawMessage(`{"type":"x","y":1,"y":2}`)}}},
		"two types":     {Role: pool.User, Content: []pool.Part{{Type: "y", Raw: json.RawMessage(`{"type":"x","type":"y"}`)}}},
		"becomes known": {Role: pool.User, Content: []pool.Part{{Type: "x", Raw: json.RawMessage(`{"type":"x","type":"text","text":"a"}`)}}},
	} {
		b, err := m.AppendJSON(nil)
		if err == nil {
			err = testkit.UniqueNames(b)
		}
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, b)
			continue
		}
		var got pool.Message
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(&got, m) {
			t.Errorf("%s: %s is read as\n%+v: %v", name, b, got, err)
		}
	}
}

func TestTimeAndHashJSON(t *testing.T) {
	type both struct {
		T pool.Time
		H pool.Hash
	}
	for _, v := range []both{{}, {1_700_000_000_000_000, pool.HashOf(nil)}, {1_700_000_000_000_001, pool.Hash{1}}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got both
		if err := json.Unmarshal(b, &got); err != nil || got != v {
			t.Errorf("%s gives %v, %v", b, got, err)
		}
	}
	for _, bad := range []string{`{"T":"x"}`, `{"T":1}`, `{"H":"00"}`, `{"H":"` + strings.Repeat("0", 65) + `"}`} {
		if err := json.Unmarshal([]byte(bad), &both{}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// TestReadJSONKeepsWhatIsUnknown: at every level, by its place, and in no field of the message.
func TestReadJSONKeepsWhatIsUnknown(t *testing.T) {
	text := `{"role":"assistant","a/b":1,"content":[{"type":"text","text":"x","tone":"dry"},{"type":"odd","tone":"kept"}],"tool_calls":[{"id":"c","tool_name":"t","arguments":{"free":1},"rank":[2]}],"metadata":{"mood":null},"a/b":2}`
	var m pool.Message
	unknown, err := m.ReadJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/a~1b": "1", "/a~1b+": "2", "/content/0/tone": `"dry"`, "/tool_calls/0/rank": "[2]", "/metadata/mood": "null"}
	for at, raw := range want {
		if string(unknown[at]) != raw {
			t.Errorf("at %s is %s, want %s", at, unknown[at], raw)
		}
	}
	if len(unknown) != len(want) || m.Text() != "x" || string(m.Calls[0].Arguments) != `{"free":1}` {
		t.Errorf("%v, %+v", unknown, m)
	}
	if m.UnmarshalJSON([]byte(text)) == nil {
		t.Error("UnmarshalJSON takes unknown keys")
	}
	for _, bad := range []string{`{"role":"user"}`, `{"role":"user","content":"a","content":"b"}`, `{"role":1,"content":""}`, `[`} {
		if _, err := m.ReadJSON([]byte(bad)); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
