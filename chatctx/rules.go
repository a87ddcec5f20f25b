package chatctx

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Rule says what is to be done with calls that wait. Package approval applies it.
type Rule struct {
	ID     ID     `cbor:"-"` // stands in the key
	Effect string `cbor:"1,keyasint"`
	// Tool is a pattern of tools' names, as path.Match knows them.
	Tool string      `cbor:"2,keyasint"`
	When []Condition `cbor:"3,keyasint,omitempty"` // on the arguments; all have to hold
	// Scope: the zero Context is the store; Branch and Message narrow it to a branch or to one call of the context.
	Context  ID            `cbor:"-"` // stands in the key
	Branch   ID            `cbor:"4,keyasint,omitzero"`
	Message  ID            `cbor:"5,keyasint,omitzero"`
	Index    int           `cbor:"6,keyasint,omitempty"` // of the call in Message, from 1
	Priority int           `cbor:"7,keyasint,omitempty"` // the highest decides
	Expires  pool.Time     `cbor:"8,keyasint,omitempty"` // the rule holds until then; zero: for good
	After    time.Duration `cbor:"9,keyasint,omitempty"` // an ask: calls expire after that time; 0: never
	Reason   string        `cbor:"10,keyasint,omitempty"`
	Mode     string        `cbor:"11,keyasint,omitempty"` // only while the setting mode is this; "": always
	By       string        `cbor:"12,keyasint,omitempty"`
	Created  pool.Time     `cbor:"13,keyasint,omitempty"`
}

// What a rule may do.
const (
	Allow = "allow"
	Deny  = "deny"
	Ask   = "ask"
)

// Condition is one on the arguments of a call.
type Condition struct {
	Argument string `cbor:"1,keyasint"` // a name; a dot goes deeper: file.path, list.0
	Op       string `cbor:"2,keyasint"` // equals, prefix, glob, regexp, range (LO..HI, one may be empty), under (a folder)
	Value    string `cbor:"3,keyasint"`
}

// RuleScope says where a rule holds: a call, else a branch, else the context.
type RuleScope struct {
	Branch bool    // on the batch's branch alone
	Call   CallRef // for this call alone
}

func ruleKey(ctx, id ID) []byte { return append(ctx[:], id[:]...) }

// AddRule adds a rule to the context. Its ID is set at once; who made it, when and its scope by Commit.
func (b *Batch) AddRule(r *Rule, scope RuleScope) {
	if r.ID == (ID{}) {
		r.ID = pool.NewID()
	}
	b.texts("reason", &r.Reason)
	b.step("rules add", func(t *txn) error {
		rule := *r
		rule.Context, rule.By, rule.Created = t.id, t.store.by, t.now
		if scope.Branch {
			rule.Branch = t.target.ID
		}
		if scope.Call != "" {
			at, err := t.reader().call(t.target, b.branch != "", scope.Call)
			if err != nil {
				return err
			}
			rule.Message, rule.Index = at.message.ID, at.index+1
		}
		*r = rule
		t.onContext = true
		return t.putRule(&rule)
	})
}

func (t *txn) putRule(r *Rule) error {
	raw, err := encodeRecord(r)
	if err != nil {
		return err
	}
	return t.putRaw(ruleBucket, ruleKey(t.id, r.ID), raw)
}

// RemoveRule takes a rule of the context away. ErrNotFound where the reference (an id, a unique beginning or ending) names none.
func (b *Batch) RemoveRule(ref string) *Rule {
	res := &Rule{}
	b.step("rules rm", func(t *txn) error {
		r, err := findRule(t.tx, t.id, ref)
		if err != nil {
			return err
		}
		*res = *r
		t.onContext = true
		return t.putRaw(ruleBucket, ruleKey(t.id, r.ID), nil)
	})
	return res
}

// AddRule adds a rule for all contexts.
func (s *Store) AddRule(ctx context.Context, r *Rule) (*Committed, error) {
	if r.ID == (ID{}) {
		r.ID = pool.NewID()
	}
	if err := s.texts("reason", &r.Reason); err != nil {
		return nil, err
	}
	r.Context, r.Branch, r.Message, r.Index, r.By, r.Created = ID{}, ID{}, ID{}, 0, s.by, s.now()
	return s.storeOperation(ctx, "rules add", func(t *storeTxn) error {
		raw, err := encodeRecord(r)
		if err != nil {
			return err
		}
		return t.putRaw(ruleBucket, ruleKey(ID{}, r.ID), raw)
	})
}

// RemoveRule takes a rule for all contexts away.
func (s *Store) RemoveRule(ctx context.Context, ref string) (*Rule, *Committed, error) {
	var r *Rule
	done, err := s.storeOperation(ctx, "rules rm", func(t *storeTxn) (err error) {
		if r, err = findRule(t.tx, ID{}, ref); err != nil {
			return err
		}
		return t.putRaw(ruleBucket, ruleKey(ID{}, r.ID), nil)
	})
	return r, done, err
}

// findRule finds a rule of a context, or with the zero id of the store.
func findRule(tx kv.Tx, ctx ID, ref string) (*Rule, error) {
	all, err := rulesOf(tx, ctx)
	if err != nil {
		return nil, err
	}
	digits := idDigits(ref)
	var found []*Rule
	var words []string
	for _, r := range all {
		if digits != "" && matches(r.ID, digits) {
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

// rulesOf reads the rules that are kept with a context, or with the zero id with the store, in the order they were made.
func rulesOf(tx kv.Tx, ctx ID) ([]*Rule, error) {
	var out []*Rule
	err := tx.Scan(ruleBucket, kv.Prefix(ctx[:]), func(key, value []byte) error {
		r := &Rule{}
		if err := decMode.Unmarshal(value, r); err != nil || len(key) != 32 {
			return damaged("the rule %x: %v", key, err)
		}
		r.ID, r.Context = ID(key[16:]), ctx
		out = append(out, r)
		return nil
	})
	return out, err
}

// copyRules gives a fork the rules of its branch.
func (t *txn) copyRules(from, to *branch.Branch) error {
	all, err := rulesOf(t.tx, t.id)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Branch != from.ID {
			continue
		}
		r.ID, r.Branch = pool.NewID(), to.ID
		if err := t.putRule(r); err != nil {
			return err
		}
	}
	return nil
}

// maxParents bounds how far up parents are followed.
const maxParents = 64

// Rules are the rules that are kept with a context, with those above it: of its parent contexts, unless it was made to take none, and of the store.
// Those that hold no more are left out. The zero id gives the store's alone.
func (s *Store) Rules(ctx context.Context, context ID) ([]*Rule, error) {
	var out []*Rule
	err := s.db.View(ctx, func(tx kv.Tx) (err error) {
		out, err = rulesFor(tx, context)
		return err
	})
	now := s.now()
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
		own, err := rulesOf(tx, id)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 || branchOfParent != (ID{}) {
			own = slices.DeleteFunc(own, func(r *Rule) bool { return r.Branch != (ID{}) && r.Branch != branchOfParent })
		}
		out = append(out, own...)
		rec, _, err := getContext(tx, id)
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
	all, err := rulesOf(tx, ID{})
	return append(out, all...), err
}

// ScopeWord names a rule's scope: call, branch, context or store.
func (r *Rule) ScopeWord() string {
	switch {
	case r.Message != (ID{}):
		return "call"
	case r.Branch != (ID{}):
		return "branch"
	case r.Context != (ID{}):
		return "context"
	}
	return "store"
}

// String is the rule on one line.
func (r *Rule) String() string {
	words := []string{r.Effect, r.Tool}
	for _, c := range r.When {
		words = append(words, c.Argument, c.Op, c.Value)
	}
	return strings.Join(words, " ")
}
