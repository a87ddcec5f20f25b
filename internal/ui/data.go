package ui

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// conversation is an open context: what was read of it at one moment, and the person's place in it.
type conversation struct {
	*facts
	folds  screen.Folds
	glyphs screen.Glyphs
	rows   []screen.Row
	roll
	entries map[screen.Place]cached // by Tree.Owner
	asked   map[screen.Place]bool   // entries that are being read
	lost    pool.Time               // the conversation's last change when a branch was found to be gone
	unread  error                   // why entries could not be read; no more are read until the facts are read again
	pinned  *pin                    // the place that is marked for comparing; nil if none is
}

// facts are everything about a conversation except its messages.
type facts struct {
	c        *chatctx.ChatContext
	info     *record.ContextInfo
	tree     *screen.Tree
	tags     map[chatctx.ID][]string
	marks    map[chatctx.ID]string
	settings map[string]json.RawMessage // in force on the active branch, with those of the environment below
	tokens   branch.Tokens
	budget   int    // of the window; 0 if unknown
	spent    string // the cost of the last reply, "" if unknown
	calls    int    // the number that wait for a decision on the active branch
	queued   int
	claim    *record.Claim // the claim of an answer on the active branch
}

// cached is a message with the revision of its branch at reading.
type cached struct {
	*chatctx.Entry
	revision uint64
}

// errGone means that the conversation does not exist any more.
var errGone = errors.New("the conversation was removed")

// factsTries bounds how often facts are read that change meanwhile. The last reading may mix two moments; then the change is noticed and leads to another
// reading.
const factsTries = 5

// readFacts reads everything to draw of a conversation except its messages, as of one moment: a branch that exists at the beginning may be gone at the end.
func (m *model) readFacts(c *chatctx.ChatContext) (*facts, error) {
	for try := 1; ; try++ {
		f, err := m.readOnce(c)
		if f == nil || m.ctx.Err() != nil { // nothing is known of it
			return nil, err
		}
		now, failed := info(m.ctx, c)
		switch {
		case failed != nil:
			return nil, failed
		case now.Updated != f.info.Updated && try < factsTries:
			continue
		case err != nil:
			return nil, err
		}
		return f, nil
	}
}

func info(ctx context.Context, c *chatctx.ChatContext) (*record.ContextInfo, error) {
	info, err := c.Info(ctx)
	if errors.Is(err, chatctx.ErrNotFound) {
		err = errors.Join(errGone, err)
	}
	return info, err
}

// readOnce reads the facts one after the other. With an error it returns what was read before, nil if nothing was.
func (m *model) readOnce(c *chatctx.ChatContext) (*facts, error) {
	ctx := m.ctx
	read, err := info(ctx, c)
	if err != nil {
		return nil, err
	}
	f := &facts{c: c, info: read, tags: map[chatctx.ID][]string{}}
	var tags map[string]chatctx.ID
	var branches []*chatctx.TreeBranch
	steps := []func() error{
		func() (err error) { branches, err = c.Tree(ctx); return err },
		func() (err error) { tags, err = c.Tags(ctx); return err },
		func() (err error) { f.marks, err = c.Marks(ctx); return err },
		func() error {
			own, err := c.Effective(ctx, f.info.Active)
			f.settings = settings.WithEnv(own, os.Getenv)
			return err
		},
		func() (err error) {
			f.tokens, err = view.Tokens(ctx, base.ContextOf(c.Store(), c.ID), f.info.Active)
			return err
		},
		func() error { return f.readWork(ctx) },
		func() error { return f.readSpent(ctx, m.o.Prices) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return f, err
		}
	}
	f.tree = screen.NewTree(branches)
	if inForce, err := (&turn.Turn{Context: c, Branch: f.info.Active}).InForce(ctx); err == nil { // the commands that use a wrong setting report it
		if o, err := window.AskingOf(inForce).Options(ctx); err == nil {
			f.budget = o.Budget
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		f.tags[tags[name]] = append(f.tags[tags[name]], name)
	}
	return f, nil
}

// lookback bounds how many messages are searched for the last reply, so that the length of a branch does not matter.
const lookback = 20

// readSpent reads the cost of the last reply on the active branch.
func (f *facts) readSpent(ctx context.Context, prices *cost.Prices) error {
	snap, err := f.c.Snapshot(ctx, f.info.Active)
	if err != nil {
		return err
	}
	for e, err := range snap.Entries(ctx, snap.Len(), max(snap.Len()-lookback, 1)) {
		if err != nil {
			return err
		}
		if e.Role != pool.Assistant {
			continue
		}
		if r := prices.Reply(e.Message); r != nil && r.Known() {
			f.spent = "last answer " + r.Cost.Short() + " " + r.Price.Currency
		}
		break
	}
	return nil
}

// readWork reads what waits on the active branch, and whether an answer is being written there.
func (f *facts) readWork(ctx context.Context) error {
	calls, err := toolcall.OpenCalls(ctx, base.ContextOf(f.c.Store(), f.c.ID), f.info.Active)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Status == pool.Pending {
			f.calls++
		}
	}
	queued, err := view.Queued(ctx, base.ContextOf(f.c.Store(), f.c.ID), f.info.Active)
	if err != nil {
		return err
	}
	f.queued = len(queued)
	f.claim, err = view.Running(ctx, base.ContextOf(f.c.Store(), f.c.ID), f.info.Active)
	return err
}

// active returns the index of the active branch.
func (f *facts) active() int {
	return max(slices.IndexFunc(f.tree.Branches, func(b *chatctx.TreeBranch) bool { return b.Active }), 0)
}

// named returns the index of a branch by name, -1 if there is none.
func (f *facts) named(name string) int {
	return slices.IndexFunc(f.tree.Branches, func(b *chatctx.TreeBranch) bool { return b.Name == name })
}

// stretch is a part of a branch to be read.
type stretch struct {
	branch   string
	id       chatctx.ID // of the branch, since another one may have its name by now
	from, to int
	owner    int // the index of the branch in the tree
}

// readEntries reads parts of branches, each in short transactions.
func readEntries(ctx context.Context, c *chatctx.ChatContext, parts []stretch) (map[screen.Place]cached, error) {
	out := map[screen.Place]cached{}
	snaps := map[string]*chatctx.Snapshot{}
	for _, p := range parts {
		snap := snaps[p.branch]
		if snap == nil {
			var err error
			if snap, err = c.Snapshot(ctx, p.branch); err != nil {
				return out, err
			}
			if snap.Info.ID != p.id {
				return out, base.Says(chatctx.ErrNotFound, "the branch %q is another one by now", p.branch)
			}
			snaps[p.branch] = snap
		}
		for e, err := range snap.Entries(ctx, p.from, min(p.to, snap.Len())) {
			if err != nil {
				return out, err
			}
			out[screen.Place{Branch: p.owner, Position: e.Position}] = cached{e, snap.Info.Revision}
		}
	}
	return out, nil
}

// missing returns the parts of branches with messages of the rows on the screen that are not read, or were read before their branch changed.
func (v *conversation) missing() []stretch {
	if v.unread != nil {
		return nil
	}
	var want []screen.Place
	from, to := v.shown()
	for _, r := range v.rows[from:to] {
		if r.Kind == screen.GapRow || r.Kind == screen.BeginRow {
			continue
		}
		p := v.tree.Owner(r.Place)
		if v.asked[p] || v.newest(p) != nil {
			continue
		}
		v.asked[p] = true
		want = append(want, p)
	}
	slices.SortFunc(want, func(a, b screen.Place) int {
		if a.Branch != b.Branch {
			return a.Branch - b.Branch
		}
		return a.Position - b.Position
	})
	var parts []stretch
	for _, p := range want {
		if n := len(parts); n > 0 && parts[n-1].owner == p.Branch && parts[n-1].to == p.Position-1 {
			parts[n-1].to = p.Position
			continue
		}
		b := v.tree.Branches[p.Branch]
		parts = append(parts, stretch{b.Name, b.ID, p.Position, p.Position, p.Branch})
	}
	return parts
}

// keptEntries bounds how many messages are kept for rows that may return to the screen.
const keptEntries = 2000

// put adds messages that were read. If there are too many, those that are not on the screen go.
func (v *conversation) put(read map[screen.Place]cached) {
	clear(v.asked)
	if len(v.entries)+len(read) > keptEntries {
		v.entries = map[screen.Place]cached{}
	}
	maps.Copy(v.entries, read)
}

// reads handles messages that were read, or the error. A branch that is gone is not a failure: the facts are read again, unless nothing has changed.
func (m *model) reads(msg entriesMsg) tea.Cmd {
	v := m.conv
	if v == nil || v.facts != msg.of {
		return nil
	}
	v.put(msg.read)
	if v.unread = msg.err; msg.err == nil {
		return nil
	}
	if errors.Is(msg.err, chatctx.ErrNotFound) && v.lost != v.info.Updated {
		v.lost = v.info.Updated
		return m.reread()
	}
	m.complain(msg.err)
	return nil
}

// newest returns the message at its owner's place if it was read after its branch last changed, else nil.
func (v *conversation) newest(owner screen.Place) *chatctx.Entry {
	if had, ok := v.entries[owner]; ok && had.revision >= v.tree.Branches[owner.Branch].Revision {
		return had.Entry
	}
	return nil
}

// coming reports whether the message at the cursor is being read.
func (v *conversation) coming() bool {
	r := v.here()
	if r == nil || r.Kind == screen.BeginRow {
		return false
	}
	owner := v.tree.Owner(r.Place)
	return v.newest(owner) == nil && v.asked[owner]
}

// entry returns the message to draw at a place, nil if it is not read: until the new one is read, it may be the previous one.
func (v *conversation) entry(p screen.Place) *chatctx.Entry { return v.entries[v.tree.Owner(p)].Entry }

// renew continues with new facts: it carries the folds, the messages that are still valid and the cursor over to the current branches.
func (v *conversation) renew(f *facts) {
	old := v.facts
	v.facts = f
	if old == nil {
		return
	}
	at := map[chatctx.ID]int{}
	for i, b := range f.tree.Branches {
		at[b.ID] = i
	}
	moved := func(p screen.Place) (screen.Place, bool) {
		i, ok := at[old.tree.Branches[p.Branch].ID]
		return screen.Place{Branch: i, Position: p.Position}, ok && p.Position <= f.tree.Branches[i].Messages
	}
	v.folds = screen.Folds{Open: movedKeys(v.folds.Open, moved), Folded: movedKeys(v.folds.Folded, moved)}
	entries := map[screen.Place]cached{}
	for p, e := range v.entries {
		if to, ok := moved(p); ok && f.tree.Owner(to) == to {
			entries[to] = e
		}
	}
	v.entries, v.asked, v.unread = entries, map[screen.Place]bool{}, nil
	var here screen.Place
	keep, line, kind := false, v.cursor-v.top, screen.BeginRow
	if v.cursor < len(v.rows) {
		kind = v.rows[v.cursor].Kind
	}
	if kind != screen.BeginRow {
		here, keep = moved(v.rows[v.cursor].Place)
	}
	v.lay()
	if keep {
		v.stand(here, kind)
		v.top = max(v.cursor-line, 0) // at its line on the screen
		v.to(v.cursor)
	}
}

func movedKeys(m map[screen.Place]bool, moved func(screen.Place) (screen.Place, bool)) map[screen.Place]bool {
	out := map[screen.Place]bool{}
	for p, on := range m {
		if to, ok := moved(p); ok && on {
			out[to] = true
		}
	}
	return out
}
