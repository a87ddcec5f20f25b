package care

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// invariant is a rule that every store keeps, about the store or about each conversation. Check runs find, repair runs find and then mend.
type invariant[T any] struct {
	name string
	// find reports each place where the rule does not hold, and changes nothing. It may use what the invariants before it have read.
	find func(T) error
	// mend makes the rule hold again, given the faults that find reported. It is nil where nothing tells what would be right.
	mend func(T, []fault) error
}

// The invariants, in the order in which they are looked at. docs/design.md has the numbers.
var (
	storeInvariants = []invariant[*inspection]{
		{"the newest change is in the file", findDoubt, mendDoubt},
		{"this program knows the format", findFormat, nil},
		{"an artifact hashes to its name", findArtifacts, mendArtifacts},
		{"the record of a conversation can be read", findConversations, mendConversations},
		{"a record belongs to a conversation", findStrays, mendStrays},
	}
	conversationInvariants = []invariant[*conversation]{
		{"a message can be read", findMessages, mendMessages},
		{"a message is in one conversation", findTwins, nil},
		{"the contents of a message are there", findContents, mendContents},
		{"the record of a branch can be read", findBranches, mendBranches},
		{"a history leads to messages", findHistories, mendHistories},
		{"a segment has one writer, at its end", findWriters, mendWriters},
		{"a prompt is there", findPrompts, mendPrompts},
		{"the summary of a session is there", findSummaries, mendSummaries},
		{"a conversation counts its branches, and one is active", findActive, mendActive},
		{"a conversation counts its messages", findCount, mendCount},
		{"a name leads to its branch", findNames, mendNames},
		{"the records of a conversation are as they were stored", findOwnRecords, mendOwnRecords},
		{"the journal leads to the present", findJournal, mendJournal},
		{"a waiting call has a record, and a record its call", findCalls, mendCalls},
		{"a running call has a claim, and no other call has one", findClaims, mendClaims},
		{"the record of a call fits its message", findCallFit, mendCallFit},
		{"the lists of calls have those that wait", findCallLists, mendCallLists},
		{"tags, marks and the queue name messages", findNamed, removeNamed},
		{"a task has a state and a parent", findTask, nil},
	}
	closingInvariants = []invariant[*inspection]{
		recentList.invariant("a conversation is in the list of recent ones"),
		labelList.invariant("a label leads to its conversations"),
		{"the list of open calls has calls that are open", findOpen, removeFound},
		{"the records of the store are as they were stored", findStoreRecords, removeFound},
		{"the store has an id", findStoreID, mendStoreID},
		{"the settings of the store can be read", findSettings, removeFound},
		{"the current conversation is there", findCurrent, removeFound},
		{"the store's journal goes on after its last operation", findStoreJournal, mendStoreJournal},
	}
)

// fault is one place where an invariant does not hold.
type fault struct {
	record.Problem
	bucket string // of the record that has to go, if that mends it
	key    []byte
	then   string // what its removal means
}

// inspection looks at a store in one transaction at a time.
type inspection struct {
	tx     kv.Tx
	rw     kv.RwTx // nil for a check
	full   bool    // the bytes of artifacts are read too
	store  *base.Store
	report func(record.Problem)

	faults  []fault // of the invariant that is looked at
	mended  []record.Mended
	ids     []pool.ID           // the conversations whose records can be read
	known   map[pool.ID]bool    // those that have a record
	homes   map[pool.ID]pool.ID // the conversation of each message
	there   map[pool.Hash]bool  // artifacts
	missing map[pool.Hash]bool  // those that were reported
}

func newInspection(s *base.Store, full bool, report func(record.Problem)) *inspection {
	return &inspection{store: s, full: full, report: report, homes: map[pool.ID]pool.ID{}, there: map[pool.Hash]bool{}, missing: map[pool.Hash]bool{}}
}

// fault reports that an invariant does not hold somewhere. It can be given the record that causes it.
func (in *inspection) fault(invariant int, where, format string, args ...any) *fault {
	in.faults = append(in.faults, fault{Problem: record.Problem{Invariant: invariant, Where: where, Text: fmt.Sprintf(format, args...)}})
	return &in.faults[len(in.faults)-1]
}

// causedBy names the record that causes a fault.
func (f *fault) causedBy(bucket string, key []byte) *fault {
	f.bucket, f.key, f.then = bucket, bytes.Clone(key), "it is removed"
	return f
}

func (in *inspection) say(invariant int, where, format string, args ...any) {
	in.mended = append(in.mended, record.Mended{Invariant: invariant, Where: where, Text: fmt.Sprintf(format, args...)})
}

// inspect looks at all invariants of a list.
func inspect[T any](in *inspection, list []invariant[T], of T) error {
	for _, v := range list {
		in.faults = nil
		err := v.find(of)
		found := in.faults
		if in.rw == nil {
			for _, f := range found {
				in.report(f.Problem)
			}
		} else if err == nil && len(found) > 0 && v.mend != nil {
			err = v.mend(of, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeFound removes the records that cause faults.
func removeFound(in *inspection, found []fault) error {
	for _, f := range found {
		if f.bucket == "" {
			continue
		}
		text := f.Text
		if why, is := strings.CutPrefix(text, kv.ErrDamaged.Error()+": "); is {
			text = "cannot be read (" + why + ")"
		}
		in.say(f.Invariant, f.Where, "%s: %s", text, f.then)
		if err := in.rw.Delete(f.bucket, f.key); err != nil {
			return err
		}
	}
	return nil
}

// conversation is what the invariants of a conversation have read of it.
type conversation struct {
	*inspection
	id       pool.ID
	where    string
	rec      *base.ContextRecord
	messages map[pool.ID]*pool.Message // without contents; nil for one that cannot be read
	lacking  []lacking
	branches []*branch.Branch
	lost     bool // a branch's record is gone: what no other branch holds may have been on it
	places   map[uint64][]place
	ends     map[uint64]uint64 // of the segments
	calls    []*storedCall
}

// inspect looks at one conversation. Repair stores what was changed of its branches and its own record.
func (in *inspection) inspect(id pool.ID) error {
	if in.rw == nil {
		if err := kv.Fetch(in.tx, recordsOf(id)...); err != nil {
			return err
		}
	}
	rec, _, err := base.GetContext(in.tx, id)
	if rec == nil || err != nil {
		return err
	}
	c := &conversation{inspection: in, id: id, where: "conversation " + id.String(), rec: rec}
	if err := inspect(in, conversationInvariants, c); err != nil || in.rw == nil {
		return err
	}
	return c.save()
}

// save stores the branches and the conversation's record as they were mended.
func (c *conversation) save() error {
	for segment := range c.ends {
		c.rec.NextSegment = max(c.rec.NextSegment, segment)
	}
	for _, b := range c.branches {
		for _, p := range b.Pieces {
			c.rec.NextSegment = max(c.rec.NextSegment, p.Segment)
		}
		if err := branchstore.Put(c.rw, c.id, b); err != nil {
			return err
		}
	}
	return base.PutRecord(c.rw, base.ContextBucket, c.id[:], c.rec)
}

// recordsOf names what is read of a conversation, so that a server is asked for all of it at once.
func recordsOf(id pool.ID) []kv.Key {
	keys := []kv.Key{{Bucket: base.ContextBucket, Key: id[:]}}
	for _, bucket := range OwnBuckets {
		keys = append(keys, kv.In(bucket, kv.Prefix(id[:])))
	}
	return keys
}

// Check reads the store, a conversation in each transaction, and calls problem for each fault by the invariants of docs/design.md. With full it also reads
// the search index and every artifact's bytes. It returns an error only if it cannot read on; a damaged store gives problems and no error.
func Check(ctx context.Context, s *base.Store, full bool, problem func(record.Problem)) error {
	in := newInspection(s, full, problem)
	file := func(format string, args ...any) {
		problem(record.Problem{Invariant: 0, Where: "file", Text: fmt.Sprintf(format, args...)})
	}
	// damage turns an ErrDamaged into a problem.
	damage := func(err error) error {
		if errors.Is(err, kv.ErrDamaged) {
			file("%v", err)
			return nil
		}
		return err
	}
	view := func(do func() error) error {
		return damage(s.DB.View(ctx, func(tx kv.Tx) error { in.tx = tx; return do() }))
	}
	if k, ok := s.Engine.(kv.Keeper); ok {
		if err := k.CheckPages(ctx, func(text string) { file("%s", text) }); err != nil {
			return damage(err)
		}
	}
	if err := view(func() error { return inspect(in, storeInvariants, in) }); err != nil {
		return err
	}
	for _, id := range in.ids {
		if err := view(func() error { return in.inspect(id) }); err != nil {
			return err
		}
	}
	if err := view(func() error { return inspect(in, closingInvariants, in) }); err != nil {
		return err
	}
	if full {
		if err := view(func() error { return inspect(in, searchInvariants, in) }); err != nil {
			return err
		}
	}
	due, err := PurgeDue(ctx, s)
	if due {
		problem(record.Problem{Invariant: 0, Where: "purge", Text: "it or a redaction was cut short: the bytes of what it took are still in the file, until a program opens the store to write (chatctx vacuum)"})
	}
	return damage(err)
}

// mend makes the invariants hold again, in one transaction.
func mend(ctx context.Context, s *base.Store, dry bool, out *record.Repaired) error {
	var in *inspection
	err := update(ctx, s, dry, func(tx kv.RwTx) error {
		in = newInspection(s, true, nil)
		in.tx, in.rw = tx, tx
		if err := inspect(in, storeInvariants, in); err != nil {
			return err
		}
		for _, id := range in.ids {
			if err := in.inspect(id); err != nil {
				return err
			}
		}
		return inspect(in, closingInvariants, in)
	})
	if in != nil {
		out.Mended = append(out.Mended, in.mended...)
	}
	return err
}
