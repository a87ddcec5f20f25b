package toolcall

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// RuleChange is a change of the rules that is being tried: Add is a new rule, Remove the id of an old one. The zero value of either means none.
type RuleChange struct {
	Add    *record.Rule
	Remove pool.ID
}

// apply returns the rules after the changes.
func apply(all view.RuleSet, changes []RuleChange) view.RuleSet {
	out := view.RuleSet{}
	for id, rules := range all {
		out[id] = slices.Clone(rules)
	}
	for _, c := range changes {
		for id := range out {
			out[id] = slices.DeleteFunc(out[id], func(r *record.Rule) bool { return r.ID == c.Remove || c.Add != nil && replaces(c.Add, r) })
		}
		if c.Add != nil {
			out[c.Add.Context] = append(out[c.Add.Context], c.Add)
		}
	}
	return out
}

// replaces reports whether a new rule takes the place of an old one: a default replaces the default of the same scope.
func replaces(r, old *record.Rule) bool {
	return r.Default && old.Default && r.Context == old.Context && r.Branch == old.Branch
}

// trial is an example with the rules before and after a change.
type trial struct {
	rule          *record.Rule
	text, want    string
	question      record.Question
	before, after []*record.Rule
	fresh         bool      // the example comes with the change
	at            pool.Time // the future time for which it is judged, when other rules have expired; 0: now
}

// TryRules returns the examples that a change would break, now or when a rule expires. stamp identifies the rules before the change; compare it with
// StampRules.
func TryRules(ctx context.Context, s *base.Store, changes func(kv.Tx) ([]RuleChange, error)) (broken []record.Broken, stamp pool.Hash, err error) {
	var trials []trial
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		trials = nil
		made, err := changes(tx)
		if err != nil {
			return err
		}
		all, err := view.AllRules(tx)
		if err != nil {
			return err
		}
		if stamp, err = StampRules(tx); err != nil {
			return err
		}
		trials, err = trialsOf(tx, all, apply(all, made), s.Now(), made)
		return err
	})
	if err == nil {
		broken, err = breaks(s, trials)
	}
	return broken, stamp, err
}

// breaks judges the trials. An example is broken if it fails after the change and either held before or comes with the change. Each is listed once.
func breaks(s *base.Store, trials []trial) (broken []record.Broken, err error) {
	for _, t := range trials {
		if slices.ContainsFunc(broken, func(b record.Broken) bool { return b.Rule == t.rule && b.Example == t.text }) {
			continue
		}
		was, err := judge(s, t.before, &t.question)
		if err != nil {
			return nil, err
		}
		is, err := judge(s, t.after, &t.question)
		if err != nil {
			return nil, err
		}
		if is.Effect != t.want && (t.fresh || was.Effect == t.want) {
			broken = append(broken, record.Broken{Rule: t.rule, Example: t.text, Is: is.Effect, At: t.at})
		}
	}
	return broken, nil
}

// Unbroken returns ErrConflict if a change breaks examples. A change that only adds deny rules is never refused.
func Unbroken(changes []RuleChange, broken []record.Broken) error {
	if len(broken) == 0 || !slices.ContainsFunc(changes, func(c RuleChange) bool { return c.Add == nil || c.Add.Effect != record.Deny }) {
		return nil
	}
	b := broken[0]
	when := ""
	if b.At != 0 {
		when = " once rules have expired, at " + b.At.Time().UTC().Format(time.RFC3339)
	}
	return base.Conflict("the rules would break an example of rule %s%s: %s, but it would be %s", record.Short(b.Rule.ID), when, b.Example, b.Is)
}

// trialsOf reads the examples of all rules after the change, for now and for each later time at which a rule expires.
func trialsOf(tx kv.Tx, before, after view.RuleSet, now pool.Time, changes []RuleChange) (out []trial, err error) {
	for _, at := range moments(after, now) {
		for id, rules := range after {
			for _, r := range rules {
				if r.Expires != 0 && r.Expires <= at {
					continue
				}
				for _, text := range r.Examples {
					t := trial{rule: r, text: text, fresh: slices.ContainsFunc(changes, func(c RuleChange) bool { return c.Add == r })}
					if err := t.read(tx, id); err != nil {
						return nil, err
					}
					if t.before, err = before.For(tx, id, at); err != nil {
						return nil, err
					}
					if t.after, err = after.For(tx, id, at); err != nil {
						return nil, err
					}
					if at != now {
						t.at = at
					}
					out = append(out, t)
				}
			}
		}
	}
	return out, nil
}

// moments returns now and the later times at which rules expire, in order.
func moments(all view.RuleSet, now pool.Time) []pool.Time {
	out := []pool.Time{now}
	for _, rules := range all {
		for _, r := range rules {
			if r.Expires > now {
				out = append(out, r.Expires)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// read parses the example of a rule and places it: the rule is kept with context id.
func (t *trial) read(tx kv.Tx, id pool.ID) error {
	tool, arguments, want, err := ParseExample(t.text)
	if err != nil {
		return err
	}
	t.want, t.question = want, record.Question{Tool: tool, Arguments: arguments, Message: t.rule.Message, Index: t.rule.Index}
	b := (*branch.Branch)(nil)
	if t.rule.Branch != (pool.ID{}) {
		if b, err = branchstore.Get(tx, id, t.rule.Branch); err != nil {
			return err
		}
	}
	if err := view.Place(tx, id, b, &t.question); err != nil {
		return err
	}
	if t.rule.Mode != "" {
		t.question.Mode = t.rule.Mode
	}
	return nil
}

// StampRules returns a hash of all rules of the store.
func StampRules(tx kv.Tx) (stamp pool.Hash, err error) {
	h := sha256.New()
	err = tx.Scan(base.RuleBucket, kv.Range{}, func(key, value []byte) error {
		h.Write(key)
		sum := sha256.Sum256(value)
		h.Write(sum[:])
		return nil
	})
	copy(stamp[:], h.Sum(nil))
	return stamp, err
}

// Kept tries the effect of an undo or redo on the rules outside the transaction, since a condition may look at files. The first transaction that changes
// rules is given up; the second has to change them in the same way.
type Kept struct {
	Broken []record.Broken // examples that deny rules alone broke

	store   *base.Store
	tried   [2]pool.Hash // hashes of the rules before and after the change that was tried
	found   [2]pool.Hash // the same of the transaction that was given up
	changes []RuleChange
	trials  []trial
}

// errUntried gives up a transaction because its change of the rules must be tried first.
var errUntried = errors.New("a change of rules has to be tried")

// Keeping runs an undo or redo. do must call Around inside its transaction.
func Keeping(s *base.Store, do func(*Kept) error) ([]record.Broken, error) {
	k := &Kept{store: s}
	for {
		err := do(k)
		if !errors.Is(err, errUntried) {
			return k.Broken, err
		}
		k.tried = k.found
		if k.Broken, err = breaks(s, k.trials); err == nil {
			err = Unbroken(k.changes, k.Broken)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Around makes a change in a transaction. It fails with errUntried if the change alters rules in a way that was not tried yet.
func (k *Kept) Around(tx kv.Tx, change func() error) error {
	before, was, err := rulesAndStamp(tx)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, is, err := rulesAndStamp(tx)
	if err != nil || was == is || k.tried == [2]pool.Hash{was, is} {
		return err
	}
	k.found, k.changes = [2]pool.Hash{was, is}, changesOf(before, after)
	if k.trials, err = trialsOf(tx, before, after, k.store.Now(), k.changes); err == nil && len(k.trials) > 0 {
		err = errUntried
	}
	return err
}

func rulesAndStamp(tx kv.Tx) (all view.RuleSet, stamp pool.Hash, err error) {
	if err = kv.Fetch(tx, kv.In(base.RuleBucket, kv.Range{})); err != nil {
		return nil, stamp, err
	}
	if all, err = view.AllRules(tx); err == nil {
		stamp, err = StampRules(tx)
	}
	return all, stamp, err
}

// changesOf returns the changes that lead from one set of rules to another. The removal of a default that another default replaces is no change of its own.
func changesOf(before, after view.RuleSet) (out []RuleChange) {
	for id, rules := range after {
		for _, r := range rules {
			if !slices.ContainsFunc(before[id], func(old *record.Rule) bool { return old.ID == r.ID }) {
				out = append(out, RuleChange{Add: r})
			}
		}
	}
	for id, rules := range before {
		for _, old := range rules {
			if !slices.ContainsFunc(after[id], func(r *record.Rule) bool { return r.ID == old.ID || replaces(r, old) }) {
				out = append(out, RuleChange{Remove: old.ID})
			}
		}
	}
	return out
}
