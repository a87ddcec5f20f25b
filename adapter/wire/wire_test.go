package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

func frames(t *testing.T, f wire.Frames) (got []string) {
	t.Helper()
	for {
		e, err := f.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Name+"|"+string(e.Data))
	}
}

func TestSSE(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"events", "event: a\ndata: 1\n\ndata:2\n\n", []string{"a|1", "|2"}},
		{"CRLF", "event: a\r\ndata: 1\r\n\r\n", []string{"a|1"}},
		{"many data lines", "data: 1\ndata:\ndata:  3\n\n", []string{"|1\n\n 3"}},
		{"comments, ids, retry times", ": hi\n\nid: 4\nretry: 10\ndata: 1\n\n:\n", []string{"|1"}},
		{"a name without data", "event: ping\n\ndata: 1\n\n", []string{"|1"}},
		{"no last blank line", "data: 1\n\ndata: 2", []string{"|1", "|2"}},
		{"a mark of byte order", "\xef\xbb\xbfdata: 1\n\n", []string{"|1"}},
		{"a long line", "data: " + long + "\n\ndata: 2\n\n", []string{"|" + long, "|2"}},
		{"nothing", "", nil},
		{"a name alone", "data\n\n", []string{"|"}},
	}
	for _, test := range tests {
		if got := frames(t, wire.SSE(strings.NewReader(test.in))); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %.200q, want %.200q", test.name, got, test.want)
		}
	}
}

func TestJSONLines(t *testing.T) {
	got := frames(t, wire.JSONLines(strings.NewReader("{\"a\":1}\r\n\n  \n{\"b\":2}")))
	if want := []string{`|{"a":1}`, `|{"b":2}`}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestObject(t *testing.T) {
	in := ` { "z" : 1.50 , "a\u0062":"x\"}{" ,"l":[ {"q":"]"}, 2 ] , "n":null,"o":{ } } `
	o, err := jsontree.ParseObject([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(o.Bytes()), `{"z":1.50,"ab":"x\"}{","l":[ {"q":"]"}, 2 ],"n":null,"o":{ }}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	o.Set("z", json.RawMessage("2"))
	o.Set("<new>", json.RawMessage("3"))
	if got, want := string(o.Only("z", "<new>").Bytes()), `{"z":2,"<new>":3}`; got != want {
		t.Errorf("%s", got)
	}
	if o.Get("n") == nil || o.Get("missing") != nil || len(o.Without("z", "<new>", "l")) != 3 {
		t.Errorf("%v", o)
	}
	for _, bad := range []string{"", "[]", "1", `"x"`, "{", `{"a":1}{}`, "null"} {
		if _, err := jsontree.ParseObject([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// FuzzObject: an object that is read and written has the members that encoding/json finds.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,{"b":"\\"}],"c":"\"{,"}`, `{"a":1,"a":2}`, "{\"\x00\":1}", `{"a":-0.5e+7 ,"b":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := jsontree.ParseObject(data)
		var want, got map[string]any
		if bad := json.Unmarshal(data, &want); (bad == nil && want != nil) != (err == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", data, err, bad)
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal(o.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %s: %v", data, o.Bytes(), err)
		}
	})
}

func TestStreaming(t *testing.T) {
	member := json.RawMessage(`{"stream_options":{"include_usage":true}}`)
	for in, want := range map[string]string{
		`{"model":"m","messages":[ 1, 2 ]}`: `{"model":"m","messages":[ 1, 2 ],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"stream":false,"model":"m"}`:      `{"stream":true,"model":"m","stream_options":{"include_usage":true}}`,
	} {
		r, err := wire.Streaming(wire.Request{Body: []byte(in)}, member)
		if err != nil || string(r.Body) != want {
			t.Errorf("%s, %v", r.Body, err)
		}
	}
	if r, _ := wire.Streaming(wire.Request{Body: []byte(`{"a":1}`), Whole: true}, member); string(r.Body) != `{"a":1,"stream":false}` {
		t.Errorf("%s", r.Body)
	}
	if _, err := wire.Streaming(wire.Request{Body: []byte(`[]`)}, nil); err == nil {
		t.Error("a body that is no object was taken")
	}
}

func TestClassify(t *testing.T) {
	date := http.Header{"Date": {"Fri, 27 Nov 2026 10:00:00 GMT"}, "Retry-After": {"Fri, 27 Nov 2026 10:00:30 GMT"}}
	tests := []struct {
		status int
		h      http.Header
		body   string
		kind   wire.Kind
		typ    string
		wait   time.Duration
	}{
		// Anthropic
		{400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"},"request_id":"req_1"}`, wire.Invalid, "invalid_request_error", 0},
		{400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, wire.Refused, "invalid_request_error", 0},
		{403, nil, `{"type":"error","error":{"type":"permission_error","message":"no"}}`, wire.Authentication, "permission_error", 0},
		{404, nil, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-0"}}`, wire.Invalid, "not_found_error", 0},
		{413, nil, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, wire.TooLong, "request_too_large", 0},
		{500, nil, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, wire.Overloaded, "api_error", 0},
		{200, nil, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, wire.RateLimit, "rate_limit_error", 0},
		// OpenAI
		{400, nil, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, wire.TooLong, "context_length_exceeded", 0},
		{400, nil, `{"error":{"message":"Invalid prompt: flagged","type":"invalid_request_error","code":"content_policy_violation"}}`, wire.Refused, "content_policy_violation", 0},
		{429, date, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, wire.RateLimit, "rate_limit_exceeded", 30 * time.Second},
		{404, nil, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, wire.Invalid, "model_not_found", 0},
		// Gemini
		{400, nil, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, wire.Authentication, "API_KEY_INVALID", 0},
		{400, nil, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, wire.TooLong, "INVALID_ARGUMENT", 0},
		{429, nil, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{},{"retryDelay":"12.5s"}]}}]`, wire.RateLimit, "RESOURCE_EXHAUSTED", 12500 * time.Millisecond},
		{503, nil, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`, wire.Overloaded, "UNAVAILABLE", 0},
		// Ollama, llama.cpp, vLLM, others
		{404, nil, `{"error":"model \"x\" not found, try pulling it first"}`, wire.Invalid, "", 0},
		{400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, wire.TooLong, "exceed_context_size_error", 0},
		{400, nil, `{"object":"error","message":"bad role","type":"BadRequestError","code":400}`, wire.Invalid, "BadRequestError", 0},
		{422, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, wire.Invalid, "", 0},
		{401, nil, ``, wire.Authentication, "", 0},
		{402, nil, `nope`, wire.Refused, "", 0},
		{418, nil, "null", wire.Invalid, "", 0},
	}
	for _, test := range tests {
		e := wire.Classify("p", test.status, test.h, []byte(test.body))
		if e.Kind != test.kind || e.Type != test.typ || e.RetryAfter != test.wait || e.Message == "" || e.Advice() == "" {
			t.Errorf("%d %s: %+v", test.status, test.body, e)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(400, []byte(`[{"error":{"code":"x","details":[{"retryDelay":"-1s"}]}}]`))
	f.Add(200, []byte(`{"error":null}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if e := wire.Classify("p", status, http.Header{}, body); e.Kind == "" || e.Message == "" || e.RetryAfter < 0 {
			t.Errorf("%+v", e)
		}
	})
}

func TestSound(t *testing.T) {
	m := wire.Sound(&pool.Message{Role: pool.Assistant,
		Content: []pool.Part{{Type: pool.TextPart, Text: "kept"}, {}, {Type: pool.CallPart, CallID: "a"}, {Type: pool.CallPart, CallID: "b"}},
		Calls:   []pool.Call{{ID: "a", Tool: "now", Status: pool.Pending}, {ID: "b", Status: pool.Pending}},
		Meta:    pool.Metadata{Provider: "p", Model: "\xff", FinishReason: "stop"}})
	if err := m.Validate(); err != nil || len(m.Content) != 2 || len(m.Calls) != 1 || m.Text() != "kept" || m.Meta.FinishReason != "stop" || m.Meta.Error == "" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestMerge(t *testing.T) {
	got := jsontree.Merge([]byte(`{"a":1,"b":2}`), []byte(`{"b":3,"a":null,"c":4}`))
	if !bytes.Equal(got, []byte(`{"a":1,"b":3,"c":4}`)) {
		t.Errorf("%s", got)
	}
}
