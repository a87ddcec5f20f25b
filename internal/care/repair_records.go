package care

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// take removes the records for which bad returns a reason; "" keeps a record.
func (m *mender) take(invariant int, bucket string, r kv.Range, bad func(key, value []byte) (string, error)) error {
	type found struct {
		key []byte
		why string
	}
	var all []found
	err := m.tx.Scan(bucket, r, func(key, value []byte) error {
		why, err := bad(key, value)
		if why != "" {
			all = append(all, found{bytes.Clone(key), why})
		}
		return err
	})
	for _, f := range all {
		if err == nil {
			m.say(invariant, fmt.Sprintf("%s %x", bucket, f.key), "%s: it is removed", f.why)
			err = m.tx.Delete(bucket, f.key)
		}
	}
	return err
}

func unchecked(_, value []byte) (string, error) {
	if base.Readable(value) != nil {
		return "is not as it was stored", nil
	}
	return "", nil
}

// journal removes operations that cannot be read. A branch or context that points to one of these, or is not as its newest operation left it, starts a new
// history: undo ends there.
func (m *mender) journal(c *mended) error {
	if err := m.take(7, base.OperationBucket, kv.Prefix(c.id[:]), unchecked); err != nil {
		return err
	}
	if err := m.orphans(c); err != nil {
		return err
	}
	last, err := lastOperation(m.tx, c.id)
	if err != nil {
		return err
	}
	if last >= max(c.rec.NextOperation, 1) {
		m.say(7, m.where, "its journal goes on after operation %d", last)
	}
	c.rec.NextOperation = max(c.rec.NextOperation, last+1)
	for _, b := range c.branches {
		fits, err := m.leads(c.id, b.Newest, b.ID, b.Revision)
		if err != nil {
			return err
		}
		if b.Newest != 0 && (!fits || c.unsure[b.ID]) {
			m.say(7, fmt.Sprintf("%s, branch %q", m.where, b.Name), "what was done on it before can no longer be undone")
			b.Last, b.Newest = 0, 0
		}
	}
	fits, err := m.leads(c.id, c.rec.Newest, pool.ID{}, c.rec.Revision)
	if err != nil {
		return err
	}
	if c.rec.Newest != 0 && !fits {
		m.say(7, m.where, "what was done on it before can no longer be undone")
		c.rec.Last, c.rec.Newest = 0, 0
	}
	c.rec.Redo = slices.DeleteFunc(c.rec.Redo, func(n uint64) bool {
		op, err := base.GetOperation(m.tx, c.id, n)
		return op == nil || err != nil
	})
	return nil
}

// orphans ends undo for operations about a branch that has no record any more.
func (m *mender) orphans(c *mended) error {
	there := map[pool.ID]bool{{}: true}
	for _, b := range c.branches {
		there[b.ID] = true
	}
	lost := map[uint64]*base.Operation{}
	err := m.tx.Scan(base.OperationBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		op := &base.Operation{}
		if len(key) == 24 && stored.Unmarshal(value, op) == nil && !op.Expired && slices.ContainsFunc(op.Chains, func(link base.Chain) bool { return !there[link.Branch] }) {
			lost[binary.BigEndian.Uint64(key[16:])] = op
		}
		return nil
	})
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		if err != nil {
			return err
		}
		m.say(7, m.where, "the operation %d is about a branch that is lost: it can no longer be undone", n)
		op := lost[n]
		op.Changes, op.Expired = nil, true
		err = base.PutRecord(m.tx, base.OperationBucket, base.OperationKey(c.id, n), op)
	}
	return err
}

// leads reports whether an operation exists and led to a revision.
func (m *mender) leads(id pool.ID, n uint64, of pool.ID, revision uint64) (bool, error) {
	op, err := base.GetOperation(m.tx, id, n)
	if op == nil || err != nil {
		return false, err
	}
	for _, link := range op.Chains {
		if link.Branch == of {
			return link.Revision == revision, nil
		}
	}
	return false, nil
}

// calls makes the records and indexes of calls fit the messages.
func (m *mender) calls(c *mended) error {
	had := len(m.done)
	err := m.take(5, base.CallBucket, kv.Prefix(c.id[:]), func(key, value []byte) (string, error) {
		if _, err := base.DecodeCall(key, value); err != nil {
			return "is not as it was stored", nil
		}
		if len(key) != 34 {
			return "is not a call", nil
		}
		message, index := base.CallOfKey(key)
		if msg := c.messages[message]; msg == nil || index >= len(msg.Calls) {
			return "its message has no such call", nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	for id, msg := range c.messages {
		for i := range msg.Calls {
			if err := m.callRecord(c, id, msg, i); err != nil {
				return err
			}
		}
	}
	if err := m.claims(c); err != nil {
		return err
	}
	wrong, err := m.indexes(c)
	if wrong && len(m.done) == had {
		m.say(5, m.where, "the lists of its calls that wait are made anew")
	}
	return err
}

// callRecord gives a waiting call without a record one that fits its message.
func (m *mender) callRecord(c *mended, id pool.ID, msg *pool.Message, i int) error {
	call := &msg.Calls[i]
	if !call.Open() || msg.Home == (pool.Home{}) {
		return nil
	}
	key := base.CallKey(c.id, id, i)
	old, err := m.tx.Get(base.CallBucket, key)
	if old != nil || err != nil {
		return err
	}
	m.say(5, fmt.Sprintf("call %s:%d", id, i+1), "has lost what was decided: it waits again")
	rec := &record.CallRecord{CallID: call.ID, Tool: call.Tool, Status: pool.Pending, Execution: pool.NotRun, Since: m.now, Home: msg.Home}
	return base.PutRecord(m.tx, base.CallBucket, key, rec)
}

// claims removes the claims of calls that do not run. A running call without a claim becomes uncertain.
func (m *mender) claims(c *mended) error {
	err := m.take(5, base.ClaimBucket, kv.Prefix(c.id[:]), func(key, value []byte) (string, error) {
		if why, _ := unchecked(key, value); why != "" || len(key) != 34 {
			return why, nil
		}
		var rec record.CallRecord
		ok, err := base.GetRecord(m.tx, base.CallBucket, key, &rec)
		if err == nil && (!ok || rec.Execution != pool.Running) {
			return "its call does not run", nil
		}
		return "", err
	})
	if err != nil {
		return err
	}
	return m.eachCall(c, func(key []byte, rec *record.CallRecord) error {
		claim, err := m.tx.Get(base.ClaimBucket, key)
		changed := steps(rec)
		if rec.Result != (pool.ID{}) && (rec.Open() || c.messages[rec.Result] == nil || c.held(rec.Home)) {
			rec.Result, changed = pool.ID{}, true
		}
		if err == nil && claim == nil && rec.Execution == pool.Running {
			changed = true
			from := rec.State()
			rec.Execution = pool.Uncertain
			rec.Decisions = append(rec.Decisions, record.Decision{At: m.now, From: from, To: rec.State(), Decider: pool.Decider{Kind: record.ByProgram, Name: m.store.Program}, Program: m.store.Program, Reason: "repair: nobody runs it"})
		}
		if err != nil || !changed {
			return err
		}
		m.say(5, fmt.Sprintf("call %x", key[16:]), "its record is made to fit: it is %s", rec.State())
		return base.PutRecord(m.tx, base.CallBucket, key, rec)
	})
}

// steps makes each of a call's steps lead to the next. It reports whether it changed any.
func steps(rec *record.CallRecord) (changed bool) {
	for i := range rec.Decisions {
		next := rec.State()
		if i+1 < len(rec.Decisions) {
			next = rec.Decisions[i+1].From
		}
		if rec.Decisions[i].To != next {
			rec.Decisions[i].To, changed = next, true
		}
	}
	return changed
}

func (m *mender) eachCall(c *mended, fn func(key []byte, rec *record.CallRecord) error) error {
	keys, err := view.KeysWith(m.tx, base.CallBucket, c.id[:])
	if err != nil {
		return err
	}
	for _, key := range keys {
		rec := &record.CallRecord{}
		if _, err := base.GetRecord(m.tx, base.CallBucket, key, rec); err != nil {
			return err
		}
		if err := fn(key, rec); err != nil {
			return err
		}
	}
	return nil
}

// indexes rebuilds the three indexes of calls from the records. It reports whether they were wrong.
func (m *mender) indexes(c *mended) (wrong bool, err error) {
	want := map[string]map[string][]byte{base.UnansweredBucket: {}, base.CallIDBucket: {}, base.OpenBucket: {}}
	err = m.eachCall(c, func(key []byte, rec *record.CallRecord) error {
		message, index := base.CallOfKey(key)
		if home := c.messages[message].Home; home != rec.Home {
			rec.Home = home
			if err := base.PutRecord(m.tx, base.CallBucket, key, rec); err != nil {
				return err
			}
		}
		want[base.CallIDBucket][string(base.CallIDKey(c.id, rec.CallID, key[16:]...))] = []byte{}
		if !rec.Listed() {
			return nil
		}
		want[base.UnansweredBucket][string(base.UnansweredKey(c.id, rec.Home, index))] = append(message[:], rec.CallID...)
		if rec.Open() && c.held(rec.Home) {
			want[base.OpenBucket][string(base.OpenKey(rec, c.id, message, index))] = base.HomeBytes(rec.Home)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for bucket, records := range want {
		r := kv.Prefix(c.id[:])
		if bucket == base.OpenBucket {
			r = kv.Range{}
		}
		var gone [][]byte
		err := m.tx.Scan(bucket, r, func(key, _ []byte) error {
			if _, ok := records[string(key)]; !ok && (bucket != base.OpenBucket || len(key) != 42 || pool.ID(key[8:24]) == c.id) {
				gone = append(gone, bytes.Clone(key))
			}
			return nil
		})
		if err != nil {
			return wrong, err
		}
		for _, key := range gone {
			wrong = true
			if err := m.tx.Delete(bucket, key); err != nil {
				return wrong, err
			}
		}
		for key, value := range records {
			old, err := m.tx.Get(bucket, []byte(key))
			if err != nil {
				return wrong, err
			}
			if old != nil && bytes.Equal(old, value) {
				continue
			}
			wrong = true
			if err := m.tx.Put(bucket, []byte(key), value); err != nil {
				return wrong, err
			}
		}
	}
	return wrong, nil
}

// named removes names of missing messages, and other records that are damaged.
func (m *mender) named(c *mended) error {
	of := map[string]func(key, value []byte) []byte{
		base.TagBucket:    func(_, value []byte) []byte { return value },
		base.MarkBucket:   func(key, _ []byte) []byte { return key[16:] },
		base.QueuedBucket: func(_, value []byte) []byte { return value },
	}
	for bucket, message := range of {
		err := m.take(3, bucket, kv.Prefix(c.id[:]), func(key, value []byte) (string, error) {
			id := message(key, value)
			if len(id) != 16 || c.messages[pool.ID(id)] == nil {
				return "names a message that is not there", nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	for _, bucket := range []string{base.KeyBucket, base.ToolBucket, base.RuleBucket} {
		if err := m.take(3, bucket, kv.Prefix(c.id[:]), unchecked); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the branches and the context's record with the right counts.
func (m *mender) finish(c *mended) error {
	if err := m.names(c); err != nil {
		return err
	}
	r := c.rec
	for _, b := range c.branches {
		if err := branchstore.Put(m.tx, c.id, b); err != nil {
			return err
		}
		for _, p := range b.Pieces {
			r.NextSegment = max(r.NextSegment, p.Segment)
		}
	}
	for segment := range c.entries {
		r.NextSegment = max(r.NextSegment, segment)
	}
	if to := c.active(); to.ID != r.Active {
		m.say(3, m.where, "its active branch %s is not there: it is %q now", r.Active, to.Name)
		r.Active = to.ID
	}
	if messages, n := counted(c.messages), c.living(); int(r.Messages) != messages || int(r.Branches) != n {
		m.say(1, m.where, "has %s and %s, and counted %d and %d", plural.Count(messages, "message"), plural.Count(n, "branch"), r.Messages, r.Branches)
		r.Messages, r.Branches = uint64(messages), uint64(n)
	}
	return base.PutRecord(m.tx, base.ContextBucket, c.id[:], r)
}

// active returns the branch to be active: the active one if it exists, else main, else the first.
func (c *mended) active() *branch.Branch {
	var to *branch.Branch
	for _, b := range c.branches {
		switch {
		case b.Removed != 0:
		case b.ID == c.rec.Active:
			return b
		case to == nil || b.Name == base.MainBranch:
			to = b
		}
	}
	return to
}

// names rebuilds the index of names from the branches' records. Of two branches with one name the later one gets a number.
func (m *mender) names(c *mended) error {
	slices.SortStableFunc(c.branches, func(a, b *branch.Branch) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), bytes.Compare(a.ID[:], b.ID[:]))
	})
	want := map[string]pool.ID{}
	for _, b := range c.branches {
		if b.Removed != 0 {
			continue
		}
		if _, taken := want[b.Name]; taken {
			name := c.free(b.Name)
			m.say(11, m.where, "a second branch is called %q: its name is %q now", b.Name, name)
			b.Name = name
			b.Revision++
			b.Last, b.Newest = 0, 0
		}
		want[b.Name] = b.ID
	}
	err := m.take(11, branchstore.NameBucket, kv.Prefix(c.id[:]), func(key, value []byte) (string, error) {
		if id, ok := want[string(key[16:])]; !ok || string(value) != string(id[:]) {
			return "leads to a branch that is not called so", nil
		}
		delete(want, string(key[16:]))
		return "", nil
	})
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err == nil {
			m.say(11, m.where, "the name %q leads to its branch again", name)
			err = branchstore.PutName(m.tx, c.id, name, want[name])
		}
	}
	return err
}

// artifacts restores the headers of artifacts whose bytes are right, and removes other damaged artifacts.
func (m *mender) artifacts() error {
	var bad []pool.Hash
	err := poolstore.ScanArtifacts(m.tx, pool.Hash{}, func(a pool.ArtifactInfo, err error) error {
		if err == nil {
			_, _, err = poolstore.Artifact(m.tx, a.SHA256)
		}
		if errors.Is(err, kv.ErrDamaged) {
			bad, err = append(bad, a.SHA256), nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, h := range bad {
		var data []byte
		err := m.tx.Scan(poolstore.ArtifactBucket, kv.Prefix(h[:]), func(key, value []byte) error {
			if len(key) == 36 {
				data = append(data, value...)
			}
			return nil
		})
		if err == nil {
			err = poolstore.DeleteArtifact(m.tx, h)
		}
		if err != nil {
			return err
		}
		if pool.HashOf(data) == h {
			m.say(6, "artifact "+h.String(), "gets the header that it lacks")
			if _, err := poolstore.PutArtifact(m.tx, data, ""); err != nil {
				return err
			}
			continue
		}
		m.say(6, "artifact "+h.String(), "its bytes are not the ones that were stored: it is removed")
	}
	return m.strayArtifacts()
}

// strayArtifacts removes records whose keys are no artifact's.
func (m *mender) strayArtifacts() error {
	return m.take(6, poolstore.ArtifactBucket, kv.Range{}, func(key, _ []byte) (string, error) {
		if len(key) != 32 && len(key) != 36 {
			return "is not an artifact", nil
		}
		return "", nil
	})
}

// rest mends what belongs to no context.
func (m *mender) rest() error {
	m.where = "store"
	zero := kv.Prefix(make([]byte, 16))
	for _, bucket := range []string{base.OperationBucket, base.ToolBucket, base.RuleBucket} {
		if err := m.take(3, bucket, zero, unchecked); err != nil {
			return err
		}
	}
	err := m.take(3, base.SourceBucket, kv.Range{}, func(key, value []byte) (string, error) {
		if _, ok := base.ParseSourceNode(value); ok {
			return "", nil
		}
		return unchecked(key, value)
	})
	if err != nil {
		return err
	}
	if err := m.take(3, base.TokenBucket, kv.Range{}, unchecked); err != nil {
		return err
	}
	for _, step := range []func() error{m.recents, m.openStrays, m.meta} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, bucket := range OwnBuckets {
		err := m.take(3, bucket, kv.Range{}, func(key, _ []byte) (string, error) {
			if len(key) < 16 {
				return "belongs to nothing", nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recents rebuilds the lists of contexts by last change and by label.
func (m *mender) recents() error {
	want, labels := map[string]bool{}, map[string]bool{}
	err := m.take(3, base.ContextBucket, kv.Range{}, func(key, value []byte) (string, error) {
		if len(key) != 16 {
			return "is not a conversation", nil
		}
		rec, err := base.DecodeContext(pool.ID(key), value)
		if err != nil {
			return "", err
		}
		want[string(base.RecentKey(rec.ListedAt(), pool.ID(key)))] = true
		for _, l := range rec.Labels {
			labels[string(base.LabelKey(l, pool.ID(key)))] = true
		}
		return "", nil
	})
	if err == nil {
		err = m.listed(3, base.RecentBucket, want, "is not when its conversation changed last", "is put on the list")
	}
	if err == nil {
		err = m.listed(12, base.LabelBucket, labels, "leads to a conversation that does not have the label", "is found by its label again")
	}
	return err
}

// listed makes a bucket, whose keys end with a context's id and have no values, hold exactly the wanted keys.
func (m *mender) listed(invariant int, bucket string, want map[string]bool, stray, put string) error {
	err := m.take(invariant, bucket, kv.Range{}, func(key, value []byte) (string, error) {
		if !want[string(key)] || len(value) > 0 {
			return stray, nil
		}
		delete(want, string(key))
		return "", nil
	})
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if err == nil {
			m.say(invariant, bucket, "the conversation %s %s", pool.ID([]byte(key[len(key)-16:])), put)
			err = m.tx.Put(bucket, []byte(key), []byte{})
		}
	}
	return err
}

// openStrays removes entries of the open calls whose call does not exist.
func (m *mender) openStrays() error {
	return m.take(5, base.OpenBucket, kv.Range{}, func(key, _ []byte) (string, error) {
		if len(key) != 42 {
			return "is not a call", nil
		}
		has, err := m.tx.Get(base.CallBucket, key[8:])
		if err == nil && has == nil {
			return "its call has no record", nil
		}
		return "", err
	})
}

func (m *mender) meta() error {
	raw, err := m.tx.Get(base.MetaBucket, base.MetaStore)
	if err != nil {
		return err
	}
	if len(raw) != 16 {
		m.say(9, "meta", "the store gets a new id")
		id := pool.NewID()
		if err := m.tx.Put(base.MetaBucket, base.MetaStore, id[:]); err != nil {
			return err
		}
	}
	if _, err := view.StoreSettings(m.tx); errors.Is(err, kv.ErrDamaged) {
		m.say(3, "meta", "the store's settings cannot be read: they are removed")
		if err := m.tx.Delete(base.MetaBucket, base.MetaSettings); err != nil {
			return err
		}
	}
	current, err := m.tx.Get(base.MetaBucket, base.MetaCurrent)
	if err != nil {
		return err
	}
	if current != nil {
		var rec []byte
		if len(current) == 16 {
			rec, err = m.tx.Get(base.ContextBucket, current)
		}
		if err == nil && rec == nil {
			m.say(3, "meta", "the current conversation is not there: none is current now")
			err = m.tx.Delete(base.MetaBucket, base.MetaCurrent)
		}
		if err != nil {
			return err
		}
	}
	return m.storeJournal()
}

// storeJournal makes the store's journal continue after its last operation.
func (m *mender) storeJournal() error {
	var rec base.ContextRecord
	_, err := base.GetRecord(m.tx, base.MetaBucket, base.MetaJournal, &rec)
	broken := errors.Is(err, kv.ErrDamaged)
	if err != nil && !broken {
		return err
	}
	if broken {
		rec = base.ContextRecord{}
	}
	last, err := lastOperation(m.tx, pool.ID{})
	if err != nil || !broken && last < max(rec.NextOperation, 1) {
		return err
	}
	m.say(7, "meta", "the store's journal goes on after operation %d", last)
	rec.NextOperation = last + 1
	return base.PutRecord(m.tx, base.MetaBucket, base.MetaJournal, &rec)
}
