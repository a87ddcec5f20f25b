package jsontree

import (
	"encoding/json"
	"strconv"
)

// Text sets a member to a text.
func (o *Members) Text(name, text string) { o.Set(name, Quote(text)) }

// Int sets a member to a whole number.
func (o *Members) Int(name string, n int64) { o.Set(name, strconv.AppendInt(nil, n, 10)) }

// Float sets a member to a number.
func (o *Members) Float(name string, v float64) {
	o.Set(name, strconv.AppendFloat(nil, v, 'g', -1, 64))
}

// Bool sets a member to true or false.
func (o *Members) Bool(name string, v bool) { o.Set(name, strconv.AppendBool(nil, v)) }

// Texts sets a member to a list of texts.
func (o *Members) Texts(name string, list []string) {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, Quote(s)...)
	}
	o.Set(name, append(b, ']'))
}

// Put sets a member to an object.
func (o *Members) Put(name string, value Members) { o.Set(name, value.Bytes()) }

// One returns an object with one member, whose value is JSON.
func One(name string, raw json.RawMessage) Members {
	return Members{{Name: name, Value: raw}}
}

// OneText returns an object with one text member, for tags such as {"type":"auto"}.
func OneText(name, text string) Members { return One(name, Quote(text)) }
