package toolcall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// The calls of other programs' agents. A hook brings each call before it runs (Ensure), waits while nobody has decided (Collect), and says what became of
// it (Close). Each is one transaction. What it writes is on the journal, and undo passes over it.

// Asked is a call that an agent's hook brings.
type Asked struct {
	record.Gate        // what the hook knows; Hash, Ordinal and Waiter are filled in
	Mode        string // of the gate: record, rules, hold
	CallID      string // the provider's; "": the agent's hook has none
	Tool        string
	Arguments   json.RawMessage
	PID         int           // who waits; 0: this process, -1: none that is known
	AgentPID    int           // who runs the call once it is let; 0: unknown
	Wait        time.Duration // how long the waiter's lease lasts
	Token       pool.ID       // of an answer "allow" that the same waiter had for this call
}

// The answers to a hook.
const (
	SayAllow = "allow"
	SayDeny  = "deny"
	SayLeft  = "left" // the agent decides, as it would without a gate
	SayWait  = "wait" // nobody has decided yet
)

// Said is what a hook is told of its call.
type Said struct {
	Say    string
	Reason string // of a denial
	Call   *record.Call
	Ruling *record.Ruling // nil unless rules were asked
	Token  pool.ID        // of SayAllow
	New    bool           // the call was not known
	// Changed: the provider's id was known with other arguments, which no agent does by itself.
	Changed bool
	// Past: the call ran without an answer from here.
	Past bool
}

// Conversation names the session's conversation as its importer does.
func (a *Asked) Conversation() string {
	switch {
	case a.SubAgent == "":
		return a.Session
	case a.Agent == "claude-code":
		return a.Session + "/agent-" + a.SubAgent
	}
	return a.SubAgent
}

// hashed returns what tells equal calls of agents without ids apart from others.
func (a *Asked) hashed() string { return base.HookID(a.Tool, a.Hash) }

// gating is a transaction about a call of an agent's hook.
type gating struct {
	t    *journal.Txn
	in   *Asked
	at   *callAt
	said *Said
}

// Ensure stores a call before it runs, or finds it, lets the rules decide about it, and says what the hook is to answer. A call is let once: of a call that
// was let, any later answer is a denial.
func Ensure(ctx context.Context, s *base.Store, in *Asked) (*Said, error) {
	var said *Said
	m, err := in.ready(s)
	if err != nil {
		return nil, err
	}
	id := base.SourceContext(in.Agent, in.Conversation())
	err = s.Update(view.Lane(base.AsGate(ctx), s, id), func(tx kv.RwTx) error {
		g := &gating{in: in, said: &Said{}}
		said = g.said
		copied := *m
		if err := g.begin(s, tx); err != nil {
			return err
		}
		if err := g.find(); err != nil {
			return err
		}
		if g.at == nil {
			if err := g.put(&copied); err != nil {
				return err
			}
		}
		if err := g.answer(); err != nil {
			return err
		}
		return g.finish()
	})
	return said, err
}

// ready checks a call and returns the message that holds it.
func (a *Asked) ready(s *base.Store) (*pool.Message, error) {
	switch {
	case a.Agent == "" || a.Session == "" || a.Tool == "":
		return nil, base.Invalid("a call needs its agent, its session and its tool")
	case !slices.Contains([]string{record.GateRecord, record.GateRules, record.GateHold}, a.Mode):
		return nil, base.Invalid("the mode %q is none of record, rules, hold", a.Mode)
	}
	a.Hash = sha256.Sum256(jsontree.Canonical(a.Arguments))
	m := &pool.Message{Role: pool.Assistant, Kind: poolstore.GatedKind, Hidden: true, Unsent: true, Calls: []pool.Call{{ID: cmp.Or(a.CallID, "hook"), Tool: a.Tool, Arguments: a.Arguments}}}
	return m, s.Ready([]*pool.Message{m})
}

// begin opens the session's conversation, and makes it if there is none.
func (g *gating) begin(s *base.Store, tx kv.RwTx) error {
	id, err := g.conversation(s, tx, g.in.Conversation())
	if err != nil {
		return err
	}
	if g.t, err = journal.BeginAt(s, tx, id); err == nil {
		g.t.What, g.t.Final = "gate", true
		if g.t.Rec.Gated == "" {
			g.t.Rec.Gated = cmp.Or(g.in.Level, record.LevelOwn)
			err = cmp.Or(base.MarkGated(tx, g.t.Now, g.in.Agent, g.in.Mode), g.forgetAllowed())
		}
	}
	return err
}

// forgetAllowed removes what a conversation's own rules allow, since whoever made them before an agent's calls came there need not have been a person.
func (g *gating) forgetAllowed() error {
	rules, err := view.RulesOf(g.t.Tx, g.t.ID)
	for _, r := range rules {
		if err == nil && r.Effect == record.Allow {
			err = g.t.PutRaw(base.RuleBucket, view.RuleKey(g.t.ID, r.ID), nil)
		}
	}
	return err
}

// conversation returns the conversation of a session or a sub-agent, which belongs to its session's.
func (g *gating) conversation(s *base.Store, tx kv.RwTx, name string) (id pool.ID, err error) {
	key := base.SourceKey(g.in.Agent, name, "")
	var src base.SourceRecord
	known, err := base.GetRecord(tx, base.SourceBucket, key, &src)
	if err != nil {
		return id, err
	}
	if id = src.Context; !known {
		id = base.SourceContext(g.in.Agent, name)
	}
	rec, _, err := base.GetContext(tx, id)
	if err != nil || known && rec != nil && rec.Trashed == 0 {
		return id, err
	}
	parent := pool.ID{}
	if name != g.in.Session {
		if parent, err = g.conversation(s, tx, g.in.Session); err != nil {
			return id, err
		}
	}
	st, err := journal.BeginStore(s, tx)
	if err != nil {
		return id, err
	}
	if rec != nil {
		t, err := journal.BeginAt(s, tx, id)
		if err == nil {
			err = st.Trash(t, 0)
		}
		if err != nil {
			return id, err
		}
	} else {
		t, err := st.NewContext(id, g.title(), parent, nil)
		if err != nil {
			return id, err
		}
		t.Rec.Derived = true
		if err := cmp.Or(t.PutBranches(), st.Made(t, false)); err != nil {
			return id, err
		}
	}
	if !known {
		raw, err := base.EncodeRecord(base.SourceRecord{Context: id})
		if err == nil {
			err = st.PutRaw(base.SourceBucket, key, raw)
		}
		if err != nil {
			return id, err
		}
	}
	_, err = st.Finish("gate")
	return id, err
}

// title names a conversation of which no words are known yet.
func (g *gating) title() string {
	if g.in.Folder == "" {
		return g.in.Agent
	}
	return view.TitleFrom(filepath.Base(g.in.Folder) + " (" + g.in.Agent + ")")
}

// find looks for the call among those of the conversation: by the provider's id and arguments, else by tool, arguments and which of the equal ones it is.
func (g *gating) find() error {
	if g.in.CallID == "" {
		return g.findEqual(func(at *callAt, waited bool) bool {
			return base.IsOpen(at.Rec) && at.Rec.Execution == pool.NotRun && !waited
		})
	}
	return g.each(base.CallIDKey(g.t.ID, g.in.CallID), func(at *callAt) bool {
		if gate := at.Rec.Gate; gate == nil || gate.Hash == g.in.Hash {
			g.at = at
		} else {
			g.said.Changed = true
		}
		return g.at == nil
	})
}

// each calls fn for the calls whose keys in the index by ids begin with a prefix, from the last, until it returns false.
func (g *gating) each(prefix []byte, fn func(*callAt) bool) error {
	var keys [][]byte
	err := g.t.Tx.Scan(base.CallIDBucket, kv.Range{From: prefix, To: kv.Prefix(prefix).To, Reverse: true}, func(key, _ []byte) error {
		if keys = append(keys, slices.Clone(key[len(key)-18:])); len(keys) == equalCalls {
			return kv.ErrStop
		}
		return nil
	})
	for _, key := range keys {
		var at *callAt
		if err == nil {
			at, err = CallOf(g.t.Reader(), pool.ID(key[:16]), int(binary.BigEndian.Uint16(key[16:])), "")
		}
		if err != nil || !fn(at) {
			return err
		}
	}
	return err
}

// equalCalls bounds how many of the newest equal calls of a session are looked at.
const equalCalls = 256

// findEqual finds the first of the equal calls that is as wanted, and notes the next ordinal.
func (g *gating) findEqual(want func(at *callAt, waited bool) bool) error {
	last := 0
	err := g.each(append(slices.Clone(g.t.ID[:]), g.in.hashed()...), func(at *callAt) bool {
		if at.Rec.Gate == nil {
			return true
		}
		last = max(last, at.Rec.Gate.Ordinal)
		if want(at, base.Held(at.Rec.Gate.Waiter, g.t.Now)) {
			g.at = at
		}
		return true
	})
	g.in.Ordinal = last + 1
	return err
}

// put stores the call as a record of its own.
func (g *gating) put(m *pool.Message) error {
	id := g.in.CallID
	if id == "" {
		id = fmt.Sprintf("%s%06d", g.in.hashed(), max(g.in.Ordinal, 1))
	}
	m.ID, m.Calls[0].ID = pool.NewID(), id
	m.Home = pool.Home{Position: uint64(max(g.t.Now, 1))}
	for {
		has, err := g.t.Tx.Get(base.UnansweredBucket, base.UnansweredKey(g.t.ID, m.Home, 0))
		if err != nil {
			return err
		}
		if has == nil {
			break
		}
		m.Home.Position++
	}
	if err := g.t.Store1(m); err != nil {
		return err
	}
	rec := &record.CallRecord{CallID: id, Tool: g.in.Tool, Status: pool.Pending, Execution: pool.NotRun, Since: g.t.Now, Home: m.Home,
		Program: g.t.Store.Program, Origin: "gate"}
	gate := g.in.Gate
	rec.Gate = &gate
	g.at, g.said.New = &callAt{Message: m, Rec: rec}, true
	return nil
}

// answer decides what the hook is told, and takes the steps that it stands for.
func (g *gating) answer() error {
	r := g.at.Rec
	if r.Gate == nil { // the session's file was imported before the hook came
		gate := g.in.Gate
		r.Gate = &gate
		if gate.Hash != sha256.Sum256(jsontree.Canonical(g.at.Message.Calls[g.at.Index].Arguments)) || gate.Tool != "" {
			r.Gate.Arguments, r.Gate.Tool = g.in.Arguments, g.in.Tool
		}
	}
	switch {
	case r.Status == pool.Withdrawn: // it was asked again
		if err := g.step(pool.Pending, pool.NotRun, record.Decision{Decider: g.program(), Reason: "asked again"}); err != nil {
			return err
		}
		fallthrough
	case r.Status == pool.Pending:
		r.Gate.Waiter = g.waiter()
		return g.decide()
	}
	return g.tell()
}

// decide applies the rules to a call that waits.
func (g *gating) decide() error {
	if g.in.Mode == record.GateRecord {
		return g.leave("the gate only records")
	}
	b, err := g.t.Branch(g.t.Rec.Active.String())
	if err != nil {
		return err
	}
	q := record.Question{Message: g.at.Message.ID, Index: g.at.Index + 1, Tool: g.at.Rec.Tool, Arguments: jsontree.Canonical(g.at.arguments()), Dir: g.in.Folder}
	rules, err := rulesAt(g.t.Tx, g.t.ID, b, &q, g.t.Now)
	if err != nil {
		return err
	}
	r, err := judge(g.t.Store, rules, &q)
	if err != nil {
		return err
	}
	g.said.Ruling = r
	d := record.Decision{Decider: pool.Decider{Kind: record.ByRule}}
	if r.Rule != nil {
		d.Name, d.Reason = r.Rule.ID.String(), r.Rule.Reason
	}
	if r.Inherited {
		d.Kind = record.ByInherited
	}
	switch {
	case r.Effect == record.Allow:
		err = g.step(pool.Approved, pool.NotRun, d)
	case r.Effect == record.Deny:
		d.Reason = cmp.Or(d.Reason, r.Why)
		err = g.step(pool.Denied, pool.NotRun, d)
	case r.Rule == nil && g.in.Mode == record.GateRules:
		return g.leave("no rule decides")
	case r.Rule != nil && r.Rule.After > 0 && g.at.Rec.Expires == 0:
		g.at.Rec.Expires = g.at.Rec.Since + pool.Time(r.Rule.After.Microseconds())
	}
	if err != nil {
		return err
	}
	return g.tell()
}

// tell answers by the call's state.
func (g *gating) tell() error {
	r := g.at.Rec
	g.said.Reason = r.Reason
	switch {
	case r.Status == pool.Pending:
		g.said.Say = SayWait
		return g.t.PutCall(g.at.Message.ID, g.at.Index, r)
	case r.Status == pool.Left && r.Execution == pool.NotRun:
		g.said.Say = SayLeft
	case r.Status == pool.Approved && r.Execution == pool.NotRun:
		return g.let()
	case r.Status == pool.Denied:
		g.said.Say, g.said.Reason = SayDeny, cmp.Or(r.Reason, "denied")
	case r.Execution == pool.Running && g.in.Token == r.Token && g.in.Token != (pool.ID{}):
		g.said.Say, g.said.Token = SayAllow, r.Token
	default:
		g.said.Say, g.said.Reason = SayDeny, "it ran already: a decision lets a call once"
	}
	return nil
}

// let makes an approved call running, under a claim that ends with the agent.
func (g *gating) let() error {
	if err := g.at.approved(); err != nil {
		return err
	}
	claim := g.t.Store.NewClaim()
	if claim.PID, claim.Begun = g.in.AgentPID, 0; claim.PID == 0 {
		claim.Ticks = 0
	}
	claim.Program = g.in.Agent
	base.Hold(claim, g.t.Now, holdOf(runsFor))
	g.at.Rec.Token, g.at.Rec.Gate.Waiter = claim.Token, nil
	if err := g.step(pool.Approved, pool.Running, record.Decision{Decider: g.program()}); err != nil {
		return err
	}
	g.said.Say, g.said.Token = SayAllow, claim.Token
	return base.PutRecord(g.t.Tx, base.ClaimBucket, base.CallKey(g.t.ID, g.at.Message.ID, g.at.Index), claim)
}

// runsFor is how long a call may run whose agent says nothing more. An agent that is gone ends it at once.
const runsFor = 24 * time.Hour

func (g *gating) leave(why string) error {
	g.at.Rec.Gate.Waiter = nil
	g.said.Say = SayLeft
	return g.step(pool.Left, pool.NotRun, record.Decision{Decider: g.program(), Reason: why})
}

func (g *gating) program() pool.Decider {
	return pool.Decider{Kind: record.ByProgram, Name: g.t.Store.Program}
}

func (g *gating) step(status pool.Status, execution pool.Execution, d record.Decision) error {
	return StepCall(g.t, g.at, status, execution, d)
}

// waiter is the lease of the process that waits.
func (g *gating) waiter() *record.Claim {
	claim := g.t.Store.NewClaim()
	if g.in.PID != 0 {
		claim.PID, claim.Begun = max(g.in.PID, 0), 0
	}
	base.Hold(claim, g.t.Now, holdOf(g.in.Wait+leaseMargin))
	return claim
}

// leaseMargin is what a lease lasts beyond the time that the waiter takes for itself.
const leaseMargin = 10 * time.Second

func (g *gating) finish() error {
	if _, err := g.t.Finish(); err != nil {
		return err
	}
	b, err := g.t.Branch(g.t.Rec.Active.String())
	if err != nil {
		return err
	}
	g.said.Call, err = DescribeCall(g.t.Reader(), g.at, g.t.Now, b.Name)
	return err
}

// atCall opens the transaction about a call that Ensure returned, with its record as it is now.
func atCall(s *base.Store, tx kv.RwTx, in *Asked, c *record.Call) (*gating, error) {
	t, err := journal.BeginAt(s, tx, c.Context)
	if err != nil {
		return nil, err
	}
	t.What, t.Final = "gate", true
	at, err := CallOf(t.Reader(), c.Message, c.Index-1, c.Ref())
	if err == nil && at.Rec.Gate == nil {
		err = base.NotFound("call", string(c.Ref()))
	}
	return &gating{t: t, in: in, at: at, said: &Said{}}, err
}

// The ways to end a wait.
const (
	EndNot    = ""         // go on waiting
	EndDeny   = "deny"     // nobody decided in time
	EndLeave  = "leave"    // the agent asks its own person
	EndKeep   = "keep"     // the agent keeps the call and asks again, perhaps much later
	EndIsGone = "withdraw" // whoever asked is gone
)

// Collect says what became of a call that waits, and lets it if it was approved: the approval and the beginning of its run are one transaction. If it still
// waits, end says what then happens.
func Collect(ctx context.Context, s *base.Store, in *Asked, c *record.Call, end, reason string) (*Said, error) {
	var said *Said
	err := s.Update(view.Lane(base.AsGate(ctx), s, c.Context), func(tx kv.RwTx) error {
		g, err := atCall(s, tx, in, c)
		if err != nil {
			return err
		}
		said = g.said
		waits := g.at.Rec.Status == pool.Pending
		switch {
		case end == EndIsGone && (waits || base.StateOf(g.at.Rec) == record.CallState(pool.Approved, pool.NotRun)):
			g.said.Say, g.said.Reason = SayDeny, reason
			err = g.step(pool.Withdrawn, pool.NotRun, record.Decision{Decider: g.program(), Reason: reason})
		case waits && end == EndDeny:
			err = g.step(pool.Denied, pool.NotRun, record.Decision{Decider: pool.Decider{Kind: record.ByExpiry}, Reason: reason})
		case waits && end == EndNot: // a rule may have come
			return cmp.Or(g.decide(), g.finish())
		case waits && end == EndLeave:
			return cmp.Or(g.leave(reason), g.finish())
		case waits && end == EndKeep:
			g.at.Rec.Gate.Waiter = nil
		}
		if err == nil && g.said.Say == "" {
			err = g.tell()
		}
		if err != nil {
			return err
		}
		return g.finish()
	})
	return said, err
}

// Outcome is what an agent's hook says after a call.
type Outcome struct {
	Text    string
	Failed  bool
	Refused bool // it did not run: the agent or its person refused it
}

// Close records what became of a call. A call that ran without an answer from here is stored as such, and Past says so.
func Close(ctx context.Context, s *base.Store, in *Asked, out Outcome) (*Said, error) {
	var said *Said
	m, err := in.ready(s)
	if err != nil {
		return nil, err
	}
	result := &pool.Message{Role: pool.ToolRole, Hidden: true, Unsent: true, Result: &pool.Result{RequestID: "call", Text: out.Text, IsError: out.Failed}}
	if err := s.Ready([]*pool.Message{result}); err != nil {
		return nil, err
	}
	id := base.SourceContext(in.Agent, in.Conversation())
	err = s.Update(view.Lane(base.AsGate(ctx), s, id), func(tx kv.RwTx) error {
		g := &gating{in: in, said: &Said{}}
		said = g.said
		copied, answer, r := *m, *result, *result.Result
		answer.Result = &r
		err := g.begin(s, tx)
		if err == nil {
			err = g.findRun()
		}
		if err == nil && g.at == nil && !out.Refused {
			err = g.put(&copied)
		}
		if err != nil || g.at == nil {
			return err
		}
		if err := g.close(out, &answer); err != nil {
			return err
		}
		return g.finish()
	})
	return said, err
}

// findRun finds the call that has just run.
func (g *gating) findRun() error {
	if g.in.CallID != "" {
		err := g.find()
		g.said.Changed = false
		return err
	}
	return g.findEqual(func(at *callAt, _ bool) bool {
		return at.Rec.Execution == pool.Running || at.Rec.Status == pool.Left && at.Rec.Execution == pool.NotRun
	})
}

func (g *gating) close(out Outcome, result *pool.Message) error {
	r := g.at.Rec
	d := record.Decision{Decider: pool.Decider{Kind: record.ByAgent, Name: g.in.Agent}}
	if out.Refused {
		if r.Status != pool.Left || r.Execution != pool.NotRun {
			return nil
		}
		d.Reason = "refused at the agent"
		return g.step(pool.Denied, pool.NotRun, d)
	}
	status, execution := pool.Approved, pool.Done
	if out.Failed {
		execution = pool.Failed
	}
	switch {
	case r.Gate == nil, r.Execution == pool.Done, r.Execution == pool.Failed:
		return nil
	case r.Execution == pool.Running, r.Execution == pool.Uncertain:
		if err := g.t.Tx.Delete(base.ClaimBucket, base.CallKey(g.t.ID, g.at.Message.ID, g.at.Index)); err != nil {
			return err
		}
	case r.Status == pool.Left:
		status, d.Reason = pool.Left, "decided at the agent"
	default:
		status, d.Reason = pool.Left, "it ran without an answer from here"
		r.Gate.Past, r.Gate.Waiter, g.said.Past = true, nil, true
	}
	if base.IsApart(r) {
		result.Result.RequestID, result.Result.Tool = r.CallID, r.Tool
		r.Result = result.ID
		if err := g.t.Store1(result); err != nil {
			return err
		}
	}
	return g.step(status, execution, d)
}

// EndSession records what is due for the calls of a session: those whose waiter is gone are withdrawn, those whose agent died while they ran are uncertain.
// With ended, the agent says that the session is over: then nothing of it runs any more.
func EndSession(ctx context.Context, s *base.Store, in *Asked, ended bool) error {
	return s.Update(view.Lane(base.AsGate(ctx), s, base.SourceContext(in.Agent, in.Conversation())), func(tx kv.RwTx) error {
		var src base.SourceRecord
		known, err := base.GetRecord(tx, base.SourceBucket, base.SourceKey(in.Agent, in.Conversation(), ""), &src)
		if err != nil || !known {
			return err
		}
		t, err := journal.BeginAt(s, tx, src.Context)
		if err != nil {
			return err
		}
		t.What, t.Final = "gate", true
		open, err := view.UnansweredIn(tx, src.Context, []branch.Piece{{To: 1 << 62}})
		for _, u := range open {
			if err != nil {
				return err
			}
			var at *callAt
			at, err = CallOf(t.Reader(), u.Message, u.Index, "")
			if err != nil || at.Rec.Gate == nil {
				continue
			}
			if ended && at.Rec.Execution == pool.Running {
				err = uncertain(t, at, "the session ended while it ran")
			} else if d, _, due := DueIn(t.Reader(), u.Message, u.Index, at.Rec, t.Now); due == nil && d != nil && d.status == pool.Withdrawn {
				err = settleCall(t, at, nil, nil)
			}
		}
		if err != nil {
			return err
		}
		_, err = t.Finish()
		return err
	})
}
