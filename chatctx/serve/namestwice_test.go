package serve

import "testing"

// TestNamesTwiceOverTheAPI: no answer has a name twice, whatever JSON a model gave or a store holds, and the exact text can be read too.
func TestNamesTwiceOverTheAPI(t *testing.T) {
	a := start(t, Options{})
	c := a.post("/contexts", object{"title": "Twice"})["context"].(string)
	branch := "/contexts/" + c + "/branches/main"
	const twice = `{"path":"/tmp/a","path":"/tmp/b","n":{"x":1,"x":2}}`
	a.do(200, "POST", branch+"/messages", `{"messages":[{"role":"assistant","content":[],"tool_calls":[{"id":"c1","tool_name":"t","arguments":`+twice+`}],"metadata":{"usage":`+twice+
		`}},{"role":"user","content":[{"type":"odd","x":`+twice+`}],"app_data":{"own":`+twice+`}}]}`)
	list := a.get(branch + "/messages")
	a.want(list, "/tmp/b", "items", 0, "tool_calls", 0, "arguments", "path")
	a.want(list, twice, "items", 0, "exact", "/tool_calls/0/arguments")
	a.get(branch + "/messages/u1")
	a.want(a.get("/calls?context="+c), twice, "items", 0, "exact_arguments")
	call := a.get(branch + "/calls/c1")
	a.want(call, "/tmp/b", "arguments", "path")
	a.want(call, twice, "exact_arguments")
	std := a.stdio()
	std.call("initialize", object{})
	std.call("messages.list", object{"context": c, "branch": "main"})
	std.call("calls.get", object{"context": c, "branch": "main", "call": "c1"})
}
