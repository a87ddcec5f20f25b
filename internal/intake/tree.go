package intake

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// Tree makes an Incoming of the stream of a conversation: its histories become paths of one tree.
type Tree struct {
	In    *record.Incoming
	paths [][]int // the nodes of each branch
	index map[nativeStep]int
	known map[pool.ID]*pool.Message // all messages of histories so far
}

// NewTree returns a Tree that adds to in.
func NewTree(in *record.Incoming) *Tree {
	return &Tree{In: in, index: map[nativeStep]int{}, known: map[pool.ID]*pool.Message{}}
}

// nativeStep is a message after the node parent.
type nativeStep struct {
	parent  int
	message pool.ID
}

// Put takes a record of the stream. An Incoming has no calls, tags or marks.
func (n *Tree) Put(r record.Streamed) error {
	switch r := r.(type) {
	case *record.NativeBranch:
		n.begin(*r)
	case *record.NativeMessage:
		if r.Loose {
			n.In.Loose = append(n.In.Loose, r.Message)
			return nil
		}
		return n.add([]*pool.Message{r.Message})
	case record.NativeAgain:
		return n.again(r)
	}
	return nil
}

func (n *Tree) begin(b NativeBranch) {
	var path []int
	for at, other := range n.In.Branches {
		if b.Shared > 0 && other.Name == b.Like && b.Shared <= len(n.paths[at]) {
			path = slices.Clone(n.paths[at][:b.Shared])
		}
	}
	n.paths = append(n.paths, path)
	n.In.Branches = append(n.In.Branches, record.IncomingBranch{ID: b.ID, Name: b.Name, System: b.System, Prompt: b.Prompt, Settings: b.Settings,
		AppData: b.AppData, Sessions: b.Sessions, From: b.From, At: b.At, Tokens: b.Tokens})
	n.leaf()
}

func (n *Tree) leaf() int {
	last := len(n.paths) - 1
	leaf := 0
	if p := n.paths[last]; len(p) > 0 {
		leaf = p[len(p)-1] + 1
	}
	n.In.Branches[last].Leaf = leaf
	return leaf
}

func (n *Tree) add(msgs []*pool.Message) error {
	for _, m := range msgs {
		n.known[m.ID] = m
		if err := n.again([]pool.ID{m.ID}); err != nil {
			return err
		}
	}
	return nil
}

func (n *Tree) again(ids []pool.ID) error {
	for _, id := range ids {
		m := n.known[id]
		if m == nil || len(n.paths) == 0 {
			return base.Invalidf("message %s is named before it comes", id)
		}
		n.step(m)
	}
	return nil
}

func (n *Tree) step(m *pool.Message) {
	at := nativeStep{n.leaf(), m.ID}
	node, ok := n.index[at]
	if !ok {
		node = len(n.In.Nodes)
		n.index[at] = node
		n.In.Nodes = append(n.In.Nodes, record.Node{ID: m.ID.String(), Parent: at.parent, Message: m})
	}
	last := len(n.paths) - 1
	n.paths[last] = append(n.paths[last], node)
	n.leaf()
}
