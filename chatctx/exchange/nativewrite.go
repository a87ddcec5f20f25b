package exchange

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// writeNative writes one context, or all of them in the order of their last change, oldest first.
func writeNative(ctx context.Context, x *Writing) error {
	n := &nativeWriter{Writing: x, sent: map[pool.Hash]bool{}}
	header := nativeHeader{Version: nativeVersion}
	if x.Context != nil {
		header.Contexts = 1
		if err := n.raw(header); err != nil {
			return err
		}
		return x.Context.Stream(ctx, n.put)
	}
	chosen := x.Options.Contexts
	if len(chosen) == 0 {
		set, err := x.Store.Settings(ctx)
		if err != nil {
			return err
		}
		if header.Settings = settings.Said(set); len(set) == 0 {
			header.Settings = nil
		}
	}
	var all []*record.ContextInfo
	for info, err := range x.Store.Contexts(ctx, record.ListOptions{}) {
		if err != nil {
			return err
		}
		if len(chosen) == 0 || slices.Contains(chosen, info.ID) {
			all = append(all, info)
		}
	}
	header.Contexts = len(all)
	if err := n.raw(header); err != nil {
		return err
	}
	for _, id := range parentsFirst(all) {
		c, err := x.Store.Context(ctx, id.String())
		if errors.Is(err, chatctx.ErrNotFound) {
			continue // it was purged meanwhile
		}
		if err != nil {
			return err
		}
		if err := c.Stream(ctx, n.put); err != nil {
			return err
		}
	}
	return nil
}

// parentsFirst returns contexts in the order of their last change, oldest first, but each after its parent, since an import accepts a parent only from the same
// file.
func parentsFirst(newestFirst []*record.ContextInfo) []chatctx.ID {
	byID := map[chatctx.ID]*record.ContextInfo{}
	for _, info := range newestFirst {
		byID[info.ID] = info
	}
	var out []chatctx.ID
	var put func(info *record.ContextInfo)
	put = func(info *record.ContextInfo) {
		if info == nil || byID[info.ID] == nil {
			return
		}
		delete(byID, info.ID)
		put(byID[info.Parent])
		out = append(out, info.ID)
	}
	for _, info := range slices.Backward(newestFirst) {
		put(info)
	}
	return out
}

// nativeWriter writes the store's own format.
type nativeWriter struct {
	*Writing
	sent map[pool.Hash]bool // artifacts that were written
	buf  []byte
}

// raw writes a line.
func (n *nativeWriter) raw(v any) error {
	b, err := nativeLines.Append(nil, v)
	if err != nil {
		return err
	}
	_, err = n.Out.Write(append(b, '\n'))
	return err
}

// put writes the line of a record.
func (n *nativeWriter) put(r record.Streamed) error {
	switch r := r.(type) {
	case *record.Native:
		r.Settings = settings.Said(r.Settings)
	case *record.NativeBranch:
		r.Settings = settings.Said(r.Settings)
	case *record.NativeMessage:
		return n.message(r.Kind(), r.Message)
	}
	return n.raw(map[string]any{r.Kind(): r})
}

func (n *nativeWriter) message(kind string, m *chatctx.Message) error {
	if err := n.artifacts(m); err != nil {
		return err
	}
	n.buf = append(append(append(n.buf[:0], `{"`...), kind...), `":`...)
	var err error
	if n.buf, err = m.AppendJSON(n.buf); err != nil {
		return err
	}
	n.buf = append(n.buf, "}\n"...)
	_, err = n.Out.Write(n.buf)
	return err
}

// artifacts writes the bytes to which a message refers, each only once. Long results are in the message itself.
func (n *nativeWriter) artifacts(m *chatctx.Message) error {
	lists := [][]pool.Part{m.Content}
	if m.Result != nil {
		lists = append(lists, m.Result.Parts)
	}
	for _, parts := range lists {
		for i := range parts {
			h := parts[i].SHA256
			if h == (pool.Hash{}) || n.sent[h] || parts[i].Type == pool.TextPart {
				continue
			}
			n.sent[h] = true
			data, mediaType, err := n.Artifact(context.Background(), h)
			if err != nil || data == nil {
				return err
			}
			if err := n.put(&record.NativeArtifact{SHA256: h.String(), MediaType: mediaType, Data: data}); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedIDs[V any](m map[chatctx.ID]V) []chatctx.ID {
	return slices.SortedFunc(maps.Keys(m), func(a, b chatctx.ID) int { return bytes.Compare(a[:], b[:]) })
}
