package serve

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// description returns the OpenAPI document, in a form in which its schemas can be looked up.
func description(t *testing.T) (doc any, c *jsonschema.Compiler) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenAPI()))
	if err != nil {
		t.Fatal(err)
	}
	c = jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:///api.json", doc); err != nil {
		t.Fatal(err)
	}
	return doc, c
}

// escaped returns a name for a JSON pointer.
func escaped(s string) string {
	s = strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
	return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(s)
}

// asDescribed checks the exchanges of a test against the description: the answers, and the accepted requests.
func (a *api) asDescribed() {
	a.t.Helper()
	doc, c := description(a.t)
	for _, e := range a.recorded {
		path, isAPI := strings.CutPrefix(e.path, apiPath)
		path, _, _ = strings.Cut(path, "?")
		m := routed(e.verb, path)
		if !isAPI || m == nil {
			continue
		}
		at := "/paths/" + escaped(m.Path) + "/" + strings.ToLower(m.Verb)
		kind, _, _ := strings.Cut(e.res.Header.Get("Content-Type"), ";")
		switch {
		case e.res.StatusCode == 200 && kind == "application/json":
			a.valid(doc, c, at+"/responses/200/content/application~1json/schema", e.raw, e)
			if raw, ok := bodyOf(e.body); ok && m.Verb == "POST" && !m.Upload {
				a.valid(doc, c, at+"/requestBody/content/application~1json/schema", raw, e)
			}
		case e.res.StatusCode == 200 && kind == "text/event-stream":
			all := eventsIn(a.t, string(e.raw))
			for _, one := range all {
				raw, _ := json.Marshal(object{"event": one.name, "data": one.data})
				a.valid(doc, c, at+"/responses/200/content/text~1event-stream/schema", raw, e)
			}
		case e.res.StatusCode >= 400:
			is := "default"
			if status := strconv.Itoa(e.res.StatusCode); describes(doc, m, status) {
				is = status
			}
			a.valid(doc, c, at+"/responses/"+is+"/content/application~1json/schema", e.raw, e)
		}
	}
}

// describes reports whether a method's answers with a status have a description of their own.
func describes(doc any, m *method, status string) bool {
	_, is := at(doc, "paths", m.Path, strings.ToLower(m.Verb), "responses").(object)[status]
	return is
}

func bodyOf(body any) ([]byte, bool) {
	switch b := body.(type) {
	case object:
		raw, err := json.Marshal(b)
		return raw, err == nil
	case string:
		return []byte(b), true
	}
	return nil, false
}

func (a *api) valid(doc any, c *jsonschema.Compiler, pointer string, raw []byte, e spoken) {
	a.t.Helper()
	s, err := c.Compile("mem:///api.json#" + pointer)
	if err != nil {
		a.t.Fatalf("%s: %v", pointer, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		a.t.Fatalf("%s %s: %v", e.verb, e.path, err)
	}
	if err := s.Validate(v); err != nil {
		a.t.Errorf("%s %s is not as described: %v\n%s", e.verb, e.path, err, raw)
	}
}

// routed returns the method of a request.
func routed(verb, path string) *method {
	is := strings.Split(path, "/")
next:
	for _, m := range methods() {
		want := strings.Split(m.Path, "/")
		if m.Verb != verb || len(is) != len(want) {
			continue
		}
		for i := range want {
			if want[i] != is[i] && !strings.HasPrefix(want[i], "{") {
				continue next
			}
		}
		return m
	}
	return nil
}

// TestTheDescription: the description is complete: each method has a unique id, and each parameter an explanation.
func TestTheDescription(t *testing.T) {
	doc, c := description(t)
	paths, _ := at(doc, "paths").(object)
	ids := map[string]bool{}
	for path, verbs := range paths {
		for verb := range verbs.(object) {
			id, _ := at(doc, "paths", path, verb, "operationId").(string)
			if ids[id] || methodNamed(id) == nil {
				t.Errorf("%s %s has the id %q", verb, path, id)
			}
			ids[id] = true
		}
	}
	if len(ids) != len(methods()) {
		t.Errorf("%d methods are described of %d", len(ids), len(methods()))
	}
	for _, m := range methods() {
		if m.Does == "" {
			t.Errorf("%s does nothing", m.Name)
		}
		for _, f := range m.fields {
			if f.Doc == "" {
				t.Errorf("%s: what is %s for?", m.Name, f.Name)
			}
		}
		for _, match := range inPath().FindAllStringSubmatch(m.Path, -1) {
			if !m.has(match[1]) {
				t.Errorf("%s: %s has a place in the path and is no parameter", m.Name, match[1])
			}
		}
	}
	for name := range at(doc, "components", "schemas").(object) {
		if _, err := c.Compile("mem:///api.json#/components/schemas/" + name); err != nil {
			t.Errorf("the schema %s: %v", name, err)
		}
	}
	a := start(t, Options{})
	if res, raw := a.send("GET", apiPath+"/openapi.json", nil, nil); res.StatusCode != 200 || !bytes.Equal(raw, OpenAPI()) {
		t.Errorf("the description is not served: %d", res.StatusCode)
	}
}

// The description of a message has each member that its JSON can have, and requires those that are always there.
func TestMessagesAreDescribedWhole(t *testing.T) {
	members := func(e *chatctx.Entry) []string {
		raw, err := json.Marshal(e)
		var v map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(v))
	}
	id := chatctx.ID{1}
	full := &chatctx.Entry{Message: &chatctx.Message{ID: id, Role: pool.Assistant, Calls: []pool.Call{{ID: "c"}}, Result: &pool.Result{RequestID: "c"}, Meta: pool.Metadata{Model: "m", FinishReason: "refusal", Usage: json.RawMessage(`{"a": 1}`)}, Kind: "late",
		Hidden: true, Unsent: true, Unfinished: true, CopiedFrom: &id, Source: &pool.Source{Format: "f"}, AppData: map[string]json.RawMessage{"a": json.RawMessage("1")}, Extra: map[uint64]cbor.RawMessage{99: {1}}},
		Tags: []string{"t"}, Queued: true}
	shown := at(shownMessage(), "allOf", 0).(schema)
	if want := slices.Sorted(maps.Keys(messageFields())); !slices.Equal(members(full), want) {
		t.Errorf("a message has %q, and %q are described", members(full), want)
	}
	if want := members(&chatctx.Entry{Message: &chatctx.Message{}}); !slices.Equal(want, shown["required"].([]string)) {
		t.Errorf("a message has always %q, and %q are required", want, shown["required"])
	}
}

// TestTypesAreExact: no list may be null, what has closed words says them, and a part is one of its kinds.
func TestTypesAreExact(t *testing.T) {
	doc, c := description(t)
	lists := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch x := v.(type) {
		case map[string]any:
			if kinds, ok := x["type"].([]any); ok && slices.Contains(kinds, any("array")) {
				t.Errorf("%s is a list or %v", at, kinds)
			}
			if x["type"] == "array" {
				lists++
			}
			for name, inner := range x {
				walk(at+"/"+name, inner)
			}
		case []any:
			for _, inner := range x {
				walk(at, inner)
			}
		}
	}
	walk("", at(doc, "components", "schemas"))
	if lists < 50 {
		t.Errorf("there are only %d lists", lists)
	}
	for _, c := range []struct{ schema, member, word string }{{"Call", "approval_status", "denied"}, {"Call", "execution", "uncertain"}, {"Call", "effect", "ask"}, {"Rule", "effect", "deny"}, {"Rule", "scope", "branch"}, {"Task", "state", "abandoned"}, {"Edit", "kind", "gone"}} {
		words, _ := at(doc, "components", "schemas", c.schema, "properties", c.member, "enum").([]any)
		if !slices.Contains(words, any(c.word)) {
			t.Errorf("%s of %s may be %v", c.member, c.schema, words)
		}
	}
	part, err := c.Compile("mem:///api.json#/components/schemas/Part")
	if err != nil {
		t.Fatal(err)
	}
	for text, is := range map[string]bool{
		`{"type":"text","text":"a"}`: true, `{"type":"text"}`: false, `{"type":"text","text":1}`: false, `{"type":"image","url":"u"}`: true, `{"type":"image","size":"1"}`: false,
		`{"type":"thinking","thinking":"a"}`: true, `{"type":"tool_call","id":"c"}`: true, `{"type":"tool_call"}`: false, `{"type":"video","text":1}`: true, `{"text":"a"}`: false,
	} {
		v, _ := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err := part.Validate(v); (err == nil) != is {
			t.Errorf("%s as a part: %v", text, err)
		}
	}
}
