package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
		path, isAPI := strings.CutPrefix(e.path, base)
		path, _, _ = strings.Cut(path, "?")
		m := routed(e.verb, path)
		if !isAPI || m == nil {
			continue
		}
		at := "/paths/" + escaped(m.path) + "/" + strings.ToLower(m.verb)
		kind, _, _ := strings.Cut(e.res.Header.Get("Content-Type"), ";")
		switch {
		case e.res.StatusCode == 200 && kind == "application/json":
			a.valid(doc, c, at+"/responses/200/content/application~1json/schema", e.raw, e)
			if raw, ok := bodyOf(e.body); ok && m.verb == "POST" && !m.upload {
				a.valid(doc, c, at+"/requestBody/content/application~1json/schema", raw, e)
			}
		case e.res.StatusCode == 200 && kind == "text/event-stream":
			all := eventsIn(a.t, string(e.raw))
			if last := all[len(all)-1]; last.name == "done" {
				raw, _ := json.Marshal(last.data)
				a.valid(doc, c, at+"/responses/200/content/text~1event-stream/x-done", raw, e)
			}
		case e.res.StatusCode >= 400:
			a.valid(doc, c, at+"/responses/default/content/application~1json/schema", e.raw, e)
		}
	}
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
	for _, m := range methods {
		want := strings.Split(m.path, "/")
		if m.verb != verb || len(is) != len(want) {
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
	if len(ids) != len(methods) {
		t.Errorf("%d methods are described of %d", len(ids), len(methods))
	}
	for _, m := range methods {
		if m.does == "" {
			t.Errorf("%s does nothing", m.name)
		}
		for _, f := range m.fields {
			if f.does == "" {
				t.Errorf("%s: what is %s for?", m.name, f.name)
			}
		}
		for _, match := range inPath.FindAllStringSubmatch(m.path, -1) {
			if !m.has(match[1]) {
				t.Errorf("%s: %s has a place in the path and is no parameter", m.name, match[1])
			}
		}
	}
	for name := range at(doc, "components", "schemas").(object) {
		if _, err := c.Compile("mem:///api.json#/components/schemas/" + name); err != nil {
			t.Errorf("the schema %s: %v", name, err)
		}
	}
	a := start(t, Options{})
	if res, raw := a.send("GET", base+"/openapi.json", nil, nil); res.StatusCode != 200 || !bytes.Equal(raw, OpenAPI()) {
		t.Errorf("the description is not served: %d", res.StatusCode)
	}
}
