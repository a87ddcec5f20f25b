package view

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// MaxCompared is the largest number of histories in one comparison.
const MaxCompared = 32

// SecondAnswer is the Kind of the RefError that Compare returns if a branch has no second answer to compare with.
const SecondAnswer = "second answer to compare with on branch"

// compared is a history to compare, with its branch.
type compared struct {
	*record.ComparedHistory
	on *branch.Branch
}

func (c *compared) pieces() []branch.Piece { return branchstore.Slice(c.on.Pieces, 0, c.Len) }

// Compare compares histories turn by turn from their common ancestor: the branches up to the messages that refs name. References are read on the branch
// branchName ("" means the active one). With one ref it compares that branch with it. Without any, or with the branch itself as the only one, it compares
// the answers to the branch's last user message, the branch's own first, each once; it returns ErrNotFound if there are not two.
func Compare(ctx context.Context, c *base.Conversation, branchName string, refs ...record.Ref) (*record.Comparison, error) {
	var out *record.Comparison
	err := histories(ctx, c, branchName, refs, func(x comparing, all []*compared) (err error) {
		out, err = x.compare(all)
		return err
	})
	return out, err
}

// histories finds the histories to compare.
func histories(ctx context.Context, c *base.Conversation, branchName string, refs []record.Ref, fn func(comparing, []*compared) error) error {
	return At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) error {
		b, err := BranchOf(tx, c.ID, rec, branchName)
		if err != nil {
			return err
		}
		x := comparing{Reader{Tx: tx, ID: c.ID}, b}
		all, err := x.histories(refs)
		if err != nil {
			return err
		}
		return fn(x, all)
	})
}

// CompareSize is about how many bytes of memory the messages take that Compare reads.
func CompareSize(ctx context.Context, c *base.Conversation, branchName string, refs ...record.Ref) (int, error) {
	size := 0
	err := histories(ctx, c, branchName, refs, func(x comparing, all []*compared) error {
		shared, err := x.shared(all)
		size = 0
		for _, h := range all {
			if err == nil {
				err = addSizes(x.Tx, c.ID, h.on, shared, h.Len, &size)
			}
		}
		return err
	})
	return size, err
}

// addSizes adds about how many bytes the messages take that a branch has after the first ones, up to and with the one at position to.
func addSizes(tx kv.Tx, id pool.ID, b *branch.Branch, first, to int, size *int) error {
	ids, err := branchstore.IDs(tx, id, branchstore.Slice(b.Pieces, first, to))
	if err != nil {
		return err
	}
	return poolstore.Sizes(tx, id, ids, func(_, n int) error {
		*size += n
		return nil
	})
}

// comparing reads what Compare needs in one transaction.
type comparing struct {
	Reader
	b *branch.Branch
}

func (x comparing) histories(refs []record.Ref) ([]*compared, error) {
	switch {
	case len(refs) > MaxCompared:
		return nil, base.Invalidf("at most %d histories are compared at once, not %d", MaxCompared, len(refs))
	case len(refs) == 0:
		return x.siblings()
	case len(refs) == 1:
		on, pos, err := x.whole(refs[0])
		if err != nil {
			return nil, err
		}
		if on.ID == x.b.ID && pos == branchstore.Len(on) {
			return x.siblings()
		}
		refs = []record.Ref{record.Ref("branch:" + x.b.Name), refs[0]}
	}
	var all []*compared
	for _, ref := range refs {
		on, pos, err := x.whole(ref)
		if err != nil {
			return nil, err
		}
		all = append(all, &compared{&record.ComparedHistory{Ref: ref, Branch: on.Name, Len: pos}, on})
	}
	return all, nil
}

// whole returns the branch up to the message that ref names. ref may also name an empty branch.
func (x comparing) whole(ref record.Ref) (*branch.Branch, int, error) {
	b, err := branchstore.Find(x.Tx, x.ID, strings.TrimPrefix(string(ref), "branch:"))
	if err != nil || b != nil && branchstore.Len(b) == 0 {
		return b, 0, err
	}
	return x.LocateThere(x.b, ref)
}

// siblings returns the answers to the branch's last user message, each as the branch that has it: the branch itself first, the others in the order in which
// they were made.
func (x comparing) siblings() ([]*compared, error) {
	begins, _, err := x.TurnOf(x.b, branchstore.Len(x.b))
	if err != nil {
		return nil, err
	}
	var all []*compared
	if begins > 0 {
		infos, err := BranchInfos(x.Tx, x.ID, &base.ContextRecord{})
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(infos, func(a, b *BranchInfo) int {
			return rank(b.ID == x.b.ID) - rank(a.ID == x.b.ID)
		})
		for _, info := range infos {
			if all, err = x.addSibling(all, &info.Branch, begins); err != nil {
				return nil, err
			}
		}
	}
	if len(all) < 2 {
		return nil, base.NotFound(SecondAnswer, x.b.Name)
	}
	return all, nil
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// addSibling adds a branch that shares the branch's history up to and including the message at begins and has an answer of its own.
func (x comparing) addSibling(all []*compared, on *branch.Branch, begins int) ([]*compared, error) {
	if branchstore.Len(on) <= begins || len(all) == MaxCompared {
		return all, nil
	}
	n, err := branchstore.Shared(x.Tx, x.ID, branchstore.Slice(x.b.Pieces, 0, begins), branchstore.Slice(on.Pieces, 0, begins))
	if err != nil || n < begins {
		return all, err
	}
	_, ends, err := x.TurnOf(on, begins)
	if err != nil || ends == begins {
		return all, err
	}
	c := &compared{&record.ComparedHistory{Ref: record.Ref("branch:" + on.Name + "@" + strconv.Itoa(ends)), Branch: on.Name, Len: ends}, on}
	for _, other := range all {
		n, err := branchstore.Shared(x.Tx, x.ID, other.pieces(), c.pieces())
		if err != nil || n == ends && n == other.Len {
			return all, err
		}
	}
	return append(all, c), nil
}

// shared is how many messages all histories begin with.
func (x comparing) shared(all []*compared) (int, error) {
	shared := all[0].Len
	for _, c := range all[1:] {
		n, err := branchstore.Shared(x.Tx, x.ID, all[0].pieces(), c.pieces())
		if err != nil {
			return 0, err
		}
		shared = min(shared, n)
	}
	return shared, nil
}

// compare reads what the histories do not share.
func (x comparing) compare(all []*compared) (*record.Comparison, error) {
	shared, err := x.shared(all)
	if err != nil {
		return nil, err
	}
	out := &record.Comparison{}
	if shared > 0 {
		page, err := ReadEntries(x.Tx, x.ID, all[0].on, shared, shared)
		if err != nil {
			return nil, err
		}
		out.Ancestor = page[0]
	}
	turns := map[int]*record.ComparedTurn{}
	for i, c := range all {
		out.Columns = append(out.Columns, c.ComparedHistory)
		own, err := ReadEntries(x.Tx, x.ID, c.on, shared+1, c.Len)
		if err != nil {
			return nil, err
		}
		for _, e := range own {
			n, err := strconv.Atoi(e.Turn[1:])
			if err != nil {
				return nil, fmt.Errorf("the label %q: %w", e.Turn, err)
			}
			if turns[n] == nil {
				turns[n] = &record.ComparedTurn{Turn: n, Cells: make([][]*pool.Entry, len(all))}
				out.Turns = append(out.Turns, turns[n])
			}
			turns[n].Cells[i] = append(turns[n].Cells[i], e)
		}
	}
	slices.SortFunc(out.Turns, func(a, b *record.ComparedTurn) int { return a.Turn - b.Turn })
	return out, nil
}
