package view

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// RuleKey is the key of a rule's record.
func RuleKey(ctx, id pool.ID) []byte { return append(ctx[:], id[:]...) }

// RulesOf reads the rules of a context, or those of the store for the zero id, in the order in which they were made.
func RulesOf(tx kv.Tx, ctx pool.ID) ([]*record.Rule, error) {
	var out []*record.Rule
	err := tx.Scan(base.RuleBucket, kv.Prefix(ctx[:]), func(key, value []byte) error {
		r, err := decodeRule(key, value)
		out = append(out, r)
		return err
	})
	return out, err
}

func decodeRule(key, value []byte) (*record.Rule, error) {
	r := &record.Rule{}
	if err := stored.Unmarshal(value, r); err != nil || len(key) != 32 {
		return nil, base.Damaged("the rule %x: %v", key, err)
	}
	r.Context, r.ID = pool.ID(key[:16]), pool.ID(key[16:])
	return r, nil
}

// RuleSet has all rules of a store by context; those of the store have the zero id.
type RuleSet map[pool.ID][]*record.Rule

// AllRules reads all rules of a store.
func AllRules(tx kv.Tx) (RuleSet, error) {
	all := RuleSet{}
	err := tx.Scan(base.RuleBucket, kv.Range{}, func(key, value []byte) error {
		r, err := decodeRule(key, value)
		if err == nil {
			all[r.Context] = append(all[r.Context], r)
		}
		return err
	})
	return all, err
}

// RulesFor returns the rules that hold for a context at a time: its own, its parents' and the store's. A task with OwnRules does not have those of its
// parents. If a context is not a task of its parent but only names it, as files of other programs do, nobody here allowed it anything: then the rules that
// allow are left out for that parent and those above.
func RulesFor(tx kv.Tx, id pool.ID, now pool.Time) ([]*record.Rule, error) {
	return rulesUp(tx, id, now, func(id pool.ID) ([]*record.Rule, error) { return RulesOf(tx, id) })
}

// For is like RulesFor, for rules that were read already.
func (s RuleSet) For(tx kv.Tx, id pool.ID, now pool.Time) ([]*record.Rule, error) {
	return rulesUp(tx, id, now, func(id pool.ID) ([]*record.Rule, error) { return slices.Clone(s[id]), nil })
}

// maxParents bounds how many parents are followed.
const maxParents = 64

func rulesUp(tx kv.Tx, id pool.ID, now pool.Time, of func(pool.ID) ([]*record.Rule, error)) ([]*record.Rule, error) {
	var out []*record.Rule
	var branchOfParent pool.ID
	linked := false
	for up := range maxParents {
		if id == (pool.ID{}) {
			break
		}
		own, err := of(id)
		if err != nil {
			return nil, err
		}
		if up > 0 {
			own = slices.DeleteFunc(own, func(r *record.Rule) bool {
				return r.Branch != (pool.ID{}) && r.Branch != branchOfParent || linked && r.Effect == record.Allow
			})
		}
		out = append(out, own...)
		rec, _, err := base.GetContext(tx, id)
		if err != nil {
			return nil, err
		}
		if rec == nil || rec.Task != nil && rec.Task.OwnRules {
			break
		}
		id, branchOfParent = rec.Parent, pool.ID{}
		linked = linked || rec.Task == nil || rec.Task.Linked
		if rec.Task != nil {
			branchOfParent = rec.Task.Branch
		}
	}
	all, err := of(pool.ID{})
	out = append(out, all...)
	return slices.DeleteFunc(out, func(r *record.Rule) bool { return r.Expires != 0 && r.Expires <= now }), err
}

// Place completes a question about a call from the call's place: the mode, and the tool's folder and schema. With a nil branch it takes the context's own
// settings. The environment's settings come under them.
func Place(tx kv.Tx, id pool.ID, b *branch.Branch, q *record.Question) error {
	q.Context = id
	if b == nil {
		b = &branch.Branch{}
	}
	q.Branch = b.ID
	rec := &base.ContextRecord{}
	if id != (pool.ID{}) {
		found, _, err := base.GetContext(tx, id)
		if err != nil || found == nil {
			return err
		}
		rec = found
	}
	own, err := Effective(tx, rec, b)
	if err != nil {
		return err
	}
	v := settings.Values(settings.WithEnv(own, os.Getenv))
	q.Mode, q.Dir = v.Text("mode"), v.Text("calls.folder")
	t, err := ToolNamed(tx, id, q.Tool)
	if err != nil {
		return err
	}
	if t != nil {
		if q.Schema = t.Schema; t.Dir != "" {
			q.Dir = t.Dir
		}
		if len(t.Command) > 0 && !t.MCP {
			q.Command, q.Env = t.Command, slices.Sorted(maps.Keys(t.Env))
		}
	}
	if !filepath.IsAbs(q.Dir) {
		q.Dir = "" // nobody knows where a relative folder would begin
	}
	return nil
}
