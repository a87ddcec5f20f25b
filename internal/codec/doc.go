// Package codec reads and writes the JSON of structs, by the tags of their fields: json has the name, and when a member is left out. These say more:
//
//	empty:"null"   the zero value is null
//	after:"NAME"   the member stands behind that one, and not where the field stands
//	only:"lines"   the member is in the lines of an export, and in no answer
//
// A list or a map that is not left out is never null. The codec of an export's lines writes the fields in their order, under the names of its table, and
// leaves out what the stored record leaves out.
package codec

import "reflect"

// Codec is a way to write structs. The zero Codec writes answers as encoding/json does, except for the tags of this package.
type Codec struct {
	// Plain: <, > and & are written as they are.
	Plain bool
	// Lines has the names that lines of an export have for members, by TYPE.NAME, with an option or with " after NAME" where these differ too; "" for a struct
	// whose members stand in its place, "-" for none. nil: it writes answers.
	Lines map[string]string

	fields cache
}

// answers writes answers of the API, text those of the command line.
var (
	answers = &Codec{}
	text    = &Codec{Plain: true}
)

// Fields returns the members of a struct's JSON in answers.
func Fields(t reflect.Type) []Field { return answers.Fields(t) }

// AppendAnswer appends the JSON of an answer of the API.
func AppendAnswer(b []byte, v any) ([]byte, error) { return answers.Append(b, v) }

// AppendText appends the JSON of an answer of the command line, in which <, > and & stand as they are.
func AppendText(b []byte, v any) ([]byte, error) { return text.Append(b, v) }
