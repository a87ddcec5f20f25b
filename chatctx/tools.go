package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
)

// Tool is a tool that a model may call.
type Tool = record.Tool

// Remote is a tool that an MCP server offers, as it said when it was added.
type Remote = record.Remote

// KeptTool is a tool as it is kept, and where.
type KeptTool = record.KeptTool

// PutTool adds a tool to the context, or replaces the one of that name.
func (b *Batch) PutTool(tool Tool) {
	b.prepare = append(b.prepare, func() error { return tool.Ready(b.store.at) })
	b.step("tools add", func(t *journal.Txn, _ *Step) error {
		raw, err := record.EncodeRecord(tool)
		if err != nil {
			return err
		}
		t.OnContext = true
		return t.PutRaw(record.ToolBucket, record.Under(t.ID, []byte(tool.Name)...), raw)
	})
}

// RemoveTool takes a tool away from the context. ErrNotFound where the context has none of that name.
func (b *Batch) RemoveTool(name string) {
	b.step("tools rm", func(t *journal.Txn, _ *Step) error {
		key := record.Under(t.ID, []byte(name)...)
		old, err := t.Tx.Get(record.ToolBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return NotFound("tool of this context", name)
		}
		t.OnContext = true
		return t.PutRaw(record.ToolBucket, key, nil)
	})
}

// PutTool adds a tool for all contexts.
func (s *Store) PutTool(ctx context.Context, tool Tool) (*Committed, error) {
	if err := tool.Ready(s.at); err != nil {
		return nil, err
	}
	return journal.StoreOperation(ctx, s.at, "tools add", func(t *journal.StoreTxn) error {
		raw, err := record.EncodeRecord(tool)
		if err != nil {
			return err
		}
		return t.PutRaw(record.ToolBucket, record.Under(ID{}, []byte(tool.Name)...), raw)
	})
}

// RemoveTool takes a tool for all contexts away.
func (s *Store) RemoveTool(ctx context.Context, name string) (*Committed, error) {
	return journal.StoreOperation(ctx, s.at, "tools rm", func(t *journal.StoreTxn) error {
		key := record.Under(ID{}, []byte(name)...)
		old, err := t.Tx.Get(record.ToolBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return NotFound("tool for all contexts", name)
		}
		return t.PutRaw(record.ToolBucket, key, nil)
	})
}

// Tools are the tools of a context and of the store, by name; a context's own wins. The zero id gives the store's alone. MCP servers are given as such.
func (s *Store) Tools(ctx context.Context, context ID) ([]KeptTool, error) {
	var out []KeptTool
	err := s.at.DB.View(ctx, func(tx kv.Tx) error {
		kept, err := view.KeptTools(tx, context)
		out = kept
		return err
	})
	return out, err
}

// Offered are the tools that a draft of the context has: those of MCP servers one by one.
func (s *Store) Offered(ctx context.Context, context ID) ([]Tool, error) {
	var out []Tool
	err := s.at.DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = view.ToolsFor(tx, context)
		return err
	})
	return out, err
}

// copyTools puts the tools of one context with another.
func copyTools(tx kv.RwTx, from, to ID) error {
	type pair struct{ name, value []byte }
	var all []pair
	err := tx.Scan(record.ToolBucket, kv.Prefix(from[:]), func(key, value []byte) error {
		all = append(all, pair{append([]byte(nil), key[16:]...), append([]byte(nil), value...)})
		return nil
	})
	for _, r := range all {
		if err == nil {
			err = tx.Put(record.ToolBucket, record.Under(to, r.name...), r.value)
		}
	}
	return err
}
