package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Tool checks that a tool's schema is a JSON Schema that providers accept, and that its command can be expanded.
func (Rules) Tool(t *record.Tool) error {
	if err := checkTool(t); err != nil {
		return base.Invalid("the tool %q: %v", t.Name, err)
	}
	return nil
}

// Arguments checks arguments by a tool's schema.
func (Rules) Arguments(schema, arguments json.RawMessage) error {
	if err := checkArguments(schema, arguments); err != nil {
		return base.Invalid("%v", err)
	}
	return nil
}

func checkTool(t *record.Tool) error {
	if err := checkSchema(t.Schema); err != nil {
		return err
	}
	for _, r := range t.Remotes {
		if err := checkSchema(r.Schema); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return nil
}

// schemaURL names a tool's schema to the compiler. Nothing is fetched.
const schemaURL = "tool:schema"

// noLoader refuses to load other schemas.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s refers to something outside: a tool's schema must contain everything it needs", url)
}

// checkSchema returns an error if a model cannot be given a schema. A nil schema stands for any object.
func checkSchema(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	tree, err := jsontree.Parse(raw)
	if err != nil {
		return fmt.Errorf("its schema: %w", err)
	}
	if tree.Kind != jsontree.Object {
		return errors.New("its schema is not a JSON object")
	}
	if n := untoldNumber(tree); n != "" {
		return fmt.Errorf("its schema holds %s, whose exponent is too large", n)
	}
	if typ := tree.Get("type"); typ != nil && (typ.Kind != jsontree.String || typ.Text != "object") {
		return errors.New(`its schema must have "type": "object": providers take no other`)
	}
	_, err = compileSchema(raw)
	return err
}

func compileSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("its schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		var invalid *jsonschema.SchemaValidationError
		var details *jsonschema.ValidationError
		if errors.As(err, &invalid) && errors.As(invalid.Err, &details) {
			return nil, fmt.Errorf("its schema is not a JSON Schema: %s", faults(details))
		}
		return nil, fmt.Errorf("its schema cannot be used: %s", strings.ReplaceAll(err.Error(), schemaURL, ""))
	}
	return s, nil
}

// checkArguments returns an error if arguments do not fit a tool's schema, in words from which a model can correct them. With a nil schema any object fits.
func checkArguments(schema, arguments json.RawMessage) error {
	tree, err := jsontree.Arguments(arguments)
	if err != nil {
		return fmt.Errorf("the arguments cannot be read: %w", err)
	}
	if n := untoldNumber(tree); n != "" {
		return fmt.Errorf("the arguments cannot be read: the exponent of %s is too large", n)
	}
	if schema == nil {
		return nil
	}
	s, err := compileSchema(schema)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tree.Append(nil)))
	if err != nil {
		return fmt.Errorf("the arguments cannot be read: %w", err)
	}
	var details *jsonschema.ValidationError
	if err := s.Validate(doc); errors.As(err, &details) {
		return fmt.Errorf("the arguments do not fit the tool's schema: %s", faults(details))
	} else if err != nil {
		return err
	}
	return nil
}

// untoldNumber returns a number whose exponent is too large, "" if there is none. Written out it would exhaust the memory.
func untoldNumber(v *jsontree.Value) (found string) {
	below(v, func(v *jsontree.Value) {
		if v.Kind == jsontree.Number {
			if _, ok := number(v.Text); !ok {
				found = v.Text
			}
		}
	})
	return found
}

// mostFaults bounds the faults of arguments that are named.
const mostFaults = 8

// faults names the places that do not fit, and why.
func faults(e *jsonschema.ValidationError) string {
	var all []string
	var walk func(*jsonschema.ValidationError)
	printer := message.NewPrinter(language.English)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if _, isRef := e.ErrorKind.(*kind.Reference); len(e.Causes) > 0 || isRef || len(all) >= mostFaults {
			return
		}
		place := strings.Join(e.InstanceLocation, ".")
		if place != "" {
			place += ": "
		}
		all = append(all, place+e.ErrorKind.LocalizedString(printer))
	}
	walk(e)
	return strings.Join(all, "; ")
}
