package chatctx

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Rule says what is to be done with calls that wait. Package approval applies it. It is written to the store as it is: a second type would repeat it field by field.
type Rule = record.Rule

// Condition is one on the arguments of a call.
type Condition = record.Condition

// What a rule may do.
const (
	Allow = "allow"
	Deny  = "deny"
	Ask   = "ask"
)

// RuleScope says where a rule holds: a call, else a branch, else the context.
type RuleScope struct {
	Branch bool    // on the batch's branch alone
	Call   CallRef // for this call alone
}

// AddRule adds a rule to the context. Its step has the rule as it was stored: with who made it, when and its scope, and an id where r has none.
func (b *Batch) AddRule(r Rule, scope RuleScope) {
	if r.ID == (ID{}) {
		r.ID = pool.NewID()
	}
	b.texts("reason", &r.Reason)
	b.step("rules add", func(t *journal.Txn, s *Step) error {
		rule := r
		rule.Context, rule.By, rule.Created = t.ID, t.Store.Person, t.Now
		if scope.Branch {
			rule.Branch = t.Target.ID
		}
		if scope.Call != "" {
			at, err := toolcall.FindCall(t.Reader(), t.Target, b.branch != "", scope.Call)
			if err != nil {
				return err
			}
			rule.Message, rule.Index = at.Message.ID, at.Index+1
		}
		s.Rule = &rule
		t.OnContext = true
		return t.PutRule(&rule)
	})
}

// RemoveRule takes a rule of the context away. ErrNotFound where the reference (an id, a unique beginning or ending) names none. Its step has the rule.
func (b *Batch) RemoveRule(ref string) {
	b.step("rules rm", func(t *journal.Txn, s *Step) error {
		r, err := findRule(t.Tx, t.ID, ref)
		if err != nil {
			return err
		}
		s.Rule, t.OnContext = r, true
		return t.PutRaw(record.RuleBucket, view.RuleKey(t.ID, r.ID), nil)
	})
}

// AddRule adds a rule for all contexts.
func (s *Store) AddRule(ctx context.Context, r Rule) (*Committed, error) {
	if r.ID == (ID{}) {
		r.ID = pool.NewID()
	}
	if err := s.at.Texts("reason", &r.Reason); err != nil {
		return nil, err
	}
	r.Context, r.Branch, r.Message, r.Index, r.By, r.Created = ID{}, ID{}, ID{}, 0, s.at.Person, s.at.Now()
	return s.ruleOperation(ctx, "rules add", func(t *journal.StoreTxn) (*Rule, error) {
		raw, err := record.EncodeRecord(&r)
		if err != nil {
			return nil, err
		}
		return &r, t.PutRaw(record.RuleBucket, view.RuleKey(ID{}, r.ID), raw)
	})
}

// RemoveRule takes a rule for all contexts away.
func (s *Store) RemoveRule(ctx context.Context, ref string) (*Committed, error) {
	return s.ruleOperation(ctx, "rules rm", func(t *journal.StoreTxn) (*Rule, error) {
		r, err := findRule(t.Tx, ID{}, ref)
		if err != nil {
			return nil, err
		}
		return r, t.PutRaw(record.RuleBucket, view.RuleKey(ID{}, r.ID), nil)
	})
}

// ruleOperation changes a rule for all contexts, and gives it with the step.
func (s *Store) ruleOperation(ctx context.Context, what string, do func(*journal.StoreTxn) (*Rule, error)) (*Committed, error) {
	var r *Rule
	done, err := journal.StoreOperation(ctx, s.at, what, func(t *journal.StoreTxn) (err error) {
		r, err = do(t)
		return err
	})
	if err == nil {
		done.Last().Rule = r
	}
	return done, err
}

// findRule finds a rule of a context, or with the zero id of the store.
func findRule(tx kv.Tx, ctx ID, ref string) (*Rule, error) {
	all, err := view.RulesOf(tx, ctx)
	if err != nil {
		return nil, err
	}
	digits := view.IdDigits(ref)
	var found []*Rule
	var words []string
	for _, r := range all {
		if digits != "" && view.Matches(r.ID, digits) {
			found = append(found, r)
			words = append(words, hex.EncodeToString(r.ID[12:])+" ("+r.Effect+" "+r.Tool+")")
		}
	}
	switch len(found) {
	case 0:
		return nil, NotFound("rule", ref)
	case 1:
		return found[0], nil
	}
	return nil, Ambiguous("rule", ref, words)
}

// maxParents bounds how far up parents are followed.
const maxParents = 64

// Rules are the rules that are kept with a context, with those above it: of its parent contexts, unless it was made to take none, and of the store.
// Those that hold no more are left out. The zero id gives the store's alone.
func (s *Store) Rules(ctx context.Context, context ID) ([]*Rule, error) {
	var out []*Rule
	err := s.at.DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = rulesFor(tx, context)
		return err
	})
	now := s.at.Now()
	return slices.DeleteFunc(out, func(r *Rule) bool { return r.Expires != 0 && r.Expires <= now }), err
}

// rulesFor gives a context's rules, then its parents', then the store's.
func rulesFor(tx kv.Tx, id ID) ([]*Rule, error) {
	var out []*Rule
	var branchOfParent ID
	for range maxParents {
		if id == (ID{}) {
			break
		}
		own, err := view.RulesOf(tx, id)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 || branchOfParent != (ID{}) {
			own = slices.DeleteFunc(own, func(r *Rule) bool { return r.Branch != (ID{}) && r.Branch != branchOfParent })
		}
		out = append(out, own...)
		rec, _, err := record.GetContext(tx, id)
		if err != nil {
			return nil, err
		}
		if rec == nil || rec.Task != nil && rec.Task.OwnRules {
			break
		}
		id, branchOfParent = rec.Parent, ID{}
		if rec.Task != nil {
			branchOfParent = rec.Task.Branch
		}
	}
	all, err := view.RulesOf(tx, ID{})
	return append(out, all...), err
}
