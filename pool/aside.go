package pool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// What a message keeps as it came may be as large as a file: the whole record of another program, a part of an unknown type, a provider's own block, the
// members that its reader did not know. Over inlineLimit such a value is an artifact, as the texts of results are, and the message's record names it by its
// place. Who reads the message gets it back.

// Aside names the artifact that has a value of a message.
type Aside struct {
	_      struct{} `cbor:",toarray"`
	SHA256 Hash
	Size   int64
}

// kept calls fn for each value of m that is kept as it came. The cursor says where it is in the JSON of the message. fn may change the value.
func (c *cursor) kept(m *Message, fn func(raw *[]byte)) {
	at := func(field string, raw *json.RawMessage) {
		back := c.enter(field)
		fn((*[]byte)(raw))
		c.leave(back)
	}
	parts := func(field string, list []Part) {
		start := c.enter(field)
		for i := range list {
			back := c.enterIndex(i)
			at("native", &list[i].Raw)
			c.leave(back)
		}
		c.leave(start)
	}
	parts("content", m.Content)
	start := c.enter("tool_calls")
	for i := range m.Calls {
		back := c.enterIndex(i)
		at("native", &m.Calls[i].Raw)
		c.leave(back)
	}
	c.leave(start)
	if m.Result != nil {
		start := c.enter("tool_result")
		parts("parts", m.Result.Parts)
		c.leave(start)
	}
	start = c.enter("metadata/provider_data")
	for name, raw := range m.Meta.ProviderData {
		back := c.enterName(name)
		was := len(raw)
		if fn((*[]byte)(&raw)); len(raw) != was {
			m.Meta.ProviderData[name] = raw
		}
		c.leave(back)
	}
	c.leave(start)
	if m.Source != nil {
		start := c.enter("source/raw")
		fn(&m.Source.Raw)
		c.leave(start)
	}
}

// aside puts the large values of stored, which shares its lists with the message that it was made of, into artifacts.
func (k *keeper) aside(stored *Message) {
	stored.Aside = nil
	large := false
	k.kept(stored, func(raw *[]byte) { large = large || len(*raw) > inlineLimit })
	if !large {
		return
	}
	stored.Content, stored.Calls, stored.Meta.ProviderData = slices.Clone(stored.Content), slices.Clone(stored.Calls), maps.Clone(stored.Meta.ProviderData)
	if stored.Result != nil {
		stored.Result.Parts = slices.Clone(stored.Result.Parts)
	}
	if stored.Source != nil {
		source := *stored.Source
		stored.Source = &source
	}
	stored.Aside = map[string]Aside{}
	k.kept(stored, func(raw *[]byte) {
		if len(*raw) <= inlineLimit {
			return
		}
		var a Aside
		a.SHA256, a.Size = k.put(*raw, mediaTypeOf(*raw))
		stored.Aside[string(k.path)], *raw = a, nil
	})
}

func mediaTypeOf(raw []byte) string {
	if json.Valid(raw) {
		return "application/json"
	}
	return "" // from the bytes
}

// putBackAside restores the values that aside stored as artifacts. The record still names them.
func putBackAside(tx kv.Tx, m *Message) error {
	if len(m.Aside) == 0 {
		return nil
	}
	var err error
	left := len(m.Aside)
	var c cursor
	c.kept(m, func(raw *[]byte) {
		a, is := m.Aside[string(c.path)]
		if !is || err != nil {
			return
		}
		left--
		*raw, _, err = Artifact(tx, a.SHA256)
	})
	if err == nil && left > 0 {
		err = fmt.Errorf("%w: it names an artifact for a place that it does not have", kv.ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("message %s: %w", m.ID, err)
	}
	return nil
}

// Lose gives up a value of a stored message whose artifact is lost. The text, as a JSON string, takes its place.
func (m *Message) Lose(h Hash, text string) {
	var c cursor
	c.kept(m, func(raw *[]byte) {
		if a, is := m.Aside[string(c.path)]; is && a.SHA256 == h {
			*raw = jsontree.AppendString(nil, text)
			delete(m.Aside, string(c.path))
		}
	})
}
