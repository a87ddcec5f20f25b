package journal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// An operation stands on an earlier one if both changed the same thing. A thing is a branch's history, its name, its being there, each of its prompts; a
// title, a tag, a label, a mark; a setting of one place; a call's decision; a rule; a tool. This file has the one table of things: of the fields of a
// branch's and a context's record, and of the buckets whose records are things. They are also the registers of two stores that agree.

// role is what an undo does with a field.
type role int

const (
	counter role = iota // nothing: it counts, or says where records are
	value               // it restores the whole value
	each                // a field of many names, each a thing of its own: it restores those that the operation changed
	here                // it restores where people are, which is no thing: switching is never in the way
)

// field is the part that a field of a record has in a thing; the thing "" is none.
type field struct {
	thing string
	role  role
}

// The things of a branch and of a context. Those with names end in a slash and the name.
const (
	allThings     = "*" // of a branch or a context that the operation made
	historyThing  = "h" // with the sessions, which name positions in it
	settingThings = "s"
)

// branchFields has each key of a branch's record. A splice restores the pieces.
var branchFields = map[uint64]field{
	1: {}, 2: {thing: historyThing}, 3: {}, 4: {}, 5: {"y", value}, 6: {"u", value}, 7: {settingThings, each}, 8: {historyThing, value}, 9: {historyThing, value}, 10: {historyThing, value},
	11: {}, 12: {"d", each}, 13: {}, 14: {}, 15: {}, 16: {"k", value}, 17: {"n", value}, base.RemovedField: {"r", value},
}

// contextFields has each key of a context's record. The task belongs to the parent, and goes with it in the store's journal alone.
var contextFields = map[uint64]field{
	titleField: {"t", value}, 2: {"t", value}, 3: {"p", value}, 4: {settingThings, each}, base.ActiveField: {role: here}, 6: {}, 7: {}, trashedField: {"x", value}, 9: {"d", each},
	10: {}, 11: {}, 12: {}, 13: {}, 14: {}, 15: {}, 16: {}, 17: {}, 18: {}, 19: {}, taskField: {thing: "p"}, 21: {"t", value}, 22: {"l", each}, 23: {"t", value}, 24: {}, 25: {},
}

// recordThings has the buckets whose records are things, each by its key. Of other buckets the journal has no changes but of the settings of the store, which
// are things by their names, and of the current context, which is where people are.
var recordThings = map[string]string{
	base.TagBucket: "g", base.MarkBucket: "m", base.CallBucket: "c", poolstore.Bucket: "w", base.RuleBucket: "rule", base.ToolBucket: "tool", base.TokenBucket: "token",
	base.QueuedBucket: "queue", base.SourceBucket: "source",
}

// restores returns the keys of a table that an undo restores.
func restores(table map[uint64]field) map[uint64]bool {
	keys := map[uint64]bool{}
	for key, f := range table {
		if f.role != counter {
			keys[key] = true
		}
	}
	return keys
}

var branchKeys, contextKeys = restores(branchFields), restores(contextFields)

// named returns the thing that a name of a field is. All settings that say where requests go and with which key are one, so that no undo sends a key to an
// address for which it was not set. What is held is no other thing than what it becomes.
func named(kind, name string) string {
	if kind == settingThings {
		for strings.HasPrefix(name, settings.HeldPrefix) {
			name = strings.TrimPrefix(name, settings.HeldPrefix)
		}
		if settings.Addresses(name) {
			name = "base_url"
		}
	}
	return kind + "/" + name
}

// thing is something that operations change: of a branch or, in the store's journal, a context; zero: of the whole journal.
type thing struct {
	of   pool.ID
	name string
}

// things are what an operation changed.
type things struct {
	each map[thing]bool
	all  map[pool.ID]bool // everything of these subjects of its chains
}

func (t things) none() bool { return len(t.each) == 0 && len(t.all) == 0 }

// thingsOf returns the things that an operation changed: those that its record lists, the histories that it spliced and the records that it replaced. An
// operation without a list is an append, or one of an older program, which counts as one that changed everything of its subjects.
func thingsOf(op *base.Operation) things {
	out := things{map[thing]bool{}, map[pool.ID]bool{}}
	for i := range op.Changes {
		switch c := &op.Changes[i]; {
		case c.Kind == base.SpliceChange && len(c.Key) == len(pool.ID{}):
			out.each[thing{pool.ID(c.Key), historyThing}] = true
		case c.Kind == base.RecordChange && recordThings[c.Bucket] != "":
			out.each[thing{name: named(recordThings[c.Bucket], string(c.Key))}] = true
		}
	}
	only := op.Things == nil && !op.Expired && onlyHistory(op.Chains, op.Changes)
	for i, c := range op.Chains {
		switch {
		case i < len(op.Things) && !op.Expired: // gc has taken what else told things
			for _, name := range op.Things[i] {
				out.each[thing{c.Branch, name}] = true
				out.all[c.Branch] = out.all[c.Branch] || name == allThings
			}
		case !only:
			out.all[c.Branch] = true
		}
	}
	maps.DeleteFunc(out.all, func(_ pool.ID, all bool) bool { return !all })
	return out
}

// onlyHistory reports whether an operation changed histories, with the calls of their messages, and nothing else, as an append does. Its changes tell that, so
// its record needs no list.
func onlyHistory(chains []base.Chain, changes []base.Change) bool {
	spliced := map[pool.ID]bool{}
	for _, c := range changes {
		if c.Kind == base.FieldsChange {
			return false
		}
		if c.Kind == base.SpliceChange && len(c.Key) == len(pool.ID{}) {
			spliced[pool.ID(c.Key)] = true
		}
	}
	return len(chains) > 0 && !slices.ContainsFunc(chains, func(c base.Chain) bool { return !spliced[c.Branch] })
}

// share reports whether two operations of one journal changed a thing in common.
func share(a, b *base.Operation) bool {
	if len(a.Chains) == 0 || len(b.Chains) == 0 { // what a program did with a call: its state says what can be taken back
		return false
	}
	x, y := thingsOf(a), thingsOf(b)
	if x.none() || y.none() {
		return false
	}
	for _, c := range a.Chains {
		if (x.all[c.Branch] || y.all[c.Branch]) && Touches(b, []base.Chain{c}) {
			return true
		}
	}
	for one := range x.each {
		if y.each[one] {
			return true
		}
	}
	return false
}

// Touches reports whether an operation has a subject in common with chains.
func Touches(op *base.Operation, chains []base.Chain) bool {
	for _, a := range op.Chains {
		for _, b := range chains {
			if a.Branch == b.Branch {
				return true
			}
		}
	}
	return false
}

// namesIn returns the names in a field of many, with their values: a map, or a list of names.
func namesIn(raw cbor.RawMessage) (map[string]cbor.RawMessage, error) {
	all := map[string]cbor.RawMessage{}
	if len(raw) == 0 || base.IsAbsent(raw) {
		return all, nil
	}
	if raw[0]>>5 != 4 {
		return all, stored.Unmarshal(raw, &all)
	}
	var list []string
	err := stored.Unmarshal(raw, &list)
	for _, name := range list {
		all[name] = nil
	}
	return all, err
}

// ofNames is the reverse of namesIn, for a field that was a list or is one.
func ofNames(all map[string]cbor.RawMessage, list bool) (cbor.RawMessage, error) {
	switch {
	case len(all) == 0:
		return base.Absent, nil
	case list:
		return stored.Marshal(slices.Sorted(maps.Keys(all)))
	}
	return stored.Marshal(all)
}

// changedThings returns the things whose fields had other values in set than the record has now, sorted.
func changedThings(table map[uint64]field, set map[uint64]cbor.RawMessage, now []byte) ([]string, error) {
	is, err := base.Fields(now)
	found := map[string]bool{}
	for key, old := range set {
		f := table[key]
		if f.role == each && err == nil {
			err = changedNames(f.thing, old, is[key], found)
		} else if f.thing != "" {
			found[f.thing] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), err
}

// changedNames adds the things whose names differ between two values of a field of many.
func changedNames(kind string, old, is cbor.RawMessage, found map[string]bool) error {
	was, err := namesIn(old)
	if err != nil {
		return err
	}
	now, err := namesIn(is)
	for _, one := range []map[string]cbor.RawMessage{was, now} {
		for name := range one {
			before, had := was[name]
			after, has := now[name]
			if had != has || string(before) != string(after) {
				found[named(kind, name)] = true
			}
		}
	}
	return err
}

// restored returns the values that an undo of an operation gives to the fields of a record: set, but of a field of many names only those that the operation
// changed, beside what the record has now. on is the operation's subject whose record it is.
func restored(op *base.Operation, on pool.ID, table map[uint64]field, set map[uint64]cbor.RawMessage, now []byte) (map[uint64]cbor.RawMessage, error) {
	at := slices.IndexFunc(op.Chains, func(c base.Chain) bool { return c.Branch == on })
	if at < 0 || at >= len(op.Things) {
		return set, nil
	}
	is, err := base.Fields(now)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(set)
	for key, old := range set {
		if table[key].role != each {
			continue
		}
		if out[key], err = restoredNames(table[key].thing, op.Things[at], old, is[key]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// restoredNames gives those names of a field that are the things of a list the values that they had.
func restoredNames(kind string, list []string, old, is cbor.RawMessage) (cbor.RawMessage, error) {
	was, err := namesIn(old)
	if err != nil {
		return nil, err
	}
	now, err := namesIn(is)
	if err != nil {
		return nil, err
	}
	for _, one := range []map[string]cbor.RawMessage{maps.Clone(now), was} {
		for name := range one {
			if !slices.Contains(list, named(kind, name)) {
				continue
			}
			if before, had := was[name]; had {
				now[name] = before
			} else {
				delete(now, name)
			}
		}
	}
	return ofNames(now, slices.ContainsFunc([]cbor.RawMessage{old, is}, func(raw cbor.RawMessage) bool { return len(raw) > 0 && raw[0]>>5 == 4 }))
}

// settingsBack returns the settings of the store after an undo: those that the operation changed are as they were.
func settingsBack(op *base.Operation, old, is []byte) ([]byte, error) {
	at := slices.IndexFunc(op.Chains, func(c base.Chain) bool { return c.Branch == pool.ID{} })
	if at < 0 || at >= len(op.Things) {
		return old, nil
	}
	back, err := restoredNames(settingThings, op.Things[at], old, is)
	if err != nil || base.IsAbsent(back) {
		return nil, err
	}
	return back, nil
}

// listThings returns the list of things of the operation's record; nil if its changes tell them.
func (t *Txn) listThings(chains []base.Chain) ([][]string, error) {
	if onlyHistory(chains, t.changes) {
		return nil, nil
	}
	out := make([][]string, len(chains))
	for i, c := range chains {
		if l := t.Branches[c.Branch]; l != nil && l.created {
			out[i] = []string{allThings}
			continue
		}
		key, table, now, err := base.Under(t.ID), contextFields, []byte(nil), error(nil)
		if c.Branch == (pool.ID{}) {
			now, err = stored.Marshal(t.Rec)
		} else {
			key, table = branchstore.Key(t.ID, c.Branch), branchFields
			now, err = branchstore.Encode(t.Branches[c.Branch].Branch)
		}
		if err == nil {
			out[i], err = thingsOfRecord(t.changes, key, table, now)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// thingsOfRecord returns the things of the fields of a record that changes changed; never nil, so that a list of none is stored as one.
func thingsOfRecord(changes []base.Change, key []byte, table map[uint64]field, now []byte) ([]string, error) {
	out := []string{}
	for _, c := range changes {
		if c.Kind != base.FieldsChange || string(c.Key) != string(key) {
			continue
		}
		names, err := changedThings(table, c.Fields, now)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// listThings is the same of an operation of the store.
func (t *StoreTxn) listThings(chains []base.Chain) ([][]string, error) {
	out := make([][]string, len(chains))
	for i, c := range chains {
		at := slices.IndexFunc(t.Subjects, func(sub *Txn) bool { return sub.ID == c.Branch })
		var err error
		switch {
		case at < 0:
			out[i], err = t.settingThings()
		case len(t.Subjects[at].RecRaw) == 0: // it was made now
			out[i] = []string{allThings}
		default:
			var now []byte
			if now, err = stored.Marshal(t.Subjects[at].Rec); err == nil {
				out[i], err = thingsOfRecord(t.Changes, base.Under(c.Branch), contextFields, now)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// settingThings returns the settings of the store that the operation changed.
func (t *StoreTxn) settingThings() ([]string, error) {
	found := map[string]bool{}
	for _, c := range t.Changes {
		if !ofSettings(c) {
			continue
		}
		now, err := t.Tx.Get(c.Bucket, c.Key)
		if err == nil {
			err = changedNames(settingThings, c.Old, now, found)
		}
		if err != nil {
			return nil, fmt.Errorf("the settings of the store: %w", err)
		}
	}
	return slices.AppendSeq([]string{}, maps.Keys(found)), nil
}

// ofSettings reports whether a change is one of the settings of the store.
func ofSettings(c base.Change) bool {
	return c.Kind == base.RecordChange && c.Bucket == base.MetaBucket && string(c.Key) == string(base.MetaSettings)
}

// later returns the operations in force after operation n of a journal (zero: the store's) that changed a thing in common with op, newest first, by their
// numbers. With undos it includes the undos in force, which stand in the way of a redo.
func later(tx kv.Tx, id pool.ID, n uint64, op *base.Operation, undos bool) (numbers []uint64, ops []*base.Operation, err error) {
	r := base.NewestFirst(id)
	r.From = base.OperationKey(id, n+1)
	err = base.EachOperation(tx, r, func(m uint64, other *base.Operation) error {
		if other.Undone == 0 && other.What != redoWhat && (undos || other.Undoes == 0) && share(op, other) {
			numbers, ops = append(numbers, m), append(ops, other)
		}
		return nil
	})
	return numbers, ops, err
}

// mostNamed bounds how many operations an error names.
const mostNamed = 20

// inTheWay is the error for the operation named on, on which later ones stand, all of which it names by mark and number. of says whose they are, and after is the
// end of the commands that take them back.
func inTheWay(of, on string, op *base.Operation, numbers []uint64, ops []*base.Operation, mark, after string) error {
	words := make([]string, 0, mostNamed)
	for i, m := range numbers[:min(len(numbers), mostNamed)] {
		words = append(words, fmt.Sprintf("%s%d (%s)", mark, m, ops[i].What))
	}
	if more := len(numbers) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	one, stand, them := "operation ", "stands", "it back first"
	last := len(words) - 1
	list := words[last]
	if last > 0 {
		one, stand, them, list = "operations ", "stand", "them back first, the newest first", strings.Join(words[:last], ", ")+" and "+list
	}
	return base.Conflict("%s%s%s %s on %s (%s): take %s, chatctx undo %s%d%s", one, list, of, stand, on, op.What, them, mark, numbers[0], after)
}

// The operations in force on a subject are a list, from the newest one that its record names over Chain.Prev. Undo takes one out, and redo puts it back in its
// place.

// onSubject finds the chain of an operation that is about a subject.
func onSubject(op *base.Operation, subject pool.ID) *base.Chain {
	for i := range op.Chains {
		if op.Chains[i].Branch == subject {
			return &op.Chains[i]
		}
	}
	return nil
}

// over finds the operation in force that follows operation n, or the place of n, on a subject, of which top is the newest in force. above is nil if gc has
// removed it.
func over(tx kv.Tx, id, subject pool.ID, n, top uint64) (number uint64, above *base.Operation, link *base.Chain, err error) {
	for number = top; number > n; number = link.Prev {
		if above, err = base.GetOperation(tx, id, number); err != nil || above == nil {
			return 0, nil, nil, err
		}
		if link = onSubject(above, subject); link == nil {
			return 0, nil, nil, nil
		}
		if link.Prev <= n {
			return number, above, link, nil
		}
	}
	return 0, nil, nil, nil
}

// unlink takes operation n, of which c is a chain, from the list of its subject, of which top is the newest. It returns the newest one then.
func unlink(tx kv.RwTx, id pool.ID, c base.Chain, n, top uint64) (uint64, error) {
	if top == n {
		return c.Prev, nil
	}
	number, above, link, err := over(tx, id, c.Branch, n, top)
	if err != nil || above == nil || link.Prev != n {
		return top, err
	}
	link.Prev = c.Prev
	return top, base.PutRecord(tx, base.OperationBucket, base.OperationKey(id, number), above)
}

// relink puts operation n, of which c is a chain, back into the list. It sets c.Prev, which the caller stores.
func relink(tx kv.RwTx, id pool.ID, c *base.Chain, n, top uint64) (uint64, error) {
	if top < n {
		c.Prev = top
		return n, nil
	}
	number, above, link, err := over(tx, id, c.Branch, n, top)
	if err != nil || above == nil {
		return top, err
	}
	c.Prev, link.Prev = link.Prev, n
	return top, base.PutRecord(tx, base.OperationBucket, base.OperationKey(id, number), above)
}
