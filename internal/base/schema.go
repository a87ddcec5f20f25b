package base

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// CheckSchemas returns an ErrInvalid if a schema of the tool is not a JSON Schema of an object. It knows the form of each keyword's value. A Judge may know
// more: whether patterns compile and references lead somewhere.
func CheckSchemas(t *record.Tool) error {
	if err := checkSchema(t.Schema); err != nil {
		return Invalid("the tool %q: its schema is not a JSON Schema: %v", t.Name, err)
	}
	for _, r := range t.Remotes {
		if err := checkSchema(r.Schema); err != nil {
			return Invalid("the tool %q: %s: its schema is not a JSON Schema: %v", t.Name, r.Name, err)
		}
	}
	return nil
}

func checkSchema(raw []byte) error {
	if raw == nil {
		return nil
	}
	tree, err := jsontree.Parse(raw)
	if err != nil {
		return err
	}
	if tree.Kind != jsontree.Object {
		return errors.New("it is not an object")
	}
	if typ := tree.Get("type"); typ != nil && (typ.Kind != jsontree.String || typ.Text != "object") {
		return errors.New(`it must have "type": "object": providers take no other`)
	}
	dialect := tree.Get("$schema")
	return schemaIn(tree, "", dialect != nil && !strings.Contains(dialect.Text, "2020-12"))
}

// schemaIn checks a schema at a place. older: the schema names another draft than that of 2020-12, in which a few keywords have other forms.
func schemaIn(v *jsontree.Value, at string, older bool) error {
	if v.Kind == jsontree.Bool {
		return nil
	}
	if v.Kind != jsontree.Object {
		return fmt.Errorf("%s must be a schema: an object, true or false", strings.TrimPrefix(at, "."))
	}
	for _, m := range v.Members {
		if err := keyword(m.Name, m.Value, at+"."+m.Name, older); err != nil {
			return err
		}
	}
	return nil
}

// keyword checks the form of a keyword's value, and the schemas in it. Keywords that no draft has may have any value.
func keyword(name string, v *jsontree.Value, at string, older bool) error {
	ok, must := true, ""
	switch name {
	case "items", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not", "unevaluatedItems", "unevaluatedProperties":
		if name == "items" && v.Kind == jsontree.List && older {
			return schemasIn(v.List, at, older)
		}
		return schemaIn(v, at, older)
	case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
		for _, m := range v.Members {
			if err := schemaIn(m.Value, at+"."+m.Name, older); err != nil {
				return err
			}
		}
		ok, must = v.Kind == jsontree.Object, "an object of schemas"
	case "prefixItems", "allOf", "anyOf", "oneOf":
		ok, must = v.Kind == jsontree.List && len(v.List) > 0, "a list of schemas"
		if ok {
			return schemasIn(v.List, at, older)
		}
	case "type":
		ok, must = isType(v) || v.Kind == jsontree.List && len(v.List) > 0 && distinct(v.List, isType), "a type, or a list of types"
	case "required":
		ok, must = v.Kind == jsontree.List && distinct(v.List, isString) || older && v.Kind == jsontree.Bool, "a list of names, each once"
	case "dependentRequired":
		ok, must = v.Kind == jsontree.Object, "an object of lists of names"
		for _, m := range v.Members {
			ok = ok && m.Value.Kind == jsontree.List && distinct(m.Value.List, isString)
		}
	case "enum":
		ok, must = v.Kind == jsontree.List, "a list"
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		ok, must = v.Kind == jsontree.Bool, "true or false"
	case "maximum", "minimum":
		ok, must = v.Kind == jsontree.Number, "a number"
	case "exclusiveMaximum", "exclusiveMinimum":
		ok, must = v.Kind == jsontree.Number || older && v.Kind == jsontree.Bool, "a number"
	case "multipleOf":
		ok, must = v.Kind == jsontree.Number && !strings.HasPrefix(v.Text, "-") && !isZero(v.Text), "a number above 0"
	case "maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains", "maxProperties", "minProperties":
		ok, must = v.Kind == jsontree.Number && isCount(v.Text), "a whole number from 0"
	case "pattern", "title", "description", "format", "$comment", "contentEncoding", "contentMediaType":
		ok, must = isString(v), "a string"
	}
	if !ok {
		return fmt.Errorf("%s must be %s", strings.TrimPrefix(at, "."), must)
	}
	return nil
}

func schemasIn(list []*jsontree.Value, at string, older bool) error {
	for i, v := range list {
		if err := schemaIn(v, fmt.Sprintf("%s[%d]", at, i), older); err != nil {
			return err
		}
	}
	return nil
}

func isString(v *jsontree.Value) bool { return v.Kind == jsontree.String }

func isType(v *jsontree.Value) bool {
	return isString(v) && slices.Contains([]string{"array", "boolean", "integer", "null", "number", "object", "string"}, v.Text)
}

// distinct reports whether is holds for all values, and all are different texts.
func distinct(list []*jsontree.Value, is func(*jsontree.Value) bool) bool {
	seen := map[string]bool{}
	for _, v := range list {
		if !is(v) || seen[v.Text] {
			return false
		}
		seen[v.Text] = true
	}
	return true
}

// isZero reports whether the spelling of a number means zero.
func isZero(number string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return !strings.ContainsAny(digits, "123456789")
}

// isCount reports whether the spelling of a number means a whole number from 0. An exponent of more than two digits is no size of anything.
func isCount(number string) bool {
	if isZero(number) {
		return true
	}
	if _, exp, _ := strings.Cut(strings.ToLower(number), "e"); len(strings.TrimLeft(exp, "+-0")) > 2 {
		return false
	}
	r, ok := new(big.Rat).SetString(number)
	return ok && r.Sign() > 0 && r.IsInt()
}
