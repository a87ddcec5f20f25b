package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

// conversation is a context that is open: what was read of it at one moment, and where the person is in it.
type conversation struct {
	*facts
	folds  screen.Folds
	glyphs screen.Glyphs
	rows   []screen.Row
	roll
	entries map[screen.Place]cached // by Tree.Owner
	asked   map[screen.Place]bool   // entries that are being read
	lost    pool.Time               // the last change of the conversation when a branch was looked for that was gone
	unread  error                   // why entries could not be read; nothing more is read before the facts are
	pinned  *pin                    // the place that was marked for comparing; nil: none
}

// facts are what a conversation is beside its messages.
type facts struct {
	c        *chatctx.ChatContext
	info     *chatctx.ContextInfo
	tree     *screen.Tree
	tags     map[chatctx.ID][]string
	marks    map[chatctx.ID]string
	settings map[string]json.RawMessage // in force on the active branch, those of the environment under them
	tokens   branch.Tokens
	budget   int    // of the window; 0: not known
	spent    string // what the last reply cost, "" where that is not known
	calls    int    // that wait for a decision on the active branch
	queued   int
	claim    *chatctx.Claim // who answers on the active branch
}

// cached is a message as it was read, with the revision of its branch then.
type cached struct {
	*chatctx.Entry
	revision uint64
}

// errGone: the conversation is not there any more.
var errGone = errors.New("the conversation was removed")

// factsTries bounds how often facts are read that change meanwhile. What is read last may be of two moments then; the change is noticed, and leads to another reading.
const factsTries = 5

// readFacts reads what is drawn of a conversation but for its messages, as it is at one moment: a branch that is there at the beginning may be gone before all is read.
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

func info(ctx context.Context, c *chatctx.ChatContext) (*chatctx.ContextInfo, error) {
	info, err := c.Info(ctx)
	if errors.Is(err, chatctx.ErrNotFound) {
		err = errors.Join(errGone, err)
	}
	return info, err
}

// readOnce reads the facts one after the other. With an error it gives what was read before, nil for nothing.
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
		func() (err error) { f.tokens, err = c.Tokens(ctx, f.info.Active); return err },
		func() error { return f.readWork(ctx) },
		func() error { return f.readSpent(ctx, m.o.Prices) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return f, err
		}
	}
	f.tree = screen.NewTree(branches)
	if o, err := (&turn.Turn{Context: c, Branch: f.info.Active}).Options(ctx); err == nil { // a setting that is wrong is for the commands that use it to say
		f.budget = o.Budget
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		f.tags[tags[name]] = append(f.tags[tags[name]], name)
	}
	return f, nil
}

// lookback bounds how many messages are looked at for the last reply, so that the length of a branch does not count.
const lookback = 20

// readSpent reads what the last reply on the active branch cost.
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

// readWork reads what waits on the active branch and who works there.
func (f *facts) readWork(ctx context.Context) error {
	calls, err := f.c.OpenCalls(ctx, f.info.Active)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Status == pool.Pending {
			f.calls++
		}
	}
	queued, err := f.c.Queued(ctx, f.info.Active)
	if err != nil {
		return err
	}
	f.queued = len(queued)
	f.claim, err = f.c.Running(ctx, f.info.Active)
	return err
}

// active is the number of the active branch.
func (f *facts) active() int {
	return max(slices.IndexFunc(f.tree.Branches, func(b *chatctx.TreeBranch) bool { return b.Active }), 0)
}

// named is the number of a branch, -1 for none.
func (f *facts) named(name string) int {
	return slices.IndexFunc(f.tree.Branches, func(b *chatctx.TreeBranch) bool { return b.Name == name })
}

// stretch is a part of a branch that has to be read.
type stretch struct {
	branch   string
	id       chatctx.ID // of the branch: another may have its name by now
	from, to int
	owner    int // the number of the branch in the tree
}

// readEntries reads stretches of branches, each in short transactions.
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
				return out, fmt.Errorf("%w: the branch %q is another one by now", chatctx.ErrNotFound, p.branch)
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

// missing are the messages of the rows on the screen that are not read, or were read before their branch changed, as stretches.
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

// keptEntries bounds how many messages are held for rows that may come back on the screen.
const keptEntries = 2000

// put takes what was read. When too much is held, what is not on the screen goes.
func (v *conversation) put(read map[screen.Place]cached) {
	clear(v.asked)
	if len(v.entries)+len(read) > keptEntries {
		v.entries = map[screen.Place]cached{}
	}
	maps.Copy(v.entries, read)
}

// reads takes messages that were read, or why they could not be. That a branch has gone is no failure: what there is now is read, unless nothing has changed.
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

// newest is the message at the place of its owner as it was read since its branch changed last, nil where it is not.
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

// entry is the message at a place to be drawn, nil while it is not read: until the new one comes it may be the one that stood there before.
func (v *conversation) entry(p screen.Place) *chatctx.Entry { return v.entries[v.tree.Owner(p)].Entry }

// renew goes on with what was read anew: the folds, the messages that are still right and the cursor are carried over to the branches that are there now.
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
	keep, line := false, v.cursor-v.top
	if v.cursor < len(v.rows) && v.rows[v.cursor].Kind != screen.BeginRow {
		here, keep = moved(v.rows[v.cursor].Place)
	}
	v.lay()
	if keep {
		v.find(here)
		v.top = max(v.cursor-line, 0) // where it was on the screen
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
