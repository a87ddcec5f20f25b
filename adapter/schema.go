package adapter

import (
	"bytes"
	"encoding/json"

	"github.com/chatctx/chatctx/internal/jsontree"
)

var anyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// toolSchema returns a tool's schema in a form that all providers accept: that of an object with properties, without combined schemas at its top, and with
// items for each array. note says what was changed.
func toolSchema(raw json.RawMessage) (schema json.RawMessage, note string) {
	if isNull(raw) {
		return anyObject, ""
	}
	clean, ok := cleanObject(raw)
	if !ok {
		return anyObject, "its schema is not a JSON object; any arguments are allowed"
	}
	o, err := jsontree.ParseObject(completed(clean, false, 0))
	if err != nil {
		return anyObject, "its schema cannot be read; any arguments are allowed"
	}
	if string(o.Get("type")) != `"object"` {
		o.Set("type", json.RawMessage(`"object"`))
	}
	if p := o.Get("properties"); len(p) == 0 || p[0] != '{' {
		o.Set("properties", noArguments)
	}
	o.Set("properties", objects(o.Get("properties")))
	if r := o.Get("required"); r != nil && r[0] != '[' {
		o = o.Without("required")
	}
	for _, joins := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref", "if", "then", "else"} {
		if o.Get(joins) != nil {
			o = o.Without(joins)
			note = "its schema may not join others at its top: " + joins + " was left out"
		}
	}
	return o.Bytes(), note
}

// objects returns an object of schemas in which the schema of anything replaces each value that is not an object.
func objects(raw json.RawMessage) json.RawMessage {
	o, err := jsontree.ParseObject(raw)
	if err != nil {
		return noArguments
	}
	for i := range o {
		if v := o[i].Value; len(v) == 0 || v[0] != '{' {
			o[i].Value = noArguments
		}
	}
	return o.Bytes()
}

// holders are the members of a schema that hold schemas: one, a list, or (true) an object of them by name.
var holders = map[string]bool{"properties": true, "$defs": true, "definitions": true, "patternProperties": true, "items": false,
	"additionalProperties": false, "anyOf": false, "oneOf": false, "allOf": false, "prefixItems": false, "not": false}

// maxDepth is how deep schemas are examined, since each level is parsed again.
const maxDepth = 64

// completed returns a schema whose arrays all have items; byName means an object of schemas. Anything but an object or a list stays unchanged.
func completed(raw json.RawMessage, byName bool, depth int) json.RawMessage {
	if len(raw) > 0 && raw[0] == '[' {
		return completedList(raw, depth)
	}
	if len(raw) == 0 || raw[0] != '{' || depth > maxDepth || !bytes.Contains(raw, []byte(`"array"`)) {
		return raw
	}
	o, err := jsontree.ParseObject(raw)
	if err != nil {
		return raw
	}
	for i := range o {
		if nested, holds := holders[o[i].Name]; byName {
			o[i].Value = completed(o[i].Value, false, depth+1)
		} else if holds {
			o[i].Value = completed(o[i].Value, nested, depth+1)
		}
	}
	if !byName && bytes.Contains(o.Get("type"), []byte(`"array"`)) && o.Get("items") == nil && o.Get("prefixItems") == nil {
		o.Set("items", noArguments)
	}
	return o.Bytes()
}

func completedList(raw json.RawMessage, depth int) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	joined := []byte{'['}
	for i := range list {
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, completed(list[i], false, depth+1)...)
	}
	return append(joined, ']')
}
