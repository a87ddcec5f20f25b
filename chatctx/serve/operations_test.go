package serve

import (
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/operation/toy"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestOneFileIsAMethod: an operation that one file adds is a route, a method of JSON-RPC, and stands in OpenAPI and docs/api.md.
func TestOneFileIsAMethod(t *testing.T) {
	if !testkit.Again(t, toy.Variable) {
		return
	}
	a := start(t, Options{})
	id, _ := a.context("Boats", "One")
	spun := a.post("/contexts/"+id+"/toys", object{"colour": "red"})
	a.want(spun, "redredred", "label")
	a.want(a.do(400, "POST", "/contexts/"+id+"/toys", object{"colour": "blue"}), `toys.spin: colour is "blue", and has to be red or green`, "error", "message")
	c := a.stdio()
	c.call("initialize", nil)
	a.want(c.call("toys.spin", object{"context": id, "colour": "green", "times": 1}), "green", "label")
	doc, _ := description(t)
	a.want(doc, "toys.spin", "paths", "/contexts/{context}/toys", "post", "operationId")
	body := at(doc, "paths", "/contexts/{context}/toys", "post", "requestBody", "content", "application/json", "schema", "properties")
	a.want(body, "green", "colour", "allOf", 0, "enum", 1)
	a.want(body, float64(3), "times", "allOf", 0, "default")
	a.want(body, "how often it spins: N times", "times", "description")
	if want := "| `toys.spin` | `POST /contexts/{context}/toys` | write | spin a top in a conversation | context!, expect, key, colour!, times | not_found, ambiguous, purged, conflict |"; !strings.Contains(methodDocs(), want) {
		t.Errorf("docs/api.md would lack %s", want)
	}
}
