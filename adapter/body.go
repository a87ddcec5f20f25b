package adapter

import (
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/out"
)

// List is a part of a body that grows with the branch: tools, system texts, messages.
type List struct {
	Name    string
	Len     int
	Single  bool                            // one value instead of a list
	Append  func(body []byte, i int) []byte // appends the value at i as JSON
	Message func(i int) chatctx.ID          // nil if no value is from a message
}

// Marshal returns a body: its fields, which are an object, then its lists that are not empty. size is roughly the number of its bytes.
func Marshal(size int, fields json.RawMessage, lists ...List) ([]byte, error) {
	members, err := jsontree.ParseObject(fields)
	if err != nil {
		return nil, err
	}
	j := make(out.JSON, 0, size)
	j.Open('{')
	for _, m := range members {
		j.Key(m.Name)
		j.Raw(m.Value)
	}
	for _, l := range lists {
		if l.Len == 0 {
			continue
		}
		j.Key(l.Name)
		if !l.Single {
			j.Open('[')
		}
		for i := range l.Len {
			if i > 0 {
				j = append(j, ',')
			}
			j = l.Append(j, i)
		}
		if !l.Single {
			j.Close(']')
		}
	}
	j.Close('}')
	return j, nil
}

// Pieces returns one piece for each value of the lists.
func Pieces(lists ...List) []Piece {
	var pieces []Piece
	for _, l := range lists {
		for i := range l.Len {
			p := Piece{Bytes: l.Append(nil, i)}
			if l.Message != nil {
				p.Message = l.Message(i)
			}
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// Plain returns a result as one text, for providers without a mark for errors. Its media were moved out before.
func (r *Result) Plain() string {
	text := JoinTexts(r.Items, "\n")
	if r.Error {
		return ErrorIs + text
	}
	return text
}

// JoinTexts returns the texts of items, joined.
func JoinTexts(items []Item, between string) string {
	n, length, last := 0, 0, ""
	for i := range items {
		if t := items[i].Text; t != "" {
			n, length, last = n+1, length+len(t)+len(between), t
		}
	}
	if n <= 1 {
		return last
	}
	b := make([]byte, 0, length)
	for i := range items {
		if t := items[i].Text; t != "" {
			if len(b) > 0 {
				b = append(b, between...)
			}
			b = append(b, t...)
		}
	}
	return string(b)
}
