package adapter

import (
	"encoding/json"
	"strconv"

	"github.com/chatctx/chatctx/adapter/wire"
)

// Fields are a body's top-level members, except those from the branch, in the order in which they are sent.
type Fields struct{ wire.Object }

// Text sets a member to a text.
func (f *Fields) Text(name, text string) { f.Set(name, wire.String(text)) }

// Int sets a member to a whole number.
func (f *Fields) Int(name string, n int64) { f.Set(name, strconv.AppendInt(nil, n, 10)) }

// Float sets a member to a number.
func (f *Fields) Float(name string, v float64) { f.Set(name, strconv.AppendFloat(nil, v, 'g', -1, 64)) }

// Bool sets a member to true or false.
func (f *Fields) Bool(name string, v bool) { f.Set(name, strconv.AppendBool(nil, v)) }

// Texts sets a member to a list of texts.
func (f *Fields) Texts(name string, list []string) {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, wire.String(s)...)
	}
	f.Set(name, append(b, ']'))
}

// Put sets a member to an object.
func (f *Fields) Put(name string, o Fields) { f.Set(name, o.Bytes()) }

// Value returns an object with one member, whose value is JSON.
func Value(name string, raw json.RawMessage) Fields {
	return Fields{wire.Object{{Name: name, Value: raw}}}
}

// Text returns an object with one text member, for tags such as {"type":"auto"}.
func Text(name, text string) Fields { return Value(name, wire.String(text)) }
