package chatctx

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Remote is a tool that an MCP server offers, as it said when it was added.
type Remote struct {
	Name        string          `cbor:"1,keyasint"`
	Description string          `cbor:"2,keyasint,omitempty"`
	Schema      json.RawMessage `cbor:"3,keyasint,omitempty"`
}

// remoteMark stands between the name of an MCP server and that of a tool of it, in the name that a model sees.
const remoteMark = "__"

// offers are the tools that a record stands for: itself, or those of the MCP server that it names.
func (t Tool) offers() []Tool {
	if !t.MCP {
		return []Tool{t}
	}
	var out []Tool
	for _, r := range t.Remotes {
		one := t
		one.Name, one.Description, one.Schema, one.Remotes, one.Remote = t.Name+remoteMark+r.Name, r.Description, r.Schema, nil, r.Name
		out = append(out, one)
	}
	return out
}

// Check says why a tool cannot be kept.
func (t *Tool) Check() error {
	switch {
	case t.Name == "" || len(t.Name) > 128 || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return invalid("the tool's name %q: 1 to 128 bytes without spaces", t.Name)
	case t.Schema != nil && (!json.Valid(t.Schema) || t.Schema[0] != '{'):
		return invalid("the schema of tool %q is no JSON object", t.Name)
	case t.Timeout < 0:
		return invalid("the time limit of tool %q is negative", t.Name)
	case t.Prune != "" && t.Prune != "prune" && t.Prune != "summarise" && t.Prune != "keep":
		return invalid("prune of tool %q is %q: there are prune, summarise, keep", t.Name, t.Prune)
	case t.MCP && len(t.Command) == 0 && t.URL == "":
		return invalid("the MCP server %q needs a command or a URL", t.Name)
	}
	return nil
}

// PutTool adds a tool to the context, or replaces the one of that name.
func (b *Batch) PutTool(tool Tool) {
	b.prepare = append(b.prepare, func() error { return tool.ready(b.store) })
	b.step("tools add", func(t *txn) error {
		raw, err := encodeRecord(tool)
		if err != nil {
			return err
		}
		t.onContext = true
		return t.putRaw(toolBucket, under(t.id, []byte(tool.Name)...), raw)
	})
}

// RemoveTool takes a tool away from the context. ErrNotFound where the context has none of that name.
func (b *Batch) RemoveTool(name string) {
	b.step("tools rm", func(t *txn) error {
		key := under(t.id, []byte(name)...)
		old, err := t.tx.Get(toolBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return NotFound("tool of this context", name)
		}
		t.onContext = true
		return t.putRaw(toolBucket, key, nil)
	})
}

// PutTool adds a tool for all contexts.
func (s *Store) PutTool(ctx context.Context, tool Tool) (*Committed, error) {
	if err := tool.ready(s); err != nil {
		return nil, err
	}
	return s.storeOperation(ctx, "tools add", func(t *storeTxn) error {
		raw, err := encodeRecord(tool)
		if err != nil {
			return err
		}
		return t.putRaw(toolBucket, under(ID{}, []byte(tool.Name)...), raw)
	})
}

// RemoveTool takes a tool for all contexts away.
func (s *Store) RemoveTool(ctx context.Context, name string) (*Committed, error) {
	return s.storeOperation(ctx, "tools rm", func(t *storeTxn) error {
		key := under(ID{}, []byte(name)...)
		old, err := t.tx.Get(toolBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return NotFound("tool for all contexts", name)
		}
		return t.putRaw(toolBucket, key, nil)
	})
}

// KeptTool is a tool as it is kept, and where.
type KeptTool struct {
	Tool
	Store bool // for all contexts
}

// Tools are the tools of a context and of the store, by name; a context's own wins. The zero id gives the store's alone. MCP servers are given as such.
func (s *Store) Tools(ctx context.Context, context ID) ([]KeptTool, error) {
	var out []KeptTool
	err := s.db.View(ctx, func(tx kv.Tx) error {
		kept, err := keptTools(tx, context)
		out = kept
		return err
	})
	return out, err
}

// Offered are the tools that a draft of the context has: those of MCP servers one by one.
func (s *Store) Offered(ctx context.Context, context ID) ([]Tool, error) {
	var out []Tool
	err := s.db.View(ctx, func(tx kv.Tx) (err error) {
		out, err = toolsFor(tx, context)
		return err
	})
	return out, err
}

// copyTools puts the tools of one context with another.
func copyTools(tx kv.RwTx, from, to ID) error {
	type pair struct{ name, value []byte }
	var all []pair
	err := tx.Scan(toolBucket, kv.Prefix(from[:]), func(key, value []byte) error {
		all = append(all, pair{append([]byte(nil), key[16:]...), append([]byte(nil), value...)})
		return nil
	})
	for _, r := range all {
		if err == nil {
			err = tx.Put(toolBucket, under(to, r.name...), r.value)
		}
	}
	return err
}
