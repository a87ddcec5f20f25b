package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/toolcall"
)

func ruleCommands() []*command {
	return []*command{
		{name: "rules", scope: onBranch, subs: []*command{
			{name: "add"}, {name: "ls"}, {name: "rm"}, {name: "default"},
			{name: "test", does: "show which rule decides about a call, or about a tool with arguments, and what would happen without it", scope: onBranch, run: in(doRulesTest),
				json: "effect, rule, untold, inherited, why, without{effect, rule}, rules[{rule, effect, tool, holds, why}]", example: "chatctx rules test @:1\nchatctx rules test read_file {}"},
			{name: "diff", does: "show which recorded calls one more rule, or with --rm one less, would decide differently; nothing is written", scope: onBranch, run: in(doRulesDiff),
				json: callFields + ", before{effect, rule}, after{effect, rule}; a line each", example: "chatctx rules diff deny shell --when \"command each rm\"\nchatctx rules diff --rm 1a2b3c4d"},
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
				return usagef("a default takes --here or --store, not both; without them it is for the conversation")
			}
			return nil
		}, as(func(r *run, _ *operation.DefaultRule, v contract.Rule) { r.ruleAdded(v) })),
		"rules.list": as(func(r *run, _ *operation.RuleList, v contract.Rule) { r.ruleLine(v.Rule) }).
			orNone(func(r *run) { r.note("no rules: every call waits for a decision; %s", r.again("rules add allow TOOL")) }),
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
		return nil, usagef("a rule takes one of --call, --here and --store; without them it is for the conversation")
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

// differenceJSON is a call that would be decided differently.
type differenceJSON struct {
	callJSON
	Before withoutJSON `json:"before"`
	After  withoutJSON `json:"after"`
}

type rulesDiffIn struct {
	Effect string `arg:"[EFFECT]"`
	Tool   string `arg:"[TOOL]"`
	Rm     string `flag:"rm" doc:"without this {RULE}"`
	operation.RuleTerms
}

func doRulesDiff(r *run, in *rulesDiffIn) error {
	if (in.Rm != "") == (in.Effect != "") || in.Effect != "" && in.Tool == "" {
		return usagef("rules diff takes EFFECT TOOL like rules add, or --rm RULE")
	}
	var rule *record.Rule
	var err error
	if in.Rm == "" {
		if rule, err = checkedRule(&in.RuleTerms, in.Effect, in.Tool); err != nil {
			return err
		}
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	var context, gone chatctx.ID
	if !in.Store {
		c, err := st.Context(r.ctx, r.contextRef())
		if err != nil {
			return contextHint(err)
		}
		context = c.ID
	}
	if rule == nil {
		old, err := toolcall.RuleOf(r.ctx, base.Of(st), context, in.Rm)
		if err != nil {
			return err
		}
		gone = old.ID
	} else if err := r.scopeRule(st, rule, context, in.Here, in.Call); err != nil {
		return err
	}
	n := 0
	err = toolcall.DiffRule(r.ctx, base.Of(st), rule, gone, func(d record.RuleDifference) error {
		n++
		v := differenceJSON{callToJSON(d.Call), rulingToJSON(d.Before), rulingToJSON(d.After)}
		return r.emit(v, func() {
			r.callLine(d.Call, callState(d.Call), r.titleOf(d.Call.Context))
			r.printf("    %s → %s\n", rulingText(d.Before), rulingText(d.After))
		})
	})
	if err == nil && n == 0 {
		r.note("no call on record would be decided otherwise")
	}
	return err
}

// scopeRule sets where a rule that is only tried would hold: on this branch alone if here, and for a call if that is not "".
func (r *run) scopeRule(st *chatctx.Store, rule *record.Rule, context chatctx.ID, here bool, call record.CallRef) error {
	rule.Context = context
	if here {
		c, err := st.Context(r.ctx, context.String())
		if err != nil {
			return err
		}
		b, err := c.Branch(r.ctx, r.branchName())
		if err != nil {
			return err
		}
		rule.Branch = b.ID
	}
	if call != "" {
		c, err := r.callByRef(st, call)
		if err != nil {
			return err
		}
		rule.Message, rule.Index = c.Message, c.Index
	}
	return nil
}

func rulingToJSON(j *record.Ruling) withoutJSON {
	v := withoutJSON{Effect: j.Effect}
	if j.Rule != nil {
		v.Rule = &j.Rule.ID
	}
	return v
}

func rulingText(j *record.Ruling) string {
	if j.Rule == nil {
		return j.Effect
	}
	return fmt.Sprintf("%s by rule %s", j.Effect, short(j.Rule.ID))
}

// judgedJSON is what rules say.
type judgedJSON struct {
	Effect    string         `json:"effect"`
	Rule      *chatctx.ID    `json:"rule"`
	Untold    bool           `json:"untold,omitempty"`
	Inherited bool           `json:"inherited"`
	Why       string         `json:"why"`
	Without   *withoutJSON   `json:"without,omitempty"`
	Rules     []ruleNoteJSON `json:"rules"`
}

type withoutJSON struct {
	Effect string      `json:"effect"`
	Rule   *chatctx.ID `json:"rule"`
}

type ruleNoteJSON struct {
	Rule   chatctx.ID `json:"rule"`
	Effect string     `json:"effect"`
	Tool   string     `json:"tool"`
	Holds  bool       `json:"holds"`
	Why    string     `json:"why"`
}

type rulesTestIn struct {
	Name      string `arg:"CALL|TOOL"`
	Arguments string `arg:"[ARGUMENTS]"`
}

func doRulesTest(r *run, in *rulesTestIn) error {
	args := json.RawMessage(in.Arguments)
	if len(args) > 0 && !json.Valid(args) {
		return usagef("the arguments are not JSON")
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	var j *record.Ruling
	c, err := st.Call(r.ctx, r.contextRef(), r.branchName(), record.CallRef(in.Name))
	if len(args) == 0 && err == nil {
		j, err = toolcall.Judge(r.ctx, base.Of(st), c)
	} else {
		var cc *chatctx.ChatContext
		if cc, err = st.Context(r.ctx, r.contextRef()); err != nil {
			return contextHint(err)
		}
		j, err = toolcall.JudgeTool(r.ctx, base.ContextOf(cc.Store(), cc.ID), r.branchName(), in.Name, args)
	}
	if err != nil {
		return err
	}
	return r.judged(j)
}

func (r *run) judged(j *record.Ruling) error {
	v := judgedJSON{Effect: j.Effect, Untold: j.Untold, Inherited: j.Inherited, Why: j.Why, Rules: []ruleNoteJSON{}}
	for _, n := range j.Notes {
		v.Rules = append(v.Rules, ruleNoteJSON{n.Rule.ID, n.Rule.Effect, n.Rule.Tool, n.Holds, n.Why})
	}
	if j.Rule != nil {
		without := rulingToJSON(j.Without)
		v.Rule, v.Without = &j.Rule.ID, &without
	}
	return r.emit(v, func() {
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
	})
}

// rulingLine says what rules decide, and why.
func (r *run) rulingLine(j *record.Ruling) string { return screen.RulingLine(j) }
