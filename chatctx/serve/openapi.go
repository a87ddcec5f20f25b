package serve

import (
	"encoding"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

// OpenAPI returns the description of the API in OpenAPI 3.1, made from the table of methods.
func OpenAPI() []byte { return described() }

var described = sync.OnceValue(func() []byte {
	d := &describer{schemas: messageSchemas(), names: map[reflect.Type]string{}}
	paths := map[string]map[string]any{}
	for _, m := range methods() {
		if paths[m.Path] == nil {
			paths[m.Path] = map[string]any{}
		}
		paths[m.Path][strings.ToLower(m.Verb)] = d.operation(m)
	}
	raw, err := json.MarshalIndent(map[string]any{
		"openapi":    "3.1.0",
		"info":       map[string]any{"title": "chatctx", "version": "1", "description": "Branching conversations with language models. A method's id is its name in JSON-RPC, over standard input and output: a message a line of at most 16 MB, a longer one in notifications $/part {of, data, last}, whose bytes, from base64, are its line."},
		"servers":    []any{map[string]any{"url": apiPath}},
		"security":   []any{map[string]any{"token": []any{}}},
		"paths":      paths,
		"components": map[string]any{"schemas": d.schemas, "securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
	}, "", " ")
	if err != nil {
		panic(err) // only the table goes in
	}
	return raw
})

// describer makes schemas of Go's types. Named types are in the components.
type describer struct {
	schemas map[string]any
	names   map[reflect.Type]string
}

type schema = map[string]any

var inPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)\}`) })

// unbraced takes the braces off the word for a flag's value.
var unbraced = strings.NewReplacer("{", "", "}", "")

// operation describes a method.
func (d *describer) operation(m *method) schema {
	op := schema{"operationId": m.Name, "summary": m.Does, "x-scope": string(m.Right), "tags": []any{strings.Split(m.Name, ".")[0]}}
	placed := map[string]bool{}
	parameters := []any{}
	for _, match := range inPath().FindAllStringSubmatch(m.Path, -1) {
		placed[match[1]] = true
	}
	body, required := schema{}, []string{}
	for _, f := range m.fields {
		s, does := d.of(f.Type), unbraced.Replace(f.Doc)
		if len(f.Words) > 0 {
			s = oneOf(f.Words...)
		}
		if f.Default != "" {
			s = maps.Clone(s)
			s["default"], _ = jsonOf(f.Type, []string{f.Default})
		}
		switch {
		case placed[f.Name], m.Verb == "GET", m.Upload:
			where := map[bool]string{true: "path", false: "query"}[placed[f.Name]]
			parameters = append(parameters, schema{"name": f.Name, "in": where, "required": f.Required, "description": does, "schema": s})
		default:
			if does != "" {
				s = withWords(does, s)
			}
			body[f.Name] = s
			if f.Required {
				required = append(required, f.Name)
			}
		}
	}
	for _, header := range []struct {
		name string
		is   bool
	}{{"Idempotency-Key", m.has("key") || m.Verb == "POST"}, {"If-Match", m.has("expect")}} {
		if header.is {
			parameters = append(parameters, schema{"name": header.name, "in": "header", "schema": schema{"type": "string"}})
		}
	}
	op["parameters"] = parameters
	switch {
	case m.Upload:
		op["requestBody"] = schema{"required": true, "content": schema{"application/octet-stream": schema{"schema": schema{"type": "string", "format": "binary"}}}}
	case m.Verb == "POST":
		op["requestBody"] = schema{"required": len(required) > 0, "content": schema{"application/json": schema{"schema": objectOf(body, required)}}}
	}
	op["responses"] = d.responses(m)
	return op
}

func (d *describer) responses(m *method) schema {
	ok := schema{"description": "done"}
	switch m.Shape {
	case operation.Answer:
		ok["content"] = schema{"application/json": schema{"schema": d.of(m.Out)}}
	case operation.Events:
		ok["description"] = "server-sent events, each with JSON as its data; the last one is done, or error"
		ok["content"] = schema{"text/event-stream": schema{"schema": d.events(m)}}
	case operation.Content:
		ok["content"] = schema{"*/*": schema{"schema": schema{"type": "string", "format": "binary"}}}
	}
	all := schema{"200": ok, "default": d.failure("Failure", "any other failure", operation.CommonErrors())}
	byStatus := map[int][]operation.Kind{}
	for _, k := range m.Errors() {
		byStatus[k.Status] = append(byStatus[k.Status], k)
		if k.Name == "conflict" && m.has("expect") {
			byStatus[http.StatusPreconditionFailed] = []operation.Kind{k}
		}
	}
	for status, kinds := range byStatus {
		name, does := "Failure", []string{}
		for _, k := range kinds {
			name, does = name+"."+k.Name, append(does, k.Name+": "+k.Does)
		}
		for _, k := range operation.CommonErrors() {
			if k.Status == status {
				kinds = append(kinds, k)
			}
		}
		all[strconv.Itoa(status)] = d.failure(name, strings.Join(does, "; "), kinds)
	}
	return all
}

// failure describes an answer that is an error of one of these kinds. Its schema is in the components.
func (d *describer) failure(name, does string, kinds []operation.Kind) schema {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	error := schema{"allOf": []any{d.of(reflect.TypeFor[contract.Error]()), schema{"properties": schema{"kind": oneOf(names...)}}}}
	d.schemas[name] = objectOf(schema{"error": error}, []string{"error"})
	return schema{"description": does, "content": schema{"application/json": schema{"schema": schema{"$ref": "#/components/schemas/" + name}}}}
}

// events describes the events of a stream as one union, which their names discriminate. The schemas are in the components.
func (d *describer) events(m *method) schema {
	all := append([]operation.Event{{Name: "done", Type: m.Out, Does: "the result; the last event"}}, m.Tells...)
	union, mapping := []any{}, schema{}
	put := func(name, does string, data schema) {
		component := m.Name + "." + name
		d.schemas[component] = withWords(does, objectOf(schema{"event": schema{"const": name}, "data": data}, []string{"data", "event"}))
		mapping[name] = "#/components/schemas/" + component
		union = append(union, schema{"$ref": mapping[name]})
	}
	for _, e := range all {
		put(e.Name, e.Does, d.of(e.Type))
	}
	put("error", "why it ended; the last event", objectOf(schema{"error": d.of(reflect.TypeFor[contract.Error]())}, []string{"error"}))
	return schema{"oneOf": union, "discriminator": schema{"propertyName": "event", "mapping": mapping}}
}

// withWords adds a description to a schema.
func withWords(does string, s schema) schema {
	return schema{"description": does, "allOf": []any{s}}
}

func objectOf(properties schema, required []string) schema {
	s := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// writtenTypes are types whose JSON differs from their fields.
var writtenTypes = map[reflect.Type]schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[time.Time]():       {"type": "string", "format": "date-time"},
	codec.Duration:                     {"type": "string"},
	reflect.TypeFor[pool.Time]():       {"type": "string", "format": "date-time"},
	reflect.TypeFor[chatctx.ID]():      {"type": "string", "format": "uuid"},
	reflect.TypeFor[chatctx.Entry]():   {"$ref": "#/components/schemas/Message"},
	reflect.TypeFor[chatctx.Message](): {"$ref": "#/components/schemas/NewMessage"},

	reflect.TypeFor[pool.Role]():      oneOf(pool.System, pool.User, pool.Assistant, pool.ToolRole),
	reflect.TypeFor[pool.Status]():    oneOf("", pool.Pending, pool.Approved, pool.Denied, pool.Left, pool.Withdrawn),
	reflect.TypeFor[pool.Execution](): oneOf("", pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain),
	reflect.TypeFor[compare.Kind]():   oneOf(compare.Same, compare.Gone, compare.New),
	reflect.TypeFor[operation.Condition](): {"anyOf": []any{schema{"type": "string", "description": "as it is typed: ARGUMENT OP VALUE"},
		objectOf(schema{"argument": schema{"type": "string"}, "op": schema{"type": "string", "enum": approval.Ops()}, "value": schema{"type": "string"}}, []string{"op", "value"})}},
}

// oneOf is the schema of a text that is one of these.
func oneOf[T ~string](words ...T) schema { return schema{"type": "string", "enum": words} }

// of returns the schema of a type.
func (d *describer) of(t reflect.Type) schema {
	if s, ok := writtenTypes[t]; ok {
		return s
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return orNull(d.of(t.Elem()))
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return schema{"type": "string"}
	case codec.WritesItself(t) || codec.WritesItself(reflect.PointerTo(t)):
		return schema{}
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Slice:
		return schema{"type": "array", "items": d.of(t.Elem())}
	case reflect.Array:
		return schema{"type": "array", "items": d.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	}
	return schema{"type": "integer"}
}

func orNull(s schema) schema {
	if word, ok := s["type"].(string); ok {
		s = maps.Clone(s)
		s["type"] = []any{word, "null"}
		return s
	}
	if len(s) == 0 {
		return s
	}
	return schema{"anyOf": []any{s, schema{"type": "null"}}}
}

// structure returns the schema of a struct. That of a named struct is in the components.
func (d *describer) structure(t reflect.Type) schema {
	if t.Name() == "" || strings.Contains(t.Name(), "[") {
		return d.fields(t)
	}
	name, known := d.names[t]
	if !known {
		name = strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		for n := 2; d.schemas[name] != nil; n++ {
			name = strings.TrimRight(name, "0123456789") + strconv.Itoa(n)
		}
		d.names[t], d.schemas[name] = name, schema{} // it may contain itself
		d.schemas[name] = d.fields(t)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

func (d *describer) fields(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	for _, f := range codec.Fields(t) {
		properties[f.Name] = d.of(f.Type)
		if len(f.Words) > 0 {
			properties[f.Name] = oneOf(f.Words...)
		}
		if f.Null {
			properties[f.Name] = orNull(d.of(f.Type))
		}
		if f.Required {
			required = append(required, f.Name)
		}
	}
	slices.Sort(required)
	return objectOf(properties, required)
}
