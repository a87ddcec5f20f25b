package toolcall

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// RuleChange is a change of rules that is tried: one that comes, or one that goes.
type RuleChange struct {
	Add    *record.Rule
	Remove pool.ID
}

// apply makes changes to rules.
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

// replaces reports whether a rule takes the place of another: a default that of its scope.
func replaces(r, old *record.Rule) bool {
	return r.Default && old.Default && r.Context == old.Context && r.Branch == old.Branch
}

// trial is an example, with the rules before and after a change.
type trial struct {
	rule          *record.Rule
	text, want    string
	question      record.Question
	before, after []*record.Rule
	fresh         bool      // it comes with the change
	at            pool.Time // when rules have expired that hold now; 0: now
}

// TryRules says which examples a change would break, at once or when a rule expires. stamp names the rules as they were, for StampRules.
func TryRules(ctx context.Context, s *record.Store, changes func(kv.Tx) ([]RuleChange, error)) (broken []record.Broken, stamp pool.Hash, err error) {
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

// breaks judges trials: an example is broken that held before, or that comes with the change. Each is named once.
func breaks(s *record.Store, trials []trial) (broken []record.Broken, err error) {
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

// Unbroken refuses a change that breaks examples. One by which nothing but rules that deny come never is refused.
func Unbroken(changes []RuleChange, broken []record.Broken) error {
	if len(broken) == 0 || !slices.ContainsFunc(changes, func(c RuleChange) bool { return c.Add == nil || c.Add.Effect != record.Deny }) {
		return nil
	}
	b := broken[0]
	when := ""
	if b.At != 0 {
		when = " once rules have expired, at " + b.At.Time().UTC().Format(time.RFC3339)
	}
	return record.Conflict("the rules would no longer hold to an example of rule %s%s: %s, and it would be %s", record.Short(b.Rule.ID), when, b.Example, b.Is)
}

// trialsOf reads the examples of all rules that are there after a change, now and after each time at which one expires.
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

// moments are the times at which rules change by themselves, after now, which comes first.
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

// read reads the example of a rule that is kept with a context, and where it stands.
func (t *trial) read(tx kv.Tx, id pool.ID) error {
	tool, arguments, want, err := record.ParseExample(t.text)
	if err != nil {
		return err
	}
	t.want, t.question = want, record.Question{Tool: tool, Arguments: arguments, Message: t.rule.Message, Index: t.rule.Index}
	b := (*branch.Branch)(nil)
	if t.rule.Branch != (pool.ID{}) {
		if b, err = branch.Get(tx, id, t.rule.Branch); err != nil {
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

// StampRules names the rules of a store as they are.
func StampRules(tx kv.Tx) (stamp pool.Hash, err error) {
	h := sha256.New()
	err = tx.Scan(record.RuleBucket, kv.Range{}, func(key, value []byte) error {
		h.Write(key)
		sum := sha256.Sum256(value)
		h.Write(sum[:])
		return nil
	})
	copy(stamp[:], h.Sum(nil))
	return stamp, err
}

// Kept tries what an undo or a redo does to rules outside of its transaction, since a condition may look at files: the first time that it changes rules the transaction is given up, and the
// second time it has to change them in the same way.
type Kept struct {
	Broken []record.Broken // what was broken by rules that deny alone

	store   *record.Store
	tried   [2]pool.Hash // the rules before and after the change that was tried
	found   [2]pool.Hash // those of the transaction that was given up
	changes []RuleChange
	trials  []trial
}

// errUntried gives up a transaction whose change of rules has to be tried first.
var errUntried = errors.New("a change of rules has to be tried")

// Keeping runs an undo or a redo, which has its transaction run Around what it does.
func Keeping(s *record.Store, do func(*Kept) error) ([]record.Broken, error) {
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

// Around makes a change in a transaction, and gives that up where rules change in a way that was not tried.
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
	if err = kv.Fetch(tx, kv.In(record.RuleBucket, kv.Range{})); err != nil {
		return nil, stamp, err
	}
	if all, err = view.AllRules(tx); err == nil {
		stamp, err = StampRules(tx)
	}
	return all, stamp, err
}

// changesOf says what leads from rules to others. A default that gives way to another is no change of its own.
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
