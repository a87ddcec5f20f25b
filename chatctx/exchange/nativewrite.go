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
		return n.context(ctx, x.Context)
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
		if err := n.context(ctx, c); err != nil {
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

// step is a message after the node parent.
type step struct {
	parent  int
	message chatctx.ID
}

// nativeWriter writes the store's own format.
type nativeWriter struct {
	*Writing
	sent  map[pool.Hash]bool                 // artifacts that were written
	calls map[chatctx.ID][]record.NativeCall // of the current context, by message
	buf   []byte
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

// line writes a line of a kind.
func (n *nativeWriter) line(kind string, v any) error { return n.raw(map[string]any{kind: v}) }

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
	if _, err = n.Out.Write(n.buf); err != nil {
		return err
	}
	for _, c := range n.calls[m.ID] {
		if err := n.line("call", c); err != nil {
			return err
		}
	}
	return nil
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
			if err := n.line("artifact", nativeArtifact{h.String(), mediaType, data}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *nativeWriter) context(ctx context.Context, c *chatctx.ChatContext) error {
	v, err := c.NativeView(ctx)
	if err != nil {
		return err
	}
	line := v.Context
	line.Settings = settings.Said(line.Settings)
	err = n.line("context", line)
	if err != nil {
		return err
	}
	n.calls = map[chatctx.ID][]record.NativeCall{}
	for _, call := range v.Calls {
		n.calls[call.Message] = append(n.calls[call.Message], call)
	}
	h := &histories{index: map[step]int{}, seen: map[chatctx.ID]bool{}}
	for _, snap := range v.Branches {
		if err := n.branch(ctx, h, snap); err != nil {
			return err
		}
	}
	if err := n.loose(ctx, c, v, h); err != nil {
		return err
	}
	if err := n.named(v, h); err != nil {
		return err
	}
	return n.line("end", nativeEnd{v.Context.ID, len(h.seen), len(v.Branches)})
}

// histories are the branches of a context that were written, as paths with common beginnings.
type histories struct {
	index  map[step]int // the index of a message after a node of the tree
	owners []string     // for each node, the first branch with it
	seen   map[chatctx.ID]bool
}

// begin follows the path of a history as far as it is known. It returns the last node, the number of shared messages, and a branch with them.
func (h *histories) begin(ids []chatctx.ID) (at, shared int, like string) {
	at = -1
	for _, id := range ids {
		next, known := h.index[step{at, id}]
		if !known {
			break
		}
		at, shared, like = next, shared+1, h.owners[next]
	}
	return at, shared, like
}

// grow adds the rest of a path.
func (h *histories) grow(at int, ids []chatctx.ID, owner string) {
	for _, id := range ids {
		h.index[step{at, id}] = len(h.owners)
		at = len(h.owners)
		h.owners = append(h.owners, owner)
	}
}

func (n *nativeWriter) branch(ctx context.Context, h *histories, snap *chatctx.Snapshot) error {
	ids, err := snap.IDs(ctx)
	if err != nil {
		return err
	}
	b := snap.Info
	at, shared, like := h.begin(ids)
	h.grow(at, ids[shared:], b.Name)
	line := record.NativeBranch{ID: b.ID, Name: b.Name, System: b.System, Prompt: b.Prompt, Settings: settings.Said(b.Settings), Sessions: b.Sessions,
		AppData: b.AppData, From: b.From, At: b.At, Created: b.Created, Tokens: b.Tokens, NativeLike: record.NativeLike{Like: like, Shared: shared}}
	if err := n.line("branch", line); err != nil {
		return err
	}
	return n.rest(ctx, h, snap, ids, shared)
}

// rest writes the history from index at on: new messages, and the ids of known ones.
func (n *nativeWriter) rest(ctx context.Context, h *histories, snap *chatctx.Snapshot, ids []chatctx.ID, at int) error {
	for at < len(ids) {
		end := at + 1
		again := h.seen[ids[at]]
		for end < len(ids) && h.seen[ids[end]] == again {
			end++
		}
		if again {
			if err := n.line("again", ids[at:end]); err != nil {
				return err
			}
			at = end
			continue
		}
		from := at
		for e, err := range snap.Entries(ctx, at+1, end) {
			if err != nil {
				return err
			}
			if h.seen[e.ID] { // a second time in this part
				break
			}
			h.seen[e.ID] = true
			if err := n.message("message", e.Message); err != nil {
				return err
			}
			at++
		}
		if at == from {
			return nil // they were removed meanwhile
		}
	}
	return nil
}

// loose writes the messages that are referred to but on no branch.
func (n *nativeWriter) loose(ctx context.Context, c *chatctx.ChatContext, v *chatctx.NativeView, h *histories) error {
	var wanted []chatctx.ID
	for _, snap := range v.Branches {
		for _, s := range snap.Info.Sessions {
			wanted = append(wanted, s.Summary)
			for _, d := range s.Digests {
				wanted = append(wanted, d.Message)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Tags)) {
		wanted = append(wanted, v.Tags[name])
	}
	wanted = append(wanted, sortedIDs(v.Marks)...)
	for _, id := range wanted {
		if h.seen[id] || id == (chatctx.ID{}) {
			continue
		}
		m, err := c.Message(ctx, id)
		if errors.Is(err, chatctx.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		h.seen[id] = true
		if err := n.message("loose", m); err != nil {
			return err
		}
	}
	return nil
}

// named writes the tags and marks of messages that were written.
func (n *nativeWriter) named(v *chatctx.NativeView, h *histories) error {
	for _, name := range slices.Sorted(maps.Keys(v.Tags)) {
		if id := v.Tags[name]; h.seen[id] {
			if err := n.line("tag", nativeTag{name, id}); err != nil {
				return err
			}
		}
	}
	for _, id := range sortedIDs(v.Marks) {
		if h.seen[id] {
			if err := n.line("mark", nativeMark{v.Marks[id], id}); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedIDs[V any](m map[chatctx.ID]V) []chatctx.ID {
	return slices.SortedFunc(maps.Keys(m), func(a, b chatctx.ID) int { return bytes.Compare(a[:], b[:]) })
}
