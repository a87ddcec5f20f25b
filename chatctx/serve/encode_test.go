package serve

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/testkit"
)

type (
	shadowInner struct {
		A int `json:"a"`
		B int
		C int `json:"c,omitempty"`
		E int `json:"e"`
	}
	shadowOther struct {
		B int
		D int `json:"d"`
		E int `json:"E"`
	}
	shadowDeep struct {
		shadowOther
		A    string    `json:"a"`
		Time time.Time `json:"time,omitzero"`
	}
	shadowed struct {
		shadowInner
		*shadowDeep
		C string `json:"c"`
		D *int   `json:"d,omitempty"`
		X int    `json:"-"`
		E int    `json:"-,"` //lint:ignore SA5008 the name is "-" on purpose
	}
)

// TestEncodesAsEncodingJSON: the encoder writes each name once, and the value that encoding/json takes of several fields with one name.
func TestEncodesAsEncodingJSON(t *testing.T) {
	n := 7
	values := []any{shadowed{}, &shadowed{shadowInner: shadowInner{1, 2, 3, 4}, shadowDeep: &shadowDeep{shadowOther{5, 6, 7}, "x", time.Unix(1, 0)}, C: "own", D: &n, X: 8, E: 9},
		map[string]json.RawMessage{"b": json.RawMessage(`{"x":1}`), "a": nil}, []any{shadowInner{}, nil}, contract.Cost{Sums: contract.Sums{Sums: cost.Sums{Replies: 3}, Whole: 5}}}
	for _, m := range methods() {
		values = append(values, reflect.New(m.out).Interface())
		for _, e := range m.events {
			values = append(values, reflect.New(e.typ).Interface())
		}
	}
	for _, v := range values {
		got, err := encode(v, 0)
		if err == nil {
			err = testkit.UniqueNames(got)
		}
		if err != nil {
			t.Errorf("%T: %v: %s", v, err, got)
			continue
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%T is\n%s, not\n%s", v, got, want)
		}
	}
}

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
