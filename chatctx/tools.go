package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
)

// PutTool adds a tool to the context, or replaces the one with that name.
func (b *Batch) PutTool(tool record.Tool) {
	b.prepare = append(b.prepare, func() error { return b.store.at().ReadyTool(&tool) })
	b.step("tools add", func(t *journal.Txn, _ *Step) error {
		raw, err := base.EncodeRecord(tool)
		if err != nil {
			return err
		}
		t.OnContext = true
		return t.PutRaw(base.ToolBucket, base.Under(t.ID, []byte(tool.Name)...), raw)
	})
}

// RemoveTool removes a tool from the context. It is an ErrNotFound if the context has none with that name.
func (b *Batch) RemoveTool(name string) {
	b.removeNamed("tools rm", base.ToolBucket, "tool of this conversation", name)
}

// PutTool adds a tool for all contexts.
func (s *Store) PutTool(ctx context.Context, tool record.Tool) (*record.Committed, error) {
	if err := s.at().ReadyTool(&tool); err != nil {
		return nil, err
	}
	return journal.StoreOperation(ctx, s.at(), "tools add", func(t *journal.StoreTxn) error {
		raw, err := base.EncodeRecord(tool)
		if err != nil {
			return err
		}
		return t.PutRaw(base.ToolBucket, base.Under(ID{}, []byte(tool.Name)...), raw)
	})
}

// RemoveTool removes a tool for all contexts.
func (s *Store) RemoveTool(ctx context.Context, name string) (*record.Committed, error) {
	return journal.StoreOperation(ctx, s.at(), "tools rm", func(t *journal.StoreTxn) error {
		key := base.Under(ID{}, []byte(name)...)
		old, err := t.Tx.Get(base.ToolBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return base.NotFound("tool for all conversations", name)
		}
		return t.PutRaw(base.ToolBucket, key, nil)
	})
}

// Tools returns the tools of a context and of the store, by name; a context's own take precedence. The zero id means the store's alone. An MCP server is
// returned as one tool.
func (s *Store) Tools(ctx context.Context, context ID) ([]record.KeptTool, error) {
	var out []record.KeptTool
	err := s.at().DB.View(ctx, func(tx kv.Tx) error {
		kept, err := view.KeptTools(tx, context)
		out = kept
		return err
	})
	return out, err
}
