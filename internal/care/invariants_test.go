package care_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// planting damages the store of newPlanting in one transaction. The first error ends it.
type planting struct {
	t     *testing.T
	tx    kv.RwTx
	c     pool.ID            // the conversation
	task  pool.ID            // its sub-context
	ids   []pool.ID          // the messages on main
	of    map[string]pool.ID // the branches
	names map[string]string  // ids as they are printed: what they stand for
	now   *time.Time
}

// newPlanting makes a store that has records of each kind, in a file or in memory.
func newPlanting(t *testing.T, path string) (*chatctx.Store, *planting) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	s := storetest.Open(t, path, chatctx.Options{Create: path != "", Program: "test", By: "ann", Clock: clock, Judge: approval.Rules{}})
	_, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"model": []byte(`"m-1"`)})
	must(err)
	_, err = s.PutTool(t.Context(), record.Tool{Name: "t", Description: "d", Schema: []byte(`{"type":"object"}`), Command: []string{"cat"}})
	must(err)
	_, err = s.AddRule(t.Context(), record.Rule{Effect: record.Ask, Tool: "w*", Reason: "r"})
	must(err)
	text := pool.NewText
	c, err := s.New(t.Context(), record.NewContext{Title: "First", System: "be short", Messages: []*pool.Message{text(pool.User, "one"), text(pool.Assistant, "two"), text(pool.User, "three")}})
	must(err)
	commit := func(steps func(b *chatctx.Batch)) {
		t.Helper()
		b := c.Begin("main")
		steps(b)
		_, err := b.Commit(t.Context())
		must(err)
	}
	call := func(id string) pool.Call { return pool.Call{ID: id, Tool: "t", Arguments: []byte(`{}`)} }
	commit(func(b *chatctx.Batch) {
		b.Append(&pool.Message{Role: pool.Assistant, Calls: []pool.Call{call("answered"), call("waits"), call("runs")}})
		b.Append(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "answered", Text: strings.Repeat("result ", 2000)}})
	})
	commit(func(b *chatctx.Batch) {
		b.Tag("best", "@2")
		b.Mark("@1", "pinned")
		b.Label("work")
		summary := text(pool.User, "what was before")
		b.PutLoose(summary)
		b.SetSessions([]branch.Session{{Start: 3, Summary: summary.ID}})
		b.AddRule(record.Rule{Effect: record.Ask, Tool: "here", Reason: "r"}, record.RuleScope{})
		b.PutTool(record.Tool{Name: "mine", Command: []string{"cat"}})
		b.Decide("runs", record.Verdict{Status: pool.Approved, Reason: "fine"})
	})
	commit(func(b *chatctx.Batch) { b.Fork("side", chatctx.ForkOptions{At: "@2", Stay: true}) })
	commit(func(b *chatctx.Batch) { b.Fork("gone", chatctx.ForkOptions{At: "@2", Stay: true}) })
	commit(func(b *chatctx.Batch) { b.RemoveBranch("gone") })
	_, err = c.Append(t.Context(), "side", text(pool.Assistant, "another way"), text(pool.User, "and on"))
	must(err)
	_, err = s.ClaimCall(t.Context(), c.ID.String(), "main", "runs", record.ClaimOptions{Hold: time.Hour})
	must(err)
	commit(func(b *chatctx.Batch) { b.AppendWith(chatctx.AppendOptions{Key: "once"}, text(pool.Assistant, "five")) })
	_, err = s.Use(t.Context(), c.ID.String())
	must(err)
	task, err := c.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Title: "task", Messages: []*pool.Message{text(pool.User, "do it")}}})
	must(err)
	in := &record.Incoming{Format: "f", Conversation: "there", Title: "Imported", Updated: 1000, Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}},
		Nodes: []record.Node{{ID: "n", Message: text(pool.User, "from elsewhere")}}}
	_, err = s.Import(t.Context(), []*record.Incoming{in})
	must(err)
	must(s.Maintenance().Index(t.Context(), nil))
	p := &planting{t: t, now: &now, c: c.ID, task: task.ID, of: map[string]pool.ID{}, names: map[string]string{}}
	must(base.Of(s).DB.View(t.Context(), p.nameAll))
	return s, p
}

// nameAll gives the ids of the store names that are the same in each run.
func (p *planting) nameAll(tx kv.Tx) error {
	name := func(id pool.ID, as string) {
		if _, has := p.names[id.String()]; !has {
			p.names[id.String()], p.names[fmt.Sprintf("%x", id[:])] = as, as
		}
	}
	name(p.c, "CONVERSATION")
	name(p.task, "TASK")
	p.names[fmt.Sprintf("%x", p.c[:9])] = "HALF" // of the conversation's
	err := branchstore.List(tx, p.c, func(b *branch.Branch) error {
		p.of[b.Name] = b.ID
		name(b.ID, "BRANCH-"+strings.ToUpper(b.Name))
		if b.Name == "main" {
			ids, err := branchstore.IDs(tx, p.c, b.Pieces)
			p.ids = ids
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, id := range p.ids {
		name(id, fmt.Sprint("MESSAGE-", i+1))
	}
	n := 0
	return tx.Scan(base.ContextBucket, kv.Range{}, func(key, _ []byte) error {
		n++
		name(pool.ID(key), fmt.Sprint("OTHER-", n))
		return nil
	})
}

func (p *planting) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// keys returns the keys of a bucket that begin with a prefix. There is one.
func (p *planting) keys(bucket string, prefix []byte) [][]byte {
	p.t.Helper()
	keys, err := view.KeysWith(p.tx, bucket, prefix)
	if p.must(err); len(keys) == 0 {
		p.t.Fatalf("the bucket %s has no such record", bucket)
	}
	return keys
}

func (p *planting) get(bucket string, key []byte) []byte {
	p.t.Helper()
	value, err := p.tx.Get(bucket, key)
	if p.must(err); value == nil {
		p.t.Fatalf("the bucket %s has no key %x", bucket, key)
	}
	return slices.Clone(value)
}

func (p *planting) put(bucket string, key, value []byte) {
	p.t.Helper()
	p.must(p.tx.Put(bucket, key, value))
}

func (p *planting) remove(bucket string, key []byte) {
	p.t.Helper()
	p.get(bucket, key)
	p.must(p.tx.Delete(bucket, key))
}

// flip changes a bit in the last byte of a record.
func (p *planting) flip(bucket string, key []byte) {
	p.t.Helper()
	value := p.get(bucket, key)
	value[len(value)-1] ^= 1
	p.put(bucket, key, value)
}

// record changes the conversation's record.
func (p *planting) record(change func(rec *base.ContextRecord)) {
	p.t.Helper()
	rec, _, err := base.GetContext(p.tx, p.c)
	p.must(err)
	change(rec)
	p.must(base.PutRecord(p.tx, base.ContextBucket, p.c[:], rec))
}

// branch changes the record of a branch.
func (p *planting) branch(name string, change func(b *branch.Branch)) {
	p.t.Helper()
	b, err := branchstore.Get(p.tx, p.c, p.of[name])
	p.must(err)
	change(b)
	p.must(branchstore.Put(p.tx, p.c, b))
}

// call changes the record of a call of the fourth message.
func (p *planting) call(index int, change func(rec *record.CallRecord)) {
	p.t.Helper()
	key := p.callKey(index)
	rec, err := base.DecodeCall(key, p.get(base.CallBucket, key))
	p.must(err)
	change(rec)
	p.must(base.PutRecord(p.tx, base.CallBucket, key, rec))
}

func (p *planting) callKey(index int) []byte { return base.CallKey(p.c, p.ids[3], index) }

// operation changes the newest operation of the conversation.
func (p *planting) operation(change func(op *base.Operation)) {
	p.t.Helper()
	key := slices.MaxFunc(p.keys(base.OperationBucket, p.c[:]), slices.Compare)
	op, err := base.GetOperation(p.tx, p.c, binary.BigEndian.Uint64(key[16:]))
	p.must(err)
	change(op)
	p.must(base.PutRecord(p.tx, base.OperationBucket, key, op))
}

// message changes a message of main.
func (p *planting) message(i int, change func(m *pool.Message)) {
	p.t.Helper()
	key := base.Under(p.c, p.ids[i][:]...)
	m := &pool.Message{}
	p.must(poolstore.Decode(p.get(poolstore.Bucket, key), m))
	change(m)
	raw, err := poolstore.Encode(m)
	p.must(err)
	p.put(poolstore.Bucket, key, raw)
}

// entry changes the entry of a message of main. An empty one is removed.
func (p *planting) entry(i int, change func(value []byte) []byte) {
	p.t.Helper()
	for _, key := range p.keys(branchstore.EntryBucket, p.c[:]) {
		if value := p.get(branchstore.EntryBucket, key); pool.ID(value[:16]) == p.ids[i] {
			if value = change(value); value == nil {
				p.remove(branchstore.EntryBucket, key)
			} else {
				p.put(branchstore.EntryBucket, key, value)
			}
			return
		}
	}
	p.t.Fatal("the message has no entry")
}

// someID is an id that nothing has.
var someID = pool.ID{0: 0x7f, 6: 0x70, 8: 0x80, 15: 1}

// damages are what breaks each invariant, by its number.
var damages = []struct {
	invariant int
	what      string
	plant     func(p *planting)
}{
	{0, "a conversation has a key of another length", func(p *planting) { p.put(base.ContextBucket, p.c[:9], p.get(base.ContextBucket, p.c[:])) }},
	{0, "the record of a conversation is damaged", func(p *planting) { p.flip(base.ContextBucket, p.c[:]) }},
	{0, "the newest change may be lost", func(p *planting) { p.put(base.MetaBucket, base.MetaDoubt, []byte{1}) }},

	{1, "a message is damaged", func(p *planting) { p.flip(poolstore.Bucket, base.Under(p.c, p.ids[1][:]...)) }},
	{1, "a message on a later place is missing", func(p *planting) { p.remove(poolstore.Bucket, base.Under(p.c, p.ids[5][:]...)) }},
	{1, "a message has the key of another", func(p *planting) {
		p.put(poolstore.Bucket, base.Under(p.c, someID[:]...), p.get(poolstore.Bucket, base.Under(p.c, p.ids[1][:]...)))
	}},
	{1, "a message has a key that is none", func(p *planting) { p.put(poolstore.Bucket, base.Under(p.c, 1), []byte("x")) }},
	{1, "an entry names a message that is not there", func(p *planting) {
		p.entry(1, func(v []byte) []byte { return append(slices.Clone(someID[:]), v[16:]...) })
	}},
	{1, "an entry is cut short", func(p *planting) { p.entry(1, func(v []byte) []byte { return v[:16] }) }},
	{1, "the conversation counts another number of messages", func(p *planting) { p.record(func(rec *base.ContextRecord) { rec.Messages += 2 }) }},
	{1, "the summary of a session is missing", func(p *planting) {
		b, err := branchstore.Get(p.tx, p.c, p.of["main"])
		p.must(err)
		p.remove(poolstore.Bucket, base.Under(p.c, b.Sessions[len(b.Sessions)-1].Summary[:]...))
	}},

	{2, "an entry is missing", func(p *planting) { p.entry(1, func([]byte) []byte { return nil }) }},
	{2, "the last entry is missing", func(p *planting) { p.entry(5, func([]byte) []byte { return nil }) }},
	{2, "an entry has a key that is none", func(p *planting) { p.put(branchstore.EntryBucket, p.c[:], []byte("x")) }},
	{2, "an entry counts another number of turns", func(p *planting) { p.entry(2, func(v []byte) []byte { return append(v[:16], 7) }) }},
	{2, "an entry has no count of turns", func(p *planting) { p.entry(2, func(v []byte) []byte { return append(v[:16], 0x80) }) }},
	{2, "a piece is longer than its segment", func(p *planting) { p.branch("side", func(b *branch.Branch) { b.Pieces[len(b.Pieces)-1].To += 3 }) }},
	{2, "a piece has nothing in it", func(p *planting) {
		p.branch("side", func(b *branch.Branch) { b.Pieces = append(b.Pieces, branch.Piece{Segment: 1, From: 2, To: 2}) })
	}},
	{2, "two branches write to one segment", func(p *planting) {
		p.branch("main", func(main *branch.Branch) {
			p.branch("side", func(b *branch.Branch) { b.Segment, b.High = main.Segment, main.High })
		})
	}},
	{2, "a branch writes before the end of its segment", func(p *planting) { p.branch("main", func(b *branch.Branch) { b.High-- }) }},

	{3, "the conversation is missing in the list", func(p *planting) { p.remove(base.RecentBucket, p.recentKey()) }},
	{3, "the list has a key that is none", func(p *planting) { p.put(base.RecentBucket, []byte("x"), []byte{}) }},
	{3, "the list has another time", func(p *planting) { p.put(base.RecentBucket, base.RecentKey(1, p.c), []byte{}) }},
	{3, "the list has a value", func(p *planting) { p.put(base.RecentBucket, p.recentKey(), []byte{1}) }},
	{3, "a branch has a key of another length", func(p *planting) { p.put(branchstore.Bucket, base.Under(p.c, 1, 2, 3), []byte("x")) }},
	{3, "the record of a branch is damaged", func(p *planting) { p.flip(branchstore.Bucket, branchstore.Key(p.c, p.of["side"])) }},
	{3, "the record of a branch is missing", func(p *planting) { p.remove(branchstore.Bucket, branchstore.Key(p.c, p.of["side"])) }},
	{3, "the active branch is not there", func(p *planting) { p.record(func(rec *base.ContextRecord) { rec.Active = someID }) }},
	{3, "the conversation counts another number of branches", func(p *planting) { p.record(func(rec *base.ContextRecord) { rec.Branches++ }) }},
	{3, "a prompt is missing", func(p *planting) { p.remove(branchstore.PromptBucket, p.keys(branchstore.PromptBucket, p.c[:])[0]) }},
	{3, "a prompt has another text", func(p *planting) { p.flip(branchstore.PromptBucket, p.keys(branchstore.PromptBucket, p.c[:])[0]) }},
	{3, "a rule is damaged", func(p *planting) { p.flip(base.RuleBucket, p.keys(base.RuleBucket, p.c[:])[0]) }},
	{3, "a rule of the store is damaged", func(p *planting) { p.flip(base.RuleBucket, p.keys(base.RuleBucket, make([]byte, 16))[0]) }},
	{3, "a tool is damaged", func(p *planting) { p.flip(base.ToolBucket, p.keys(base.ToolBucket, p.c[:])[0]) }},
	{3, "a tool of the store is damaged", func(p *planting) { p.flip(base.ToolBucket, p.keys(base.ToolBucket, make([]byte, 16))[0]) }},
	{3, "the record of an idempotency key is damaged", func(p *planting) { p.flip(base.KeyBucket, p.keys(base.KeyBucket, p.c[:])[0]) }},
	{3, "a tag names a message that is not there", func(p *planting) { p.put(base.TagBucket, base.Under(p.c, []byte("old")...), someID[:]) }},
	{3, "a tag names nothing", func(p *planting) { p.put(base.TagBucket, base.Under(p.c, []byte("old")...), []byte("x")) }},
	{3, "a mark names a message that is not there", func(p *planting) { p.put(base.MarkBucket, base.Under(p.c, someID[:]...), []byte("pinned")) }},
	{3, "a waiting message is not there", func(p *planting) { p.put(base.QueuedBucket, base.Under(p.c, make([]byte, 24)...), someID[:]) }},
	{3, "a node of an import is damaged", func(p *planting) { p.put(base.SourceBucket, []byte("f\x00there\x00m"), []byte("x")) }},
	{3, "a token of the server is damaged", func(p *planting) { p.put(base.TokenBucket, make([]byte, 32), []byte("x")) }},
	{3, "the settings are damaged", func(p *planting) { p.put(base.MetaBucket, base.MetaSettings, []byte("x")) }},
	{3, "the current conversation is not there", func(p *planting) { p.put(base.MetaBucket, base.MetaCurrent, someID[:]) }},
	{3, "the current conversation is no id", func(p *planting) { p.put(base.MetaBucket, base.MetaCurrent, []byte("x")) }},
	{3, "the record of a conversation is missing", func(p *planting) { p.remove(base.ContextBucket, p.task[:]) }},
	{3, "a record belongs to no conversation", func(p *planting) { p.put(base.CountBucket, base.Under(someID, 1), []byte("x")) }},
	{3, "a record has a key without a conversation", func(p *planting) { p.put(base.CountBucket, []byte("x"), []byte("x")) }},

	{4, "a message is in two conversations", func(p *planting) {
		p.put(poolstore.Bucket, base.Under(p.task, p.ids[1][:]...), p.get(poolstore.Bucket, base.Under(p.c, p.ids[1][:]...)))
	}},
	{3, "a message is in no conversation, too", func(p *planting) {
		p.put(poolstore.Bucket, base.Under(someID, p.ids[1][:]...), p.get(poolstore.Bucket, base.Under(p.c, p.ids[1][:]...)))
	}},
	{1, "a message is in another conversation that is not there", func(p *planting) {
		key := base.Under(p.c, p.ids[1][:]...)
		p.put(poolstore.Bucket, base.Under(someID, p.ids[1][:]...), p.get(poolstore.Bucket, key))
		p.remove(poolstore.Bucket, key)
	}},

	{5, "the record of a waiting call is missing", func(p *planting) { p.remove(base.CallBucket, p.callKey(1)) }},
	{5, "the record of an answered call is missing", func(p *planting) { p.remove(base.CallBucket, p.callKey(0)) }},
	{5, "the record of a call is damaged", func(p *planting) { p.flip(base.CallBucket, p.callKey(0)) }},
	{5, "a call has a key that is none", func(p *planting) { p.put(base.CallBucket, base.Under(p.c, 1), p.get(base.CallBucket, p.callKey(1))) }},
	{5, "a claim has no call", func(p *planting) { p.put(base.ClaimBucket, p.callKey(8), p.get(base.ClaimBucket, p.callKey(2))) }},
	{5, "the message has no such call", func(p *planting) { p.put(base.CallBucket, p.callKey(9), p.get(base.CallBucket, p.callKey(1))) }},
	{5, "a call is not in the list of open calls", func(p *planting) { p.remove(base.OpenBucket, p.openKey(1)) }},
	{5, "a call is listed as open at another place", func(p *planting) { p.put(base.OpenBucket, p.openKey(1), base.HomeBytes(pool.Home{Segment: 9})) }},
	{5, "an answered call is in the list of open calls", func(p *planting) { p.put(base.OpenBucket, p.openKey(0), base.HomeBytes(p.home(0))) }},
	{5, "the list of open calls has a key that is none", func(p *planting) { p.put(base.OpenBucket, []byte("x"), nil) }},
	{5, "the list of open calls has a call without a record", func(p *planting) {
		p.put(base.OpenBucket, base.OpenKey(&record.CallRecord{}, p.c, someID, 1), base.HomeBytes(p.home(0)))
	}},
	{5, "a waiting call is not among the unanswered", func(p *planting) { p.remove(base.UnansweredBucket, base.UnansweredKey(p.c, p.home(1), 1)) }},
	{5, "an answered call is among the unanswered", func(p *planting) {
		p.put(base.UnansweredBucket, base.UnansweredKey(p.c, p.home(0), 0), append(slices.Clone(p.ids[3][:]), "answered"...))
	}},
	{5, "the unanswered have a key that is none", func(p *planting) { p.put(base.UnansweredBucket, base.Under(p.c, 1), p.ids[3][:]) }},
	{5, "the unanswered have a call by another id", func(p *planting) {
		p.put(base.UnansweredBucket, base.UnansweredKey(p.c, p.home(1), 1), append(slices.Clone(p.ids[3][:]), "other"...))
	}},
	{5, "the unanswered name a message that is not there", func(p *planting) {
		p.put(base.UnansweredBucket, base.UnansweredKey(p.c, pool.Home{Segment: 8}, 1), append(slices.Clone(someID[:]), "other"...))
	}},
	{5, "a call is not found by its id", func(p *planting) { p.remove(base.CallIDBucket, base.CallIDKey(p.c, "waits", p.callKey(1)[16:]...)) }},
	{5, "an id leads to a call without a record", func(p *planting) {
		p.put(base.CallIDBucket, base.CallIDKey(p.c, "waits", p.callKey(7)[16:]...), []byte{})
	}},
	{5, "the index of ids has a key that is none", func(p *planting) { p.put(base.CallIDBucket, base.Under(p.c, 1), []byte{}) }},
	{5, "a running call has no claim", func(p *planting) { p.remove(base.ClaimBucket, p.callKey(2)) }},
	{5, "a waiting call has a claim", func(p *planting) { p.put(base.ClaimBucket, p.callKey(1), p.get(base.ClaimBucket, p.callKey(2))) }},
	{3, "a claim is damaged", func(p *planting) { p.flip(base.ClaimBucket, p.callKey(2)) }},
	{5, "a step of a call leads elsewhere", func(p *planting) { p.call(2, func(rec *record.CallRecord) { rec.Decisions[0].To = "denied/none" }) }},
	{5, "the result of a waiting call waits for a branch", func(p *planting) { p.call(1, func(rec *record.CallRecord) { rec.Result = p.ids[4] }) }},
	{5, "a call stands elsewhere", func(p *planting) { p.call(1, func(rec *record.CallRecord) { rec.Home.Position++ }) }},

	{6, "an artifact is missing", func(p *planting) {
		h := p.artifact()
		p.must(poolstore.DeleteArtifact(p.tx, h))
	}},
	{6, "the header of an artifact is damaged", func(p *planting) { h := p.artifact(); p.put(poolstore.ArtifactBucket, h[:], []byte("x")) }},
	{6, "the bytes of an artifact are others", func(p *planting) {
		h := p.artifact()
		p.flip(poolstore.ArtifactBucket, p.keys(poolstore.ArtifactBucket, h[:])[1])
	}},
	{6, "an artifact has a key that is none", func(p *planting) { p.put(poolstore.ArtifactBucket, []byte("x"), []byte("x")) }},
	{6, "an artifact has no header", func(p *planting) { h := p.artifact(); p.remove(poolstore.ArtifactBucket, h[:]) }},

	{3, "an operation is damaged", func(p *planting) { p.flip(base.OperationBucket, base.OperationKey(p.c, 1)) }},
	{3, "an operation has a key that is none", func(p *planting) {
		p.put(base.OperationBucket, base.Under(p.c, 1), p.get(base.OperationBucket, base.OperationKey(p.c, 1)))
	}},
	{7, "the journal goes back", func(p *planting) { p.record(func(rec *base.ContextRecord) { rec.NextOperation = 2 }) }},
	{7, "the newest operation is missing", func(p *planting) {
		p.remove(base.OperationBucket, slices.MaxFunc(p.keys(base.OperationBucket, p.c[:]), slices.Compare))
	}},
	{7, "the newest operation is damaged", func(p *planting) {
		p.flip(base.OperationBucket, slices.MaxFunc(p.keys(base.OperationBucket, p.c[:]), slices.Compare))
	}},
	{7, "the newest operation is about another branch", func(p *planting) { p.operation(func(op *base.Operation) { op.Chains[0].Branch = p.of["side"] }) }},
	{7, "a branch is at another revision", func(p *planting) { p.branch("main", func(b *branch.Branch) { b.Revision++ }) }},
	{7, "a branch is at an earlier revision", func(p *planting) { p.branch("main", func(b *branch.Branch) { b.Revision-- }) }},
	{7, "the conversation is at another revision", func(p *planting) { p.record(func(rec *base.ContextRecord) { rec.Revision++ }) }},
	{7, "an operation is about a branch that is lost", func(p *planting) {
		p.operation(func(op *base.Operation) { op.Chains = append(op.Chains, base.Chain{Name: "lost", Branch: someID}) })
	}},
	{3, "an operation of the store is damaged", func(p *planting) { p.flip(base.OperationBucket, base.OperationKey(pool.ID{}, 1)) }},
	{7, "the journal of the store goes back", func(p *planting) {
		p.must(base.PutRecord(p.tx, base.MetaBucket, base.MetaJournal, &base.ContextRecord{NextOperation: 1}))
	}},
	{7, "the journal of the store is damaged", func(p *planting) { p.put(base.MetaBucket, base.MetaJournal, []byte("x")) }},

	{8, "the state of a task is unknown", func(p *planting) {
		rec, _, err := base.GetContext(p.tx, p.task)
		p.must(err)
		rec.Task.State = "lost"
		p.must(base.PutRecord(p.tx, base.ContextBucket, p.task[:], rec))
	}},

	{9, "the id of the store is too short", func(p *planting) { p.put(base.MetaBucket, base.MetaStore, []byte("x")) }},
	{9, "the store has no id", func(p *planting) { p.remove(base.MetaBucket, base.MetaStore) }},

	{10, "the state of the search index is damaged", func(p *planting) { p.flip(index.TermBucket, p.keys(index.TermBucket, nil)[0]) }},
	{10, "a block of documents is missing", func(p *planting) { p.remove(index.DocBucket, p.keys(index.DocBucket, nil)[0]) }},
	{10, "a message is not in the search index", func(p *planting) { p.message(1, func(m *pool.Message) { m.ID = someID; p.putMessage(m) }) }},
	{10, "a title is not in the search index", func(p *planting) {
		id := someID
		rec, _, err := base.GetContext(p.tx, p.c)
		p.must(err)
		p.must(base.PutRecord(p.tx, base.ContextBucket, id[:], &base.ContextRecord{Title: rec.Title, Active: id, Branches: 1}))
		p.must(p.tx.Put(base.RecentBucket, base.RecentKey(0, id), []byte{}))
		p.must(branchstore.Put(p.tx, id, &branch.Branch{ID: id, Name: "main"}))
		p.must(branchstore.PutName(p.tx, id, "main", id))
	}},

	{11, "a name leads to another branch", func(p *planting) {
		id := p.of["side"]
		p.put(branchstore.NameBucket, base.Under(p.c, []byte("main")...), id[:])
	}},
	{11, "a name leads to no branch", func(p *planting) { p.put(branchstore.NameBucket, base.Under(p.c, []byte("old")...), []byte("x")) }},
	{11, "a name is missing", func(p *planting) { p.remove(branchstore.NameBucket, base.Under(p.c, []byte("side")...)) }},
	{11, "two branches have one name", func(p *planting) { p.branch("side", func(b *branch.Branch) { b.Name = "main" }) }},

	{12, "a label leads to no conversation", func(p *planting) { p.put(base.LabelBucket, []byte("junk"), []byte{}) }},
	{12, "a label leads to a conversation that does not have it", func(p *planting) { p.put(base.LabelBucket, base.LabelKey("stray", p.c), []byte{}) }},
	{12, "a conversation is not found by its label", func(p *planting) { p.remove(base.LabelBucket, base.LabelKey("work", p.c)) }},
}

// recentKey returns the conversation's key in the list of recent ones.
func (p *planting) recentKey() []byte {
	p.t.Helper()
	rec, _, err := base.GetContext(p.tx, p.c)
	p.must(err)
	return base.RecentKey(rec.ListedAt(), p.c)
}

func (p *planting) openKey(index int) (key []byte) {
	p.t.Helper()
	p.call(index, func(rec *record.CallRecord) { key = base.OpenKey(rec, p.c, p.ids[3], index) })
	return key
}

// home returns where the message of a call stands.
func (p *planting) home(index int) (home pool.Home) {
	p.t.Helper()
	p.call(index, func(rec *record.CallRecord) { home = rec.Home })
	return home
}

// artifact returns the contents of the result.
func (p *planting) artifact() (h pool.Hash) {
	p.t.Helper()
	p.message(4, func(m *pool.Message) { h = poolstore.Artifacts(m)[0] })
	return h
}

// putMessage stores a message beside the others of the conversation.
func (p *planting) putMessage(m *pool.Message) {
	p.t.Helper()
	raw, err := poolstore.Encode(m)
	p.must(err)
	p.put(poolstore.Bucket, base.Under(p.c, m.ID[:]...), raw)
	p.record(func(rec *base.ContextRecord) { rec.Messages++ })
	m.ID = p.ids[1]
}

// printedID finds the ids that have no name, as text and as bytes.
var printedID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|01[0-9a-f]{10}7[0-9a-f]{3}[89ab][0-9a-f]{15}`)

// plain writes what was found or mended, with names in the place of ids.
func (p *planting) plain(what string, invariant int, where, text string) string {
	line := fmt.Sprintf("%s %d %s: %s", what, invariant, where, text)
	for _, id := range slices.SortedFunc(maps.Keys(p.names), func(a, b string) int { return len(b) - len(a) }) {
		line = strings.ReplaceAll(line, id, p.names[id])
	}
	return printedID.ReplaceAllString(line, "ID")
}

// TestPlantedDamages plants each damage in a store of its own: check finds it, repair says before and after what it does, and a check finds nothing then.
func TestPlantedDamages(t *testing.T) {
	const golden = "testdata/damages.txt"
	var out strings.Builder
	planted := map[string]bool{}
	for _, d := range damages {
		fmt.Fprintf(&out, "\n# %d: %s\n", d.invariant, d.what)
		t.Run(fmt.Sprint(d.invariant, " ", d.what), func(t *testing.T) {
			s, p := newPlanting(t, "")
			at := base.Of(s)
			if err := at.DB.Update(t.Context(), func(tx kv.RwTx) error { p.tx = tx; d.plant(p); return nil }); err != nil {
				t.Fatal(err)
			}
			broken, err := care.FoundBy(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(broken)) {
				if planted[name] = planted[name] || broken[name]; broken[name] {
					fmt.Fprintln(&out, "broken:", name)
				}
			}
			for _, line := range p.repair(at, d.invariant) {
				fmt.Fprintln(&out, line)
			}
			if d.invariant == 4 || d.invariant == 8 { // nothing tells which of the two is right
				p.undo(s)
			}
		})
	}
	for name, is := range planted {
		if !is && name != "this program knows the format" { // a store of another format is not opened
			t.Errorf("no damage is planted against the invariant: %s", name)
		}
	}
	storetest.Golden(t, golden, out.String(), *update)
}

// undo takes a damage back that repair leaves, so that the last check of the store finds none.
func (p *planting) undo(s *chatctx.Store) {
	err := base.Of(s).DB.Update(p.t.Context(), func(tx kv.RwTx) error {
		if err := tx.Delete(poolstore.Bucket, base.Under(p.task, p.ids[1][:]...)); err != nil {
			return err
		}
		rec, _, err := base.GetContext(tx, p.task)
		if err == nil && rec != nil {
			rec.Messages, rec.Task.State = 1, record.TaskRunning
			err = base.PutRecord(tx, base.ContextBucket, p.task[:], rec)
		}
		return err
	})
	p.must(err)
}

// repair checks and repairs a store, and returns in lines what was found, mended and left.
func (p *planting) repair(s *base.Store, invariant int) []string {
	t := p.t
	found, err := care.Problems(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found, func(p record.Problem) bool { return p.Invariant == invariant }) {
		t.Errorf("no problem has the invariant's number: %v", found)
	}
	plan, err := care.Repair(context.Background(), s, record.RepairOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	done, err := care.Repair(context.Background(), s, record.RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range found {
		lines = append(lines, p.plain("found", f.Invariant, f.Where, f.Text))
	}
	planned := mendedLines(p, plan.Mended)
	mended := mendedLines(p, done.Mended)
	if !slices.Equal(planned, mended) {
		t.Errorf("the dry run says %q, the repair %q", planned, mended)
	}
	lines = append(lines, mended...)
	for _, f := range done.Left {
		lines = append(lines, p.plain("left", f.Invariant, f.Where, f.Text))
	}
	slices.Sort(lines) // check and repair go over maps
	return lines
}

func mendedLines(p *planting, all []record.Mended) (lines []string) {
	for _, m := range all {
		lines = append(lines, p.plain("mended", m.Invariant, m.Where, m.Text))
	}
	slices.Sort(lines)
	return lines
}
