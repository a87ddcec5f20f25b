package serve

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHalfCharactersAreReplaced: half characters in incoming JSON are replaced, in texts, arguments, names and settings alike, so that strict readers accept
// everything that is sent.
func TestHalfCharactersAreReplaced(t *testing.T) {
	a := start(t, Options{})
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	c := a.post("/contexts", raw(`{"title":"A\ud83d","system":"s\udc00","settings":{"app.x":{"\ud800":"\udc00"},"app.y":"\ud83d\ude00"}}`))
	path := "/contexts/" + c["context"].(string)
	a.post(path+"/branches/main/messages", raw(`{"messages":[{"role":"user","content":"x\ud83d"},{"role":"assistant","content":[{"type":"text","text":"t\udfff"}],
		"tool_calls":[{"id":"c\ud800","tool_name":"f","arguments":{"a\ud800":"\udfff","b":"\ud83d\ude00"}}]}]}`))
	for _, shown := range []string{"", "/branches/main/messages", "/branches/main/calls", "/branches/main/settings"} {
		_, body := a.send("GET", path+shown, nil, nil)
		if s := string(body); strings.Contains(s, `\ud8`) || strings.Contains(s, `\udc`) || strings.Contains(s, `\udf`) {
			t.Errorf("%s: %s", shown, s)
		}
	}
	got := a.get(path + "/branches/main/messages")
	a.want(got, "x\uFFFD", "items", 0, "content", 0, "text")
	a.want(got, "t\uFFFD", "items", 1, "content", 0, "text")
	a.want(got, "😀", "items", 1, "tool_calls", 0, "arguments", "b")
	a.want(got, "\uFFFD", "items", 1, "tool_calls", 0, "arguments", "a\uFFFD")
}
