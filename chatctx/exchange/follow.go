package exchange

import (
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Still is how long a file must be unchanged before everything in it counts as finished.
const Still = 10 * time.Second

// finishedOnly removes the ends of a conversation that may still be written: answers with nothing after them that no program marked as finished. It reports
// whether there were any.
func finishedOnly(in *record.Incoming) bool {
	hasMore := make([]bool, len(in.Nodes))
	keep := make([]bool, len(in.Nodes))
	for i := len(in.Nodes) - 1; i >= 0; i-- {
		n := in.Nodes[i]
		m := n.Message
		keep[i] = hasMore[i] || m.Role != pool.Assistant || m.Meta.FinishReason != "" && !m.Unfinished
		if keep[i] && n.Parent > 0 {
			hasMore[n.Parent-1] = true
		}
	}
	if !slices.Contains(keep, false) {
		return false
	}
	number := make([]int, len(in.Nodes)+1) // the number of a node among those that stay, or that of the one above it
	var nodes []record.Node
	for i, n := range in.Nodes {
		n.Parent = number[n.Parent]
		if number[i+1] = n.Parent; keep[i] {
			nodes = append(nodes, n)
			number[i+1] = len(nodes)
		}
	}
	in.Nodes = nodes
	for i := range in.Branches {
		in.Branches[i].Leaf = number[in.Branches[i].Leaf]
	}
	for name, n := range in.Tags {
		if in.Tags[name] = number[n]; !keep[n-1] {
			delete(in.Tags, name)
		}
	}
	seen := map[int]bool{}
	in.Branches = slices.DeleteFunc(in.Branches, func(b record.IncomingBranch) bool {
		twice := seen[b.Leaf]
		seen[b.Leaf] = true
		return twice
	})
	return true
}
