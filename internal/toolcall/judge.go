package toolcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Judge returns what the rules now say of a call. It writes nothing.
func Judge(ctx context.Context, s *base.Store, c *record.Call) (*record.Ruling, error) {
	if c == nil {
		return nil, base.Invalidf("no call is given")
	}
	q := record.Question{Message: c.Message, Index: c.Index, Tool: c.Tool, Arguments: c.RunArguments()}
	if c.Gate != nil {
		q.Dir = c.Gate.Folder
	}
	return Ask(ctx, s, c.Context, c.Branch, q)
}

// Ask returns what the rules say of a question about a branch; "" means the active branch. It reads the rules anew, so a new rule counts at once.
func Ask(ctx context.Context, s *base.Store, id pool.ID, branchName string, q record.Question) (*record.Ruling, error) {
	var rules []*record.Rule
	err := view.At(ctx, &base.Conversation{ID: id, Store: s}, func(tx kv.Tx, rec *base.ContextRecord) error {
		b, err := view.BranchOf(tx, id, rec, branchName)
		if err != nil {
			return err
		}
		rules, err = rulesAt(tx, id, b, &q, s.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	r, err := judge(s, rules, &q)
	if err == nil {
		r.Question = q
	}
	return r, err
}

// rulesAt completes a question about a branch and returns the rules that hold there. A folder that the question has stays.
func rulesAt(tx kv.Tx, id pool.ID, b *branch.Branch, q *record.Question, now pool.Time) ([]*record.Rule, error) {
	dir := q.Dir
	if err := view.Place(tx, id, b, q); err != nil {
		return nil, err
	}
	if filepath.IsAbs(dir) {
		q.Dir = dir
	}
	return view.RulesFor(tx, id, now)
}

func judge(s *base.Store, rules []*record.Rule, q *record.Question) (*record.Ruling, error) {
	switch {
	case len(rules) == 0:
		return &record.Ruling{Effect: record.Ask, Why: "no rule decides"}, nil
	case s.Judge == nil:
		return nil, base.Invalidf("the store has rules, and this program does not know their language: open the store with Options.Judge")
	}
	return s.Judge.Judge(rules, q), nil
}

// Denied returns ErrConflict if a rule denies the call, else nil. A default that denies does not count: it decides only while no person does.
func Denied(c *record.Call, r *record.Ruling) error {
	if r.Effect != record.Deny || r.Rule.Default || r.Untold {
		return nil
	}
	where := "--context " + r.Rule.Context.String()
	if r.Rule.Context == (pool.ID{}) {
		where = "--global"
	}
	return base.Conflict("call %s:%d (%s) is denied by rule %s (%s): chatctx rules rm %s %s removes the rule", record.Short(c.Message), c.Index, c.Tool, record.Short(r.Rule.ID), r.Rule, record.Short(r.Rule.ID), where)
}

// MayApprove refuses to approve a call if a rule denies it with the arguments that it would run with. If v replaces the arguments and the store knows the
// tool's schema, it also refuses arguments that do not fit the schema, since the model would get an answer for what a person wrote. A reference that names
// no call, or several, passes: the next reader reports it.
func MayApprove(ctx context.Context, s *base.Store, contextRef, branchName string, ref record.CallRef, v *record.Verdict) error {
	if v.Kind == record.ByRule || v.Kind == record.ByInherited {
		return nil
	}
	c, err := ReadCall(ctx, s, contextRef, branchName, ref)
	if errors.Is(err, base.ErrNotFound) || errors.Is(err, base.ErrAmbiguous) || err == nil && c.Branch == "" {
		return nil
	}
	if err != nil {
		return err
	}
	if v.Arguments != nil {
		c.Effective = v.Arguments
	}
	r, err := Judge(ctx, s, c)
	if err != nil {
		return err
	}
	if v.Arguments != nil && r.Question.Schema != nil && s.Judge != nil {
		if err := s.Judge.Arguments(r.Question.Schema, c.RunArguments()); err != nil {
			return err
		}
	}
	return Denied(c, r)
}

// readable refuses arguments that different programs may read differently.
func (a *callAt) readable(arguments []byte, done string) error {
	if len(arguments) == 0 {
		return nil
	}
	if _, err := jsontree.Parse(arguments); err != nil {
		return base.Conflict("the arguments of call %s cannot be read (%v): it cannot be %s as it is; deny it, or approve it with other arguments", a.name(), err, done)
	}
	return nil
}

// callsPage is the number of calls that one transaction reads.
const callsPage = 256

// DiffRules calls tell for each recorded call that the rules would decide differently after a change. It writes nothing.
func DiffRules(ctx context.Context, s *base.Store, changes func(kv.Tx) ([]RuleChange, error), tell func(record.RuleDifference) error) error {
	var from []byte
	for {
		var page []*asked
		err := s.DB.View(ctx, func(tx kv.Tx) (err error) {
			page, from, err = askedPage(tx, s, from, changes)
			return err
		})
		if err != nil {
			return err
		}
		for _, a := range page {
			before, err := judge(s, a.before, &a.question)
			if err != nil {
				return err
			}
			after, err := judge(s, a.after, &a.question)
			if err != nil {
				return err
			}
			if before.Effect == after.Effect {
				continue
			}
			if err := tell(record.RuleDifference{Call: a.call, Before: before, After: after}); err != nil {
				return err
			}
		}
		if from == nil {
			return nil
		}
	}
}

// asked is a recorded call with the rules before and after a change.
type asked struct {
	call          *record.Call
	question      record.Question
	before, after []*record.Rule
}

func askedPage(tx kv.Tx, s *base.Store, from []byte, changes func(kv.Tx) ([]RuleChange, error)) (page []*asked, next []byte, err error) {
	made, err := changes(tx)
	if err != nil {
		return nil, nil, err
	}
	before, err := view.AllRules(tx)
	if err != nil {
		return nil, nil, err
	}
	after := apply(before, made)
	var keys [][]byte
	err = tx.Scan(base.CallBucket, kv.Range{From: from}, func(key, _ []byte) error {
		if len(keys) == callsPage {
			next = bytes.Clone(key)
			return kv.ErrStop
		}
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	held := map[pool.ID][]*branch.Branch{}
	for _, key := range keys {
		if err != nil {
			return nil, nil, err
		}
		a := &asked{}
		if err = a.read(tx, s, key, held); err != nil {
			return nil, nil, err
		}
		if a.before, err = before.For(tx, a.call.Context, s.Now()); err == nil {
			a.after, err = after.For(tx, a.call.Context, s.Now())
		}
		page = append(page, a)
	}
	return page, next, err
}

// read reads a recorded call and the question about it.
func (a *asked) read(tx kv.Tx, s *base.Store, key []byte, held map[pool.ID][]*branch.Branch) error {
	id := pool.ID(key[:16])
	message, index := base.CallOfKey(key)
	r := view.Reader{Tx: tx, ID: id}
	at, err := CallOf(r, message, index, "")
	if err != nil {
		return err
	}
	name, err := heldOn(tx, id, at.Rec.Home, held)
	if err != nil {
		return err
	}
	if a.call, err = DescribeCall(r, at, s.Now(), name); err != nil {
		return err
	}
	var b *branch.Branch
	for _, one := range held[id] {
		if one.Name == name {
			b = one
		}
	}
	a.question = record.Question{Message: message, Index: index + 1, Tool: a.call.Tool, Arguments: a.call.RunArguments()}
	return view.Place(tx, id, b, &a.question)
}

// JudgeTool returns what the rules would say of a call of a tool on a branch; "" means the active one.
func JudgeTool(ctx context.Context, c *base.Conversation, branchName, tool string, arguments json.RawMessage) (*record.Ruling, error) {
	return Ask(ctx, c.Store, c.ID, branchName, record.Question{Tool: tool, Arguments: arguments})
}
