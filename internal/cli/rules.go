package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
)

func ruleCommands() []*command {
	return []*command{
		{name: "rules", scope: onBranch, subs: []*command{
			{name: "add"}, {name: "ls"}, {name: "rm"}, {name: "default"},
			{name: "test"}, {name: "diff"},
		}},
	}
}

func init() { lookGroups = append(lookGroups, ruleLooks) }

func ruleLooks() map[string]look {
	return map[string]look{
		"rules.add": preparing(func(_ *run, in *operation.NewRule) error {
			_, err := checkedRule(&in.RuleTerms, in.Effect, in.Tool)
			return err
		}, as(func(r *run, _ *operation.NewRule, v contract.Rule) { r.ruleAdded(v) })),
		"rules.default": preparing(func(_ *run, in *operation.DefaultRule) error {
			if in.Here && in.Store {
				return usagef("a default takes --here or --global, not both; without them it is for the conversation")
			}
			return nil
		}, as(func(r *run, _ *operation.DefaultRule, v contract.Rule) { r.ruleAdded(v) })),
		"rules.list": as(func(r *run, _ *operation.RuleList, v contract.Rule) { r.ruleLine(v.Rule) }).
			orNone(func(r *run) { r.note("no rules: every call waits for a decision; %s", r.again("rules add allow TOOL")) }),
		"rules.test": preparing(func(_ *run, in *operation.RuleTrial) error {
			if in.Arguments != "" && !json.Valid([]byte(in.Arguments)) {
				return usagef("the arguments are not JSON")
			}
			return nil
		}, as((*run).judged)),
		"rules.diff": preparing(checkRuleChange, as(func(r *run, _ *operation.RuleChange, v operation.Difference) {
			r.callLine(v.Call.Call, callState(v.Call.Call), v.Title)
			r.printf("    %s → %s\n", rulingText(v.Before.Ruling), rulingText(v.After.Ruling))
		})).orNone(func(r *run) { r.note("no call on record would be decided otherwise") }),
		"rules.remove": as(func(r *run, _ *operation.RuleRef, v contract.Rule) {
			r.printf("removed rule %s: %s\n", short(v.Rule.ID), clean(v.Rule.String()))
		}),
	}
}

// checkedRule makes the rule that flags describe, and refuses what the store is not needed to refuse.
func checkedRule(in *operation.RuleTerms, effect, tool string) (*record.Rule, error) {
	rule := in.Rule(effect, tool)
	if in.For != nil && *in.For <= 0 {
		return nil, usagef("--for takes a time: 10m, 24h")
	}
	scopes := 0
	for _, on := range []bool{in.Call != "", in.Here, in.Store} {
		if on {
			scopes++
		}
	}
	if scopes > 1 {
		return nil, usagef("a rule takes one of --call, --here and --global; without them it is for the conversation")
	}
	return &rule, approval.Rules{}.Rule(&rule)
}

// ruleAdded shows a rule that was added, and the examples that it breaks.
func (r *run) ruleAdded(v contract.Rule) {
	for _, b := range v.Broken {
		r.noteBroken(b.Broken)
	}
	r.printf("rule %s: %s, for the %s\n", short(v.Rule.ID), clean(v.Rule.String()), screen.Scope(v.Rule))
}

// noteBroken names examples that a change of rules breaks.
func (r *run) noteBroken(all ...record.Broken) {
	for _, b := range all {
		from := ""
		if b.At != 0 {
			from = ", from " + moment(b.At) + " on"
		}
		r.note("it breaks an example of rule %s: %s, and it is %s%s", short(b.Rule.ID), clean(b.Example), b.Is, from)
	}
}

func (r *run) ruleLine(rule *record.Rule) {
	words := []string{r.paint(yellow, short(rule.ID)), pad(screen.Scope(rule), 12), clean(rule.String())}
	if rule.Expires != 0 {
		words = append(words, "until "+moment(rule.Expires))
	}
	if rule.Reason != "" {
		words = append(words, "("+oneLine(rule.Reason)+")")
	}
	r.row(4, "%s", strings.Join(words, "  "))
}

// checkRuleChange refuses what is not one more rule, or one less.
func checkRuleChange(_ *run, in *operation.RuleChange) error {
	if (in.Rm != "") == (in.Effect != "") || in.Effect != "" && in.Tool == "" {
		return usagef("rules diff takes EFFECT TOOL like rules add, or --rm RULE")
	}
	if in.Rm != "" {
		return nil
	}
	_, err := checkedRule(&in.RuleTerms, in.Effect, in.Tool)
	return err
}

func rulingText(j *record.Ruling) string {
	if j.Rule == nil {
		return j.Effect
	}
	return fmt.Sprintf("%s by rule %s", j.Effect, short(j.Rule.ID))
}

// judged shows which rule decides, and what would be without it.
func (r *run) judged(_ *operation.RuleTrial, v operation.Judged) {
	j := v.Ruling
	r.printf("%s\n", r.rulingLine(j))
	if j.Rule != nil {
		by := "no rule would decide"
		if w := j.Without.Rule; w != nil {
			by = fmt.Sprintf("by rule %s: %s", short(w.ID), clean(w.String()))
		}
		r.printf("without it: %s, %s\n", j.Without.Effect, by)
	}
	for _, n := range j.Notes {
		r.printf("  %s %s  %s\n", map[bool]string{true: "holds", false: "not  "}[n.Holds], r.paint(yellow, short(n.Rule.ID)), clean(n.Rule.String()+" ("+n.Why+")"))
	}
}

// rulingLine says what rules decide, and why.
func (r *run) rulingLine(j *record.Ruling) string { return screen.RulingLine(j) }
