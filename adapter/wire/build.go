package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Arguments returns a call's arguments, joined from pieces of Text: nil if there are none, and a JSON string of the words if they are not JSON.
func Arguments(raw []byte) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	text := Whole(raw)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return jsontree.Quote(text)
}

// callID returns an id for a call without one: the same for the same index and seed (a text that is special to the reply).
func callID(seed string, index int) string {
	sum := sha256.Sum256([]byte(seed + "\x00" + strconv.Itoa(index)))
	return "call_" + hex.EncodeToString(sum[:8])
}

// UniqueIDs gives a new id to calls without one, and to calls with the id of an earlier call of the message.
func UniqueIDs(m *pool.Message, seed string) {
	seen := map[string]bool{}
	for i := range m.Calls {
		id := &m.Calls[i].ID
		if *id == "" || seen[*id] {
			*id = callID(seed, i)
		}
		seen[*id] = true
	}
	i := 0
	for p := range m.Content {
		if m.Content[p].Type == pool.CallPart && i < len(m.Calls) {
			m.Content[p].CallID = m.Calls[i].ID
			i++
		}
	}
}

// Parts are the parts of a message whose words arrive in pieces. The zero Parts are empty.
type Parts struct {
	list []pool.Part
	text [][]byte
}

// Text appends words: to the last part if that began with Text and has the same type, else to a new one.
func (p *Parts) Text(typ string, text Text) {
	n := len(p.list) - 1
	if n < 0 || p.list[n].Type != typ || p.text[n] == nil {
		p.list, p.text = append(p.list, pool.Part{Type: typ}), append(p.text, []byte{})
		n++
	}
	p.text[n] = append(p.text[n], text...)
}

// Add appends a complete part.
func (p *Parts) Add(part pool.Part) { p.list, p.text = append(p.list, part), append(p.text, nil) }

// List returns a copy of the parts so far.
func (p *Parts) List() []pool.Part {
	if len(p.list) == 0 {
		return nil
	}
	out := make([]pool.Part, len(p.list))
	for i, part := range p.list {
		if p.text[i] != nil {
			part.Text = Whole(p.text[i])
		}
		out[i] = part
	}
	return out
}

// Sign records the provider of a reply: in its metadata, and in its thinking.
func Sign(m *pool.Message, provider string) {
	m.Meta.Provider = provider
	for i := range m.Content {
		if p := &m.Content[i]; p.Type == pool.ThinkingPart {
			p.Provider, p.Model = provider, m.Meta.Model
		}
	}
}

// sound returns a message that can be stored, whatever a server sent: it replaces half characters in the message's JSON, leaves out parts, calls and metadata
// that are invalid, and says so in the metadata.
func sound(m *pool.Message) *pool.Message {
	poolstore.MakeWhole(m)
	if m.Validate() == nil {
		return m
	}
	fits := func(change func(*pool.Message)) bool {
		one := &pool.Message{Role: pool.Assistant}
		change(one)
		return one.Validate() == nil
	}
	calls, parts := len(m.Calls), len(m.Content)
	m.Calls = slices.DeleteFunc(m.Calls, func(c pool.Call) bool {
		return !fits(func(one *pool.Message) { one.Calls = []pool.Call{c} })
	})
	m.Content = slices.DeleteFunc(m.Content, func(p pool.Part) bool {
		return !fits(func(one *pool.Message) { one.Content, one.Calls = []pool.Part{p}, m.Calls })
	})
	meta := m.Meta
	if !fits(func(one *pool.Message) { one.Meta = meta }) {
		m.Meta = pool.Metadata{Provider: meta.Provider, FinishReason: strings.ToValidUTF8(meta.FinishReason, "�")}
	}
	m.Meta.Error = fmt.Sprintf("%d calls and %d parts of the reply were left out: they make no sense", calls-len(m.Calls), parts-len(m.Content))
	return m
}
