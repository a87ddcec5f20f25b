package window

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// CachePlan returns an Enhancer that marks the cache breakpoints, for adapters whose provider has them: after the session's summary, at the prune boundary, and
// at the end. The one after the system prompt needs no mark. It runs last.
func CachePlan(o Options) enhancer.Enhancer {
	return enhancer.Func("cache", func(_ context.Context, d *chatctx.Draft) error {
		if d.Summary != nil {
			d.Summary.Cache = o.Cache
		}
		boundary := -1
		for i, m := range d.Messages {
			m.Cache = false
			if m.State == enhancer.Pruned && m.Step == "prune" {
				boundary = i
			}
		}
		if !o.Cache || len(d.Messages) == 0 {
			return nil
		}
		if boundary >= 0 {
			d.Messages[boundary].Cache = true
		}
		d.Messages[len(d.Messages)-1].Cache = true
		return nil
	})
}

// Link is a piece of a request in the order in which a provider reads it: the tools, the system prompt, the user prompt, the summary, or a message.
type Link struct {
	Message pool.ID
	Hash    [16]byte
	Bytes   int
	Tokens  int
	Step    string // the step that last changed the message; "" for none
}

// Chain returns a draft as links. Two requests share a provider's cache as far as their chains are equal.
func Chain(c *tokens.Counter, d *chatctx.Draft) []Link {
	sizes := c.Sizes(d)
	var out []Link
	add := func(id pool.ID, step string, count int, content []byte) {
		if len(content) > 0 {
			h := sha256.Sum256(content)
			out = append(out, Link{id, [16]byte(h[:16]), len(content), count, step})
		}
	}
	tools, _ := json.Marshal(d.Tools) // definitions always encode, or else count for nothing
	if len(d.Tools) == 0 {
		tools = nil
	}
	add(pool.ID{}, "tools", sizes.Tools, tools)
	add(pool.ID{}, "system", sizes.System, []byte(d.System))
	add(pool.ID{}, "prompt", sizes.Prompt, []byte(d.Prompt))
	if d.Summary != nil {
		add(d.Summary.ID, "summary", sizes.Summary, content(d.Summary.Message))
	}
	for _, m := range d.Messages {
		if !m.Unsent {
			add(m.ID, m.Step, c.Of(d, m), content(m.Message))
		}
	}
	return out
}

// content returns the bytes of a message that go to a provider.
func content(m *pool.Message) []byte {
	var b bytes.Buffer
	part := func(s string) {
		b.WriteString(s)
		b.WriteByte(0)
	}
	parts := func(list []pool.Part) {
		for i := range list {
			p := &list[i]
			part(p.Type + p.Text + p.URL + p.Signature + p.Redacted + string(p.Raw))
			b.Write(p.SHA256[:])
			b.Write(p.Data)
		}
	}
	part(string(m.Role))
	parts(m.Content)
	for i := range m.Calls {
		part(m.Calls[i].ID + m.Calls[i].Tool + string(m.Calls[i].Arguments))
	}
	if m.Result != nil {
		part(m.Result.RequestID + m.Result.Text + string(m.Result.JSON))
		parts(m.Result.Parts)
	}
	return b.Bytes()
}

// Prefix is the part that a request shares with the one before it.
type Prefix struct {
	Bytes, Tokens int     // shared
	Total         int     // tokens of the request
	BrokenBy      string  // the step that changed the first link that differs; "" if the older request is the beginning of the newer one
	Message       pool.ID // the message of that link
	Lost          int     // tokens of the older request that came after the shared part
	Price         *cost.Price
	Cost          cost.Money // of sending those again instead of reading them from the cache, at Price; 0 if that is nil
}

// Share compares a request with the one before it. price may be nil.
func Share(before, now []Link, price *cost.Price) Prefix {
	p := Prefix{Price: price}
	n := 0
	for n < len(before) && n < len(now) && before[n].Hash == now[n].Hash && before[n].Message == now[n].Message {
		p.Bytes += now[n].Bytes
		p.Tokens += now[n].Tokens
		n++
	}
	for _, l := range now {
		p.Total += l.Tokens
	}
	for _, l := range before[n:] {
		p.Lost += l.Tokens
	}
	if n == len(before) {
		return p
	}
	p.BrokenBy, p.Message = "edit", before[n].Message
	if n < len(now) && now[n].Step != "" {
		p.BrokenBy = now[n].Step
	}
	if slices.Contains([]string{"tools", "system", "prompt", "summary"}, before[n].Step) {
		p.BrokenBy = before[n].Step
	}
	if price != nil {
		again := int64(min(p.Lost, p.Total-p.Tokens))
		p.Cost = price.Of(cost.Usage{Input: again}) - price.Of(cost.Usage{CacheRead: again})
	}
	return p
}
