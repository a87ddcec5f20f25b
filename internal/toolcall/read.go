package toolcall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// callAt is a call as found in a transaction.
type callAt struct {
	Message *pool.Message
	Index   int // from 0
	Rec     *record.CallRecord
}

func (a *callAt) name() string {
	return fmt.Sprintf("%s:%d (%s)", record.Short(a.Message.ID), a.Index+1, a.Rec.Tool)
}

// FindCall finds a call of the context. References are read on branch b. If the caller named that branch, it also decides between several calls with the
// same id.
func FindCall(r view.Reader, b *branch.Branch, named bool, ref record.CallRef) (*callAt, error) {
	if at := strings.LastIndexByte(string(ref), ':'); at > 0 {
		n, err := strconv.Atoi(string(ref[at+1:]))
		id, _, found := pool.ID{}, 0, error(nil)
		if err == nil {
			id, _, found = r.Find(b, record.Ref(ref[:at]))
		}
		if err == nil && found == nil {
			return CallOf(r, id, n-1, ref)
		}
		if found != nil && !errors.Is(found, base.ErrNotFound) && !errors.Is(found, base.ErrInvalid) {
			return nil, found
		}
	}
	if !named {
		b = nil
	}
	return callByID(r, b, string(ref))
}

// callByID finds a call by the provider's id. Of several calls with that id it takes those on branch b, if b is not nil, and of these the open ones. It
// returns ErrAmbiguous if several are left.
func callByID(r view.Reader, b *branch.Branch, id string) (*callAt, error) {
	var all []*callAt
	var keys [][]byte
	if id == "" {
		return nil, base.NotFound("call", id)
	}
	prefix := base.CallIDKey(r.ID, id)
	err := r.Tx.Scan(base.CallIDBucket, kv.Prefix(prefix), func(key, _ []byte) error {
		if len(key) == len(prefix)+18 {
			keys = append(keys, slices.Clone(key[len(prefix):]))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		c, err := CallOf(r, pool.ID(key[:16]), int(binary.BigEndian.Uint16(key[16:])), record.CallRef(id))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if b != nil {
		all = narrow(all, func(c *callAt) bool { return branchstore.Place(b.Pieces, c.Rec.Home.Segment, c.Rec.Home.Position) >= 0 })
	}
	if len(all) > 1 {
		if all, err = onBranches(r, all); err != nil {
			return nil, err
		}
	}
	all = narrow(all, func(c *callAt) bool { return base.IsOpen(c.Rec) })
	switch len(all) {
	case 0:
		return nil, base.NotFound("call", id)
	case 1:
		return all[0], nil
	}
	var words []string
	for _, c := range all[:min(len(all), view.MaxCandidates)] {
		words = append(words, fmt.Sprintf("%s:%d (%s, %s)", c.Message.ID, c.Index+1, c.Rec.Tool, base.StateOf(c.Rec)))
	}
	return nil, base.Ambiguous("call", id, words, len(all)-len(words))
}

// onBranches keeps the calls whose messages a branch holds, or all of them if none does: what an undo took off its branch is not meant.
func onBranches(r view.Reader, all []*callAt) ([]*callAt, error) {
	held := map[*callAt]bool{}
	err := branchstore.List(r.Tx, r.ID, func(b *branch.Branch) error {
		for _, c := range all {
			held[c] = held[c] || branchstore.Place(b.Pieces, c.Rec.Home.Segment, c.Rec.Home.Position) >= 0
		}
		return nil
	})
	return narrow(all, func(c *callAt) bool { return held[c] }), err
}

// narrow keeps the calls that ok accepts, or all of them if it accepts none.
func narrow(all []*callAt, ok func(*callAt) bool) []*callAt {
	var some []*callAt
	for _, c := range all {
		if ok(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return all
	}
	return some
}

// CallOf reads a call of a message by its index from 0. For a call that never waited here the record is made from the message.
func CallOf(r view.Reader, id pool.ID, index int, ref record.CallRef) (*callAt, error) {
	m, err := poolstore.Get(r.Tx, r.ID, id)
	if err != nil {
		return nil, err
	}
	if m == nil || index < 0 || index >= len(m.Calls) {
		return nil, base.NotFound("call", string(ref))
	}
	c := &m.Calls[index]
	rec := &record.CallRecord{}
	ok, err := base.GetRecord(r.Tx, base.CallBucket, base.CallKey(r.ID, id, index), rec)
	if err != nil {
		return nil, err
	}
	if !ok {
		rec = &record.CallRecord{CallID: c.ID, Tool: c.Tool, Status: c.Status, Execution: c.Execution, Reason: c.Reason, Home: m.Home}
	}
	return &callAt{Message: m, Index: index, Rec: rec}, nil
}

// DescribeCall returns a call as others see it: an expiry or crash counts even before it is recorded.
func DescribeCall(r view.Reader, a *callAt, now pool.Time, branchName string) (*record.Call, error) {
	c := &record.Call{Call: a.Message.Calls[a.Index], Context: r.ID, Message: a.Message.ID, Index: a.Index + 1, Branch: branchName, Since: a.Rec.Since,
		Expires: a.Rec.Expires, Decisions: a.Rec.Decisions}
	c.Gate = a.Rec.Gate
	c.Effective, c.ChangedBy = a.Rec.Effective, base.ChangedBy(a.Rec)
	d, claim, err := DueIn(r, a.Message.ID, a.Index, a.Rec, now)
	if err != nil {
		return nil, err
	}
	c.Status, c.Execution, c.Reason, c.Claim = a.Rec.Status, a.Rec.Execution, a.Rec.Reason, claim
	if d != nil {
		c.Status, c.Execution, c.Reason, c.Claim = d.status, d.execution, d.reason, nil
	}
	return c, nil
}

// DueIn returns what is due for a call, nil for nothing, and the claim of its runner, nil if nobody runs it.
func DueIn(r view.Reader, message pool.ID, index int, rec *record.CallRecord, now pool.Time) (*due, *record.Claim, error) {
	if rec.Execution != pool.Running {
		return Due(rec, nil, now), nil, nil
	}
	claim := &record.Claim{}
	ok, err := base.GetRecord(r.Tx, base.ClaimBucket, base.CallKey(r.ID, message, index), claim)
	if err != nil || !ok {
		return Due(rec, nil, now), nil, err
	}
	if claim.Task != (pool.ID{}) {
		child, _, err := base.GetContext(r.Tx, claim.Task)
		if err != nil || child != nil && child.Trashed == 0 && child.Task != nil && child.Task.State == record.TaskRunning {
			return nil, claim, err
		}
	}
	return Due(rec, claim, now), claim, nil
}

// due is the state that an expiry or crash gives a call.
type due struct {
	status    pool.Status
	execution pool.Execution
	reason    string
	kind      string
}

// Due returns the new state of a call whose time is over or whose program died while it ran, else nil.
func Due(c *record.CallRecord, claim *record.Claim, now pool.Time) *due {
	switch {
	case c.Status == pool.Pending && c.Expires != 0 && now >= c.Expires:
		return &due{pool.Denied, pool.NotRun, "nobody decided in time", record.ByExpiry}
	case c.Gate != nil && c.Gate.Waiter != nil && c.Execution == pool.NotRun && base.IsOpen(c) && base.Dead(c.Gate.Waiter, now):
		return &due{pool.Withdrawn, pool.NotRun, "whoever asked waits no more", record.ByProgram}
	case c.Status == pool.Approved && c.Execution == pool.Running && (claim == nil || base.Dead(claim, now)):
		reason := "the program that ran it is gone"
		if claim != nil && !base.HolderGone(claim) {
			reason = "the program that ran it did not renew its claim in time"
		}
		return &due{pool.Approved, pool.Uncertain, reason, record.ByProgram}
	}
	return nil
}

// callPage is the number of open calls that one transaction looks at.
const callPage = 128

// Calls returns the open calls of all contexts, oldest first: those that wait for a decision, wait to be run, run, or are uncertain. It writes nothing and
// reads in short transactions.
func Calls(ctx context.Context, s *base.Store, f record.CallFilter) iter.Seq2[*record.Call, error] {
	return func(yield func(*record.Call, error) bool) {
		l := &callLister{store: s, filter: f, takes: map[pool.ID]bool{}}
		if f.Since != 0 {
			l.from = binary.BigEndian.AppendUint64(nil, uint64(f.Since))
		}
		if a := f.After; a != nil {
			after := base.OpenKey(&record.CallRecord{Since: a.Since}, a.Context, a.Message, a.Index-1)
			l.from = slices.MaxFunc([][]byte{l.from, append(after, 0)}, bytes.Compare)
		}
		for !l.done {
			if err := l.page(ctx); err != nil {
				yield(nil, err)
				return
			}
			for _, c := range l.calls {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// callLister reads the index of open calls page by page.
type callLister struct {
	store  *base.Store
	filter record.CallFilter
	from   []byte // key of the next page
	done   bool
	calls  []*record.Call
	takes  map[pool.ID]bool // the filter's answer for each context
}

// callName identifies a call in the store.
type callName struct {
	ctx, message pool.ID
	index        int
}

func (l *callLister) page(ctx context.Context) error {
	return l.store.DB.View(ctx, l.read)
}

func (l *callLister) read(tx kv.Tx) error {
	keys, from, done, err := l.keys(tx)
	if err != nil {
		return err
	}
	l.calls = nil
	held := map[pool.ID][]*branch.Branch{}
	now := l.store.Now()
	for _, key := range keys {
		if err := l.one(tx, key, held, now); err != nil {
			return err
		}
	}
	l.from, l.done = from, done
	return nil
}

// keys returns the next keys of the index that the filter accepts, the key of the next page, and whether this was the last page.
func (l *callLister) keys(tx kv.Tx) (keys [][]byte, from []byte, done bool, err error) {
	err = tx.Scan(base.OpenBucket, kv.Range{From: l.from}, func(key, _ []byte) error {
		if len(key) != 42 {
			return base.Damaged("the key of an open call has %d bytes", len(key))
		}
		if len(keys) == callPage {
			from = slices.Clone(key)
			return kv.ErrStop
		}
		ok, err := l.context(tx, pool.ID(key[8:24]))
		if err == nil && ok && (l.filter.Skip == nil || !l.filter.Skip(pool.ID(key[24:40]), int(binary.BigEndian.Uint16(key[40:]))+1)) {
			keys = append(keys, slices.Clone(key))
		}
		return err
	})
	return keys, from, from == nil, err
}

// context reports whether the filter accepts calls of a context.
func (l *callLister) context(tx kv.Tx, id pool.ID) (bool, error) {
	if ok, known := l.takes[id]; known {
		return ok, nil
	}
	rec, _, err := base.GetContext(tx, id)
	if err != nil {
		return false, err
	}
	ok := rec != nil && (rec.Trashed == 0 || l.filter.Trash)
	if want := l.filter.Context; ok && want != (pool.ID{}) && id != want {
		ok = rec.Parent != (pool.ID{})
		if ok {
			ok, err = l.context(tx, rec.Parent)
		}
	}
	l.takes[id] = ok
	return ok, err
}

// one reads an open call of the index into the page.
func (l *callLister) one(tx kv.Tx, key []byte, held map[pool.ID][]*branch.Branch, now pool.Time) error {
	name := callName{pool.ID(key[8:24]), pool.ID(key[24:40]), int(binary.BigEndian.Uint16(key[40:]))}
	r := view.Reader{Tx: tx, ID: name.ctx}
	at, err := CallOf(r, name.message, name.index, record.CallRef(name.message.String()))
	if err != nil {
		return err
	}
	if !matchesTool(l.filter.Tool, at.Rec.Tool) {
		return nil
	}
	c, err := DescribeCall(r, at, now, "")
	if err != nil {
		return err
	}
	if c.Branch, err = holderName(tx, name.ctx, at.Rec, held); err != nil {
		return err
	}
	if f := l.filter; !c.Open() || f.Branch != "" && (c.Branch != f.Branch || c.Context != f.Context) || f.State != "" && f.State != c.State() {
		return nil
	}
	l.calls = append(l.calls, c)
	return nil
}

// matchesTool reports whether a pattern matches a tool's name; "" matches all. A slash in a name is a character like any other.
func matchesTool(pattern, name string) bool {
	plain := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	ok, _ := path.Match(plain(pattern), plain(name))
	return ok || pattern == ""
}

// holderName is heldOn for a call: one of an agent's hook that is on no branch yet stands after the active one.
func holderName(tx kv.Tx, ctx pool.ID, rec *record.CallRecord, held map[pool.ID][]*branch.Branch) (string, error) {
	if !base.IsApart(rec) {
		return heldOn(tx, ctx, rec.Home, held)
	}
	in, _, err := base.GetContext(tx, ctx)
	if in == nil || err != nil {
		return "", err
	}
	b, err := branchstore.Get(tx, ctx, in.Active)
	if b == nil || err != nil {
		return "", err
	}
	return b.Name, nil
}

// heldOn returns the name of the first branch that holds a place, "" for none. held caches the branches of each context.
func heldOn(tx kv.Tx, ctx pool.ID, home pool.Home, held map[pool.ID][]*branch.Branch) (string, error) {
	all, ok := held[ctx]
	if !ok {
		if err := branchstore.List(tx, ctx, func(b *branch.Branch) error { all = append(all, b); return nil }); err != nil {
			return "", err
		}
		held[ctx] = all
	}
	for _, b := range all {
		if branchstore.Place(b.Pieces, home.Segment, home.Position) >= 0 {
			return b.Name, nil
		}
	}
	return "", nil
}

// ReadCall finds a call. With contextRef it looks in that context, reading the reference on the named branch ("" means the active one). Without, it looks
// in the current context first and then in all others. Errors to test for: ErrNotFound, ErrAmbiguous.
func ReadCall(ctx context.Context, s *base.Store, contextRef, branchName string, ref record.CallRef) (*record.Call, error) {
	var c *record.Call
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		r, at, err := findCall(s, tx, contextRef, branchName, ref)
		if err != nil {
			return err
		}
		name, err := holderName(tx, r.ID, at.Rec, map[pool.ID][]*branch.Branch{})
		if err != nil {
			return err
		}
		c, err = DescribeCall(r, at, s.Now(), name)
		return err
	})
	return c, err
}

// findCall resolves a reference to a call.
func findCall(s *base.Store, tx kv.Tx, contextRef, branchName string, ref record.CallRef) (view.Reader, *callAt, error) {
	id, err := view.ResolveContext(s, tx, contextRef)
	if err != nil && contextRef != "" {
		return view.Reader{}, nil, err
	}
	first := err
	if err == nil {
		at, err := callIn(s, tx, id, branchName, ref)
		if err == nil || contextRef != "" || !errors.Is(err, base.ErrNotFound) {
			return view.Reader{Tx: tx, ID: id}, at, err
		}
		first = err
	}
	return callAnywhere(s, tx, id, ref, first)
}

// callIn finds a call in one context.
func callIn(s *base.Store, tx kv.Tx, id pool.ID, branchName string, ref record.CallRef) (*callAt, error) {
	rec, _, err := base.GetContext(tx, id)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, base.NotFound("conversation", id.String())
	}
	if err := s.Placed(id, rec); err != nil {
		return nil, err
	}
	b, err := view.BranchOf(tx, id, rec, branchName)
	if err != nil {
		return nil, err
	}
	return FindCall(view.Reader{Tx: tx, ID: id}, b, branchName != "", ref)
}

// callAnywhere looks for a call in all contexts outside the trash except but. Tags and positions begin with @; they belong to one branch, so they are not
// looked for elsewhere: for these it returns the error otherwise.
func callAnywhere(s *base.Store, tx kv.Tx, but pool.ID, ref record.CallRef, otherwise error) (view.Reader, *callAt, error) {
	var found []*callAt
	var in []pool.ID
	var words []string
	if strings.HasPrefix(string(ref), "@") {
		return view.Reader{}, nil, otherwise
	}
	err := tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
		id := pool.ID(key)
		rec, err := base.DecodeContext(id, value)
		if err != nil || id == but || rec.Trashed != 0 {
			return err
		}
		at, err := callIn(s, tx, id, "", ref)
		if errors.Is(err, base.ErrNotFound) {
			return nil
		}
		if err == nil {
			found, in = append(found, at), append(in, id)
			words = append(words, fmt.Sprintf("%s:%d (%s, in %s)", at.Message.ID, at.Index+1, at.Rec.Tool, rec.Title))
		}
		return err
	})
	switch {
	case err != nil:
		return view.Reader{}, nil, err
	case len(found) == 0:
		return view.Reader{}, nil, base.NotFound("call", string(ref))
	case len(found) > 1:
		words = words[:min(len(words), view.MaxCandidates)]
		return view.Reader{}, nil, base.Ambiguous("call", string(ref), words, len(found)-len(words))
	}
	return view.Reader{Tx: tx, ID: in[0]}, found[0], nil
}

// timedStep is a step in the life of a call, with its place among those of other calls.
type timedStep struct {
	*record.CallStep
	order pool.Time // At, but never earlier than that of the step before
}

// CallLog returns all steps of the calls that ever waited in a context, or in all contexts for the zero id, oldest first. A call's last step leads to its
// present state: an expiry or crash that is not recorded yet is included. CallLog writes nothing.
func CallLog(ctx context.Context, s *base.Store, context pool.ID) ([]*record.CallStep, error) {
	ids := []pool.ID{context}
	if context == (pool.ID{}) {
		var err error
		if ids, err = view.Recent(ctx, s); err != nil {
			return nil, err
		}
	}
	var all []timedStep
	for _, id := range ids {
		steps, err := callSteps(ctx, s, id)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
	}
	slices.SortStableFunc(all, func(a, b timedStep) int { return cmp.Compare(a.order, b.order) })
	out := make([]*record.CallStep, len(all))
	for i, step := range all {
		out[i] = step.CallStep
	}
	return out, nil
}

func callSteps(ctx context.Context, s *base.Store, id pool.ID) ([]timedStep, error) {
	var out []timedStep
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		out = nil
		return tx.Scan(base.CallBucket, kv.Prefix(id[:]), func(key, value []byte) error {
			rec, err := base.DecodeCall(key, value)
			if err != nil {
				return err
			}
			message, index := base.CallOfKey(key)
			d, _, err := DueIn(view.Reader{Tx: tx, ID: id}, message, index, rec, s.Now())
			if err != nil {
				return err
			}
			if d != nil {
				rec.Decisions = append(rec.Decisions, d.step(rec, s.Now()))
			}
			out = append(out, stepsOf(id, message, index, rec)...)
			return nil
		})
	})
	return out, err
}

// step returns what is due as a step that is not recorded yet.
func (d *due) step(rec *record.CallRecord, now pool.Time) record.Decision {
	at := now
	if d.kind == record.ByExpiry {
		at = rec.Expires
	}
	return record.Decision{At: at, From: base.StateOf(rec), To: record.CallState(d.status, d.execution), Decider: pool.Decider{Kind: d.kind}, Reason: d.reason}
}

// stepsOf returns the steps of one call.
func stepsOf(ctx, message pool.ID, index int, rec *record.CallRecord) []timedStep {
	first := base.StateOf(rec)
	if len(rec.Decisions) > 0 {
		first = rec.Decisions[0].From
	}
	step := record.CallStep{Context: ctx, Message: message, Index: index + 1, ID: rec.CallID, Tool: rec.Tool}
	begin := step
	begin.Decision = record.Decision{At: rec.Since, To: first, Decider: pool.Decider{Kind: record.ByProgram, Name: rec.Program}, Program: rec.Program}
	begin.Origin, begin.Said = rec.Origin, rec.Origin == "import" && first != record.CallState(pool.Pending, pool.NotRun)
	out := []timedStep{{&begin, rec.Since}}
	for _, d := range rec.Decisions {
		next := step
		next.Decision = d
		out = append(out, timedStep{&next, max(d.At, out[len(out)-1].order)})
	}
	return out
}

// OpenCalls returns the open calls of a branch ("" means the active one) in the order of its history, as Store.Calls does.
func OpenCalls(ctx context.Context, c *base.Conversation, branchName string) ([]*record.Call, error) {
	open, _, err := callsOf(ctx, c, branchName)
	return open, err
}

// SettleBranch records expiries and crashes for the calls of a branch ("" means the active one). In a read-only store it does nothing.
func SettleBranch(ctx context.Context, c *base.Conversation, branchName string) error {
	_, stale, err := callsOf(ctx, c, branchName)
	if err != nil || len(stale) == 0 {
		return err
	}
	err = settleCalls(ctx, c.Store, stale)
	if errors.Is(err, base.ErrReadOnly) {
		err = nil
	}
	return err
}

// callsOf returns the open calls of a branch, and the calls whose present state is not recorded yet.
func callsOf(ctx context.Context, c *base.Conversation, branchName string) (open []*record.Call, stale []callName, err error) {
	err = view.On(ctx, c, branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		open, stale = nil, nil
		calls, err := view.UnansweredIn(tx, c.ID, b.Pieces)
		if err != nil {
			return err
		}
		for _, u := range calls {
			at, err := CallOf(view.Reader{Tx: tx, ID: c.ID}, u.Message, u.Index, "")
			if err != nil {
				return err
			}
			call, err := DescribeCall(view.Reader{Tx: tx, ID: c.ID}, at, c.Store.Now(), b.Name)
			if err != nil {
				return err
			}
			if call.State() != base.StateOf(at.Rec) {
				stale = append(stale, callName{c.ID, u.Message, u.Index})
			}
			if call.Open() {
				open = append(open, call)
			}
		}
		return nil
	})
	return open, stale, err
}
