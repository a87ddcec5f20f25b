package poolstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// kept calls fn for each value of m that is kept as it came. The cursor says where it is in the JSON of the message. fn may change the value.
func kept(c *stored.Cursor, m *pool.Message, fn func(raw *[]byte)) {
	at := func(field string, raw *json.RawMessage) {
		back := c.Enter(field)
		fn((*[]byte)(raw))
		c.Leave(back)
	}
	parts := func(field string, list []pool.Part) {
		start := c.Enter(field)
		for i := range list {
			back := c.EnterIndex(i)
			at("native", &list[i].Raw)
			c.Leave(back)
		}
		c.Leave(start)
	}
	parts("content", m.Content)
	start := c.Enter("tool_calls")
	for i := range m.Calls {
		back := c.EnterIndex(i)
		at("native", &m.Calls[i].Raw)
		c.Leave(back)
	}
	c.Leave(start)
	if m.Result != nil {
		start := c.Enter("tool_result")
		parts("parts", m.Result.Parts)
		c.Leave(start)
	}
	start = c.Enter("metadata/provider_data")
	for name, raw := range m.Meta.ProviderData {
		back := c.EnterName(name)
		was := len(raw)
		if fn((*[]byte)(&raw)); len(raw) != was {
			m.Meta.ProviderData[name] = raw
		}
		c.Leave(back)
	}
	c.Leave(start)
	if m.Source != nil {
		start := c.Enter("source/raw")
		fn(&m.Source.Raw)
		c.Leave(start)
	}
}

// aside puts the large values of rec, which shares its lists with the message that it was made of, into artifacts.
func (k *keeper) aside(rec *pool.Message) {
	rec.Aside = nil
	large := false
	kept(&k.Cursor, rec, func(raw *[]byte) { large = large || len(*raw) > inlineLimit })
	if !large {
		return
	}
	rec.Content, rec.Calls, rec.Meta.ProviderData = slices.Clone(rec.Content), slices.Clone(rec.Calls), maps.Clone(rec.Meta.ProviderData)
	if rec.Result != nil {
		rec.Result.Parts = slices.Clone(rec.Result.Parts)
	}
	if rec.Source != nil {
		source := *rec.Source
		rec.Source = &source
	}
	rec.Aside = map[string]pool.Aside{}
	kept(&k.Cursor, rec, func(raw *[]byte) {
		if len(*raw) <= inlineLimit {
			return
		}
		var a pool.Aside
		a.SHA256, a.Size = k.put(*raw, mediaTypeOf(*raw))
		rec.Aside[string(k.Path)], *raw = a, nil
	})
}

func mediaTypeOf(raw []byte) string {
	if json.Valid(raw) {
		return "application/json"
	}
	return "" // from the bytes
}

// putBackAside restores the values that aside stored as artifacts. The record still names them.
func putBackAside(tx kv.Tx, m *pool.Message) error {
	if len(m.Aside) == 0 {
		return nil
	}
	var err error
	left := len(m.Aside)
	var c stored.Cursor
	kept(&c, m, func(raw *[]byte) {
		a, is := m.Aside[string(c.Path)]
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
func Lose(m *pool.Message, h pool.Hash, text string) {
	var c stored.Cursor
	kept(&c, m, func(raw *[]byte) {
		if a, is := m.Aside[string(c.Path)]; is && a.SHA256 == h {
			*raw = jsontree.AppendString(nil, text)
			delete(m.Aside, string(c.Path))
		}
	})
}
