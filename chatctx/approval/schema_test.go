package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// TestSchemasByEveryDoor stores tools by each function of the library, with and without rules that know schemas, and holds that all refuse what `tools add`
// refuses and take what it takes. Generated schemas put values of every kind behind every keyword.
func TestSchemasByEveryDoor(t *testing.T) {
	ctx := t.Context()
	type door struct {
		name string
		put  func(record.Tool) error
	}
	var doors []door
	for name, judge := range map[string]record.Judge{"without rules": nil, "with rules": Rules{}} {
		s, err := chatctx.OpenMemory(chatctx.Options{Judge: judge})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := s.New(ctx, record.NewContext{Title: "T"})
		if err != nil {
			t.Fatal(err)
		}
		doors = append(doors,
			door{"Store.PutTool " + name, func(tool record.Tool) error { _, err := s.PutTool(ctx, tool); return err }},
			door{"Batch.PutTool " + name, func(tool record.Tool) error { b := c.Begin(""); b.PutTool(tool); _, err := b.Commit(ctx); return err }},
			door{"a server's tools " + name, func(tool record.Tool) error {
				_, err := s.PutTool(ctx, record.Tool{Name: "m", MCP: true, URL: "http://localhost", Remotes: []record.Remote{{Name: "r", Schema: tool.Schema}}})
				return err
			}})
	}
	check := func(schema string) {
		t.Helper()
		want := checkSchema(json.RawMessage(schema))
		for _, d := range doors {
			if err := d.put(record.Tool{Name: "t", Schema: json.RawMessage(schema)}); (err == nil) != (want == nil) || err != nil && !errors.Is(err, chatctx.ErrInvalid) {
				t.Errorf("%s: %s: %v; the command says %v", d.name, schema, err, want)
			}
		}
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"x":{"type":"array","items":null}}}`, `{"type":"object","required":[1,null]}`,
		`{"type":"object","required":"x","properties":{"x":{"type":"string"}}}`, `{"type":"object","properties":{"x":{"type":"string"}}}`, `{}`, `[]`, `"x"`,
		`{"type":"string"}`, `{"type":["object"]}`, `{"properties":[]}`, `{"properties":{"a":1}}`, `{"properties":{"type":{"type":"String"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"type":"number","minimum":1,"exclusiveMinimum":true}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"type":"string"}]}}}`, `{"enum":[]}`, `{"required":["a","a"]}`,
		`{"properties":{"n":{"maxLength":1e2}}}`, `{"properties":{"n":{"maxLength":-1}}}`, `{"properties":{"n":{"multipleOf":0.0}}}`,
	} {
		check(schema)
	}
	keywords := strings.Fields("items contains additionalProperties propertyNames if then else not unevaluatedItems unevaluatedProperties properties patternProperties dependentSchemas $defs " +
		"prefixItems allOf anyOf oneOf type required dependentRequired enum const default uniqueItems deprecated readOnly writeOnly maximum minimum exclusiveMaximum " +
		"exclusiveMinimum multipleOf maxLength minLength maxItems minItems maxContains minContains maxProperties minProperties pattern title description $comment x-own")
	values := []string{"null", "true", "1", "0", "-1", "1.5", "2.0", `"x"`, `"string"`, "[]", `["x"]`, `["x","x"]`, `["string","null"]`, "[1]", "[true]", "{}", `{"a":{}}`, `{"a":[]}`, `{"a":["x"]}`, `{"a":null}`,
		`{"type":"integer"}`, `{"type":1}`, `[{}]`, `[{"type":"x"}]`}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, k := range keywords {
		for _, v := range values {
			inner := fmt.Sprintf(`{%q:%s}`, k, v)
			if k != "type" {
				check(inner)
			}
			for range rnd.IntN(3) { // some levels deeper
				inner = []string{`{"properties":{"p":` + inner + `}}`, `{"anyOf":[{},` + inner + `]}`, `{"items":` + inner + `}`, `{"$defs":{"d":` + inner + `}}`}[rnd.IntN(4)]
			}
			check(`{"type":"object","properties":{"q":` + inner + `}}`)
		}
	}
}
