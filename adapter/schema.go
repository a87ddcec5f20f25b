package adapter

import (
	"encoding/json"

	"github.com/chatctx/chatctx/adapter/wire"
)

var anyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// toolSchema is a tool's schema as all providers take it: an object's, with properties, and nothing that joins schemas at its
// top. what says what had to be done.
func toolSchema(raw json.RawMessage) (schema json.RawMessage, what string) {
	if isNull(raw) {
		return anyObject, ""
	}
	clean, ok := cleanObject(raw)
	if !ok {
		return anyObject, "its schema is no JSON object; any arguments are allowed"
	}
	o, err := wire.ParseObject(clean)
	if err != nil {
		return anyObject, "its schema cannot be read; any arguments are allowed"
	}
	same := true
	if string(o.Get("type")) != `"object"` {
		o.Set("type", json.RawMessage(`"object"`))
		same = false
	}
	if p := o.Get("properties"); p == nil || p[0] != '{' {
		o.Set("properties", noArguments)
		same = false
	}
	for _, joins := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref"} {
		if o.Get(joins) != nil {
			o = o.Without(joins)
			what = "its schema may not join others at its top: " + joins + " was left out"
			same = false
		}
	}
	if same {
		return clean, ""
	}
	return o.Bytes(), what
}
