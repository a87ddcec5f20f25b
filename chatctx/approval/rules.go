package approval

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/toolcall"
	"golang.org/x/text/unicode/norm"
)

// Rules is the language of rules: the Judge to open a store with.
type Rules struct {
	// Dir is the base of relative folders in rules; "" means the current folder.
	Dir string
}

var _ record.Judge = Rules{}

// Rule checks a rule. It makes the folders in its conditions absolute and resolves their links.
func (j Rules) Rule(r *record.Rule) error {
	if err := j.ready(r); err != nil {
		return base.Invalid("%v", err)
	}
	return nil
}

func (j Rules) ready(r *record.Rule) error {
	dir := j.Dir
	if dir == "" {
		dir, _ = os.Getwd() // without one only absolute folders can be told
	}
	r.When, r.Unless = slices.Clone(r.When), slices.Clone(r.Unless)
	for _, list := range [][]record.Condition{r.When, r.Unless} {
		for i := range list {
			if list[i].Op != Under {
				continue
			}
			folder, err := absoluteFolder(list[i].Value, dir)
			if err != nil {
				return err
			}
			list[i].Value = folder
		}
	}
	_, err := parseRule(r)
	return err
}

// rule is a parsed rule.
type rule struct {
	*record.Rule
	names        *pattern
	when, unless []*condition
}

func parseRule(r *record.Rule) (*rule, error) {
	p := &rule{Rule: r}
	switch {
	case r.Effect != record.Allow && r.Effect != record.Deny && r.Effect != record.Ask:
		return nil, fmt.Errorf("the effect of a rule must be allow, deny or ask, not %q", r.Effect)
	case r.Default && (r.Effect == record.Allow || r.Tool != "" || len(r.When)+len(r.Unless)+len(r.Examples) > 0 || r.Mode != "" || r.Message != chatctx.ID{}):
		return nil, errors.New("a default must be ask or deny, and names no tools, conditions or examples")
	case r.After != 0 && (r.Effect != record.Ask || r.After < 0 || r.Default):
		return nil, errors.New("only the effect ask takes a time after which calls expire")
	case r.Default:
		return p, nil
	case r.Tool == "":
		return nil, errors.New("the rule names no tool: give a pattern of names, or * for all tools")
	}
	var err error
	if p.names, err = parseGlob(r.Tool); err != nil {
		return nil, err
	}
	if p.when, err = parseConditions(r.When); err != nil {
		return nil, err
	}
	if r.Effect == record.Allow {
		if p.when, err = besides(p.when); err != nil {
			return nil, err
		}
	}
	if p.unless, err = parseConditions(r.Unless); err != nil {
		return nil, err
	}
	for _, example := range r.Examples {
		if _, _, _, err := toolcall.ParseExample(example); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parseConditions(list []record.Condition) ([]*condition, error) {
	var out []*condition
	for i := range list {
		c, err := parseCondition(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// inScope reports whether a rule is about the question's place.
func inScope(r *record.Rule, q *record.Question) bool {
	if r.Message != (chatctx.ID{}) && (r.Message != q.Message || r.Index != q.Index) {
		return false
	}
	own := r.Context == q.Context
	return (r.Branch == (chatctx.ID{}) || !own || r.Branch == q.Branch) && (r.Mode == "" || r.Mode == q.Mode)
}

// about reports whether a rule is about a tool. The name must match exactly for an allow; for other rules case does not count.
func (r *rule) about(tool string) bool {
	tool = norm.NFC.String(tool)
	if r.Effect == record.Allow {
		return r.names.text.MatchString(tool)
	}
	return r.names.foldedText.MatchString(tool)
}

// holds returns whether a rule holds for a call. An allow holds surely or not at all; other rules may be unsure.
func (r *rule) holds(s *subject, q *record.Question) (answer, string) {
	if r.Effect == record.Allow {
		return r.allows(s, q)
	}
	for _, c := range r.unless {
		if c.holds(s) {
			return no, "excepted: " + c.source.String()
		}
	}
	all, whys := yes, []string{}
	for _, c := range r.when {
		a, why := c.mayHold(s)
		if a == no {
			return no, why
		}
		all, whys = min(all, a), append(whys, why)
	}
	return all, reasons(whys)
}

func (r *rule) allows(s *subject, q *record.Question) (answer, string) {
	switch {
	case s.err != nil:
		return no, "the arguments cannot be read: " + s.err.Error()
	case s.twins:
		return no, "keys are one but for case: programs differ about which of them counts"
	}
	if name := undeclared(q.Schema, s.args); name != "" {
		return no, fmt.Sprintf("the tool's schema does not declare the argument %q", name)
	}
	for _, c := range r.unless {
		if a, why := c.mayHold(s); a != no {
			return no, "excepted: " + why
		}
	}
	var whys []string
	for _, c := range r.when {
		if !c.holds(s) {
			return no, "not surely: " + c.missing(s)
		}
		whys = append(whys, c.source.String())
	}
	return yes, reasons(whys)
}

func reasons(whys []string) string {
	if len(whys) == 0 {
		return "for all arguments"
	}
	return strings.Join(whys, "; ")
}

// subjectOf returns a call as conditions see it.
func subjectOf(q *record.Question) *subject {
	s := &subject{tool: q.Tool, dir: q.Dir, command: q.Command, env: q.Env}
	if s.args, s.err = jsontree.Arguments(jsontree.Unwrapped(q.Arguments)); s.err == nil {
		s.twins = differByCase(s.args)
	}
	return s
}

// held is a rule that holds for a call.
type held struct {
	*rule
	answer answer
	why    string
}

// Judge decides about a call by rules: a deny beats an ask, and an ask beats an allow. A deny whose conditions cannot be told asks, unless the default
// denies. If no rule holds, the default of the nearest scope decides; without a default the call waits. Of several rules with the same effect the most
// specific one is named: one for a call, a branch, a context, a parent, the store, in this order; then one with an exact name, then with a longer name,
// then with more conditions.
func (Rules) Judge(rules []*record.Rule, q *record.Question) *record.Ruling {
	s := subjectOf(q)
	var holding []held
	var fallback *record.Rule
	var notes []record.RuleNote
	for _, r := range rules {
		if !inScope(r, q) {
			continue
		}
		if r.Default {
			if fallback == nil || scope(r, q) > scope(fallback, q) {
				fallback = r
			}
			continue
		}
		one := held{}
		parsed, err := parseRule(r)
		switch {
		case err != nil: // no program of this version stores such a rule
			parsed = &rule{Rule: r}
			one = held{parsed, truth(r.Effect != record.Allow), "it cannot be read: " + err.Error()}
		case !parsed.about(q.Tool):
			continue
		default:
			a, why := parsed.holds(s, q)
			one = held{parsed, a, why}
		}
		notes = append(notes, record.RuleNote{Rule: r, Holds: one.answer != no, Why: one.why})
		if one.answer != no {
			holding = append(holding, one)
		}
	}
	ruling := rulingOf(holding, fallback, q)
	if ruling.Rule != nil {
		without := slices.DeleteFunc(slices.Clone(holding), func(h held) bool { return h.Rule == ruling.Rule })
		if ruling.Rule == fallback {
			fallback = nil
		}
		ruling.Without = rulingOf(without, fallback, q)
	}
	ruling.Notes = notes
	return ruling
}

// rulingOf decides by the rules that hold.
func rulingOf(holding []held, fallback *record.Rule, q *record.Question) *record.Ruling {
	for _, level := range []struct {
		effect string
		answer answer
	}{{record.Deny, yes}, {record.Deny, unsure}, {record.Ask, no}, {record.Allow, no}} {
		var best *held
		for i := range holding {
			h := &holding[i]
			if h.Effect != level.effect || level.answer != no && h.answer != level.answer {
				continue
			}
			if best == nil || slices.Compare(rank(h.Rule, q), rank(best.Rule, q)) > 0 {
				best = h
			}
		}
		if best == nil {
			continue
		}
		ruling := &record.Ruling{Effect: level.effect, Rule: best.Rule, Inherited: inherited(best.Rule, q), Why: best.why}
		if ruling.Untold = level.answer == unsure; ruling.Untold && (fallback == nil || fallback.Effect != record.Deny) {
			ruling.Effect = record.Ask
		}
		return ruling
	}
	if fallback == nil {
		return &record.Ruling{Effect: record.Ask, Why: "no rule decides"}
	}
	return &record.Ruling{Effect: fallback.Effect, Rule: fallback, Inherited: inherited(fallback, q), Why: "no other rule decides"}
}

func inherited(r *record.Rule, q *record.Question) bool {
	return r.Context != (chatctx.ID{}) && r.Context != q.Context
}

// scope returns how near a rule is: 4 for the call, 3 the branch, 2 the context, 1 a parent, 0 the store.
func scope(r *record.Rule, q *record.Question) int {
	n := map[string]int{"call": 4, "branch": 3, "context": 2, "store": 0}[r.ScopeWord()]
	if inherited(r, q) {
		n = 1
	}
	return n
}

// rank returns how specific a rule is. Ranks are compared from the left; the larger one wins.
func rank(r *record.Rule, q *record.Question) []int {
	exact, literal := 1, 0
	for _, c := range r.Tool {
		if strings.ContainsRune(`*?[{\`, c) {
			exact = 0
		} else {
			literal++
		}
	}
	return []int{scope(r, q), exact, literal, len(r.When) + len(r.Unless)}
}
