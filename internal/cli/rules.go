package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

const ruleFields = "rule, effect, tool, when[{argument, op, value}], unless[{argument, op, value}], examples[], default, scope, context, branch_id, call, expires, after, reason, mode, by, created_at"

const rulesHelp = `A rule applies at once in every program. Deny beats ask, and ask beats allow, whatever their scope. If no rule applies, the default decides (rules default); without a default the call waits.
A condition is ARGUMENT OP VALUE, or tool PATTERN. OP is equals (a JSON value, or a text), prefix, glob (* is everything in a text, and stays within a name in a path), regexp (the whole value), range (LO..HI), under (a folder, after symbolic links), each (patterns of the words that every command of a shell text begins with), writes (patterns of the files that its redirections open) or sets (of the variables that it sets). In an allow, writes and sets stand beside each on the same argument; without them it covers no file but /dev/null. ARGUMENT is a name: options.path goes into an object, paths[*] is each element, {} is all arguments. A name with a dot, and the name tool, is quoted.
An allow applies if its conditions surely hold: for each element and command, to the letter. A deny or ask applies if they possibly hold: for one of them, whatever its case. A deny that cannot be decided asks.`

// ruleFlags describe a rule.
type ruleFlags struct {
	When   []string        `flag:"when" doc:"a {CONDITION}: \"path under /srv\"; may be given again, all must hold"`
	Unless []string        `flag:"unless" doc:"a {CONDITION} under which the rule does not apply: \"tool read_*\"; may be given again, one is enough"`
	Call   chatctx.CallRef `flag:"call" doc:"for one {CALL} alone"`
	hereFlag
	allRulesFlag
	For     *time.Duration `flag:"for" doc:"the rule applies for this {TIME}"`
	After   time.Duration  `flag:"after" doc:"with ask: calls that nobody decides expire after this {TIME}"`
	Mode    string         `flag:"mode" doc:"only while the setting mode is this {MODE}"`
	Reason  string         `flag:"reason" doc:"the {REASON}; that of a denial goes to the model"`
	Example []string       `flag:"example" doc:"a decision that must hold, as {'TOOL JSON => EFFECT'}: stored with the rule, and a change of rules that breaks it is refused; may be given again"`
}

type hereFlag struct {
	Here bool `flag:"here" doc:"for this branch alone"`
}

type allRulesFlag struct {
	Store bool `flag:"store" doc:"for all conversations (name another store before the command: chatctx --store FILE rules)"`
}

func ruleCommands() []*command {
	return []*command{
		{name: "rules", does: "rules that decide about tool calls", scope: onBranch, subs: []*command{
			{name: "add", does: "add a rule: allow, deny or ask, for tools whose name matches a pattern", scope: onBranch, run: in(doRulesAdd),
				more: rulesHelp,
				json: ruleFields + ", broken[{rule, example, is, at}], operation", example: "chatctx rules add allow \"read_*\" --when \"path under /srv/docs\"\nchatctx rules add allow sh --when \"command each ls\" --example \"sh {} => ask\"\nchatctx rules add deny \"*\" --unless \"tool read_*\" --store --reason \"read only\""},
			{name: "ls", does: "list the rules that count here: the conversation's, its parents', the store's", scope: onBranch, run: in(doRulesLs),
				json: ruleFields + "; a line each", example: "chatctx rules ls"},
			{name: "rm", does: "remove rules", scope: onBranch, run: in(doRulesRm),
				json: ruleFields + ", operation; a line each", example: "chatctx rules rm 1a2b3c4d"},
			{name: "default", does: "say what becomes of calls that no rule decides: they wait, or they are denied", scope: onBranch, run: in(doRulesDefault),
				more: "The default of the nearest scope counts: the branch, the conversation, a parent, the store. A deny that cannot be decided asks; with the default deny it denies.",
				json: ruleFields + ", broken[{rule, example, is, at}], operation", example: "chatctx rules default deny --store"},
			{name: "test", does: "show which rule decides about a call, or about a tool with arguments, and what would happen without it", scope: onBranch, run: in(doRulesTest),
				json: "effect, rule, untold, inherited, why, without{effect, rule}, rules[{rule, effect, tool, holds, why}]", example: "chatctx rules test @:1\nchatctx rules test read_file {}"},
			{name: "diff", does: "show which recorded calls one more rule, or with --rm one less, would decide differently; nothing is written", scope: onBranch, run: in(doRulesDiff),
				json: callFields + ", before{effect, rule}, after{effect, rule}; a line each", example: "chatctx rules diff deny shell --when \"command each rm\"\nchatctx rules diff --rm 1a2b3c4d"},
		}},
	}
}

// rule makes the rule that the flags describe.
func (f *ruleFlags) rule(effect, tool string) (*chatctx.Rule, error) {
	rule := &chatctx.Rule{Effect: effect, Tool: tool, After: f.After, Mode: f.Mode, Reason: f.Reason, Examples: f.Example}
	for _, text := range slices.Concat(f.When, f.Unless, f.Example, []string{tool, f.Reason, f.Mode}) {
		if err := validText(text); err != nil {
			return nil, err
		}
	}
	var err error
	if rule.When, err = conditions(f.When); err != nil {
		return nil, err
	}
	if rule.Unless, err = conditions(f.Unless); err != nil {
		return nil, err
	}
	if d := valueOf(f.For); d > 0 {
		rule.Expires = pool.Now() + pool.Time(d.Microseconds())
	} else if f.For != nil {
		return nil, usagef("--for takes a time: 10m, 24h")
	}
	scopes := 0
	for _, on := range []bool{f.Call != "", f.Here, f.Store} {
		if on {
			scopes++
		}
	}
	if scopes > 1 {
		return nil, usagef("a rule takes one of --call, --here and --store; without them it is for the conversation")
	}
	return rule, approval.Rules{}.Rule(rule)
}

// conditions parses --when and --unless. A quoted name of an argument may contain spaces.
func conditions(texts []string) ([]chatctx.Condition, error) {
	var out []chatctx.Condition
	for _, s := range texts {
		argument, op, value, ok := approval.SplitCondition(s)
		if !ok {
			return nil, &usageError{fmt.Sprintf("the condition %q", s), "write ARGUMENT OP VALUE: \"path under /srv\", with one of " + strings.Join(approval.Ops, ", ") + "; or tool PATTERN"}
		}
		out = append(out, chatctx.Condition{Argument: argument, Op: op, Value: value})
	}
	return out, nil
}

type rulesAddIn struct {
	Effect string `arg:"EFFECT"`
	Tool   string `arg:"TOOL"`
	ruleFlags
}

func doRulesAdd(r *run, in *rulesAddIn) error {
	rule, err := in.rule(in.Effect, in.Tool)
	if err != nil {
		return err
	}
	return r.addRule(rule, in.Store, chatctx.RuleScope{Branch: in.Here, Call: in.Call})
}

type rulesDefaultIn struct {
	Effect string `arg:"ask|deny"`
	hereFlag
	allRulesFlag
}

func doRulesDefault(r *run, in *rulesDefaultIn) error {
	if in.Here && in.Store {
		return usagef("a default takes --here or --store, not both; without them it is for the conversation")
	}
	rule := &chatctx.Rule{Default: true, Effect: in.Effect}
	if err := (approval.Rules{}).Rule(rule); err != nil {
		return usagef("rules default takes ask or deny, not %q", in.Effect)
	}
	return r.addRule(rule, in.Store, chatctx.RuleScope{Branch: in.Here})
}

// addRule stores a rule: for all conversations, or in a scope of this one.
func (r *run) addRule(rule *chatctx.Rule, store bool, scope chatctx.RuleScope) error {
	var done *chatctx.Committed
	var err error
	if store {
		st, err := r.writer()
		if err != nil {
			return err
		}
		done, err = st.AddRule(r.ctx, *rule)
		if err != nil {
			return err
		}
	} else if done, err = r.change(func(b *chatctx.Batch) { b.AddRule(*rule, scope) }); err != nil {
		return err
	}
	step := done.Last()
	v := ruleToJSON(step.Rule)
	v.Operation, v.Broken = done.Operation, contract.BrokenOf(step.Broken)
	r.noteBroken(step.Broken)
	return r.made(done, v, "rule %s: %s, for the %s", short(step.Rule.ID), clean(step.Rule.String()), screen.Scope(step.Rule))
}

// noteBroken names the examples that a change of rules breaks.
func (r *run) noteBroken(all []chatctx.BrokenExample) {
	for _, b := range all {
		from := ""
		if b.At != 0 {
			from = ", from " + moment(b.At) + " on"
		}
		r.note("it breaks an example of rule %s: %s, and it is %s%s", short(b.Rule.ID), clean(b.Example), b.Is, from)
	}
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
	ruleFlags
}

func doRulesDiff(r *run, in *rulesDiffIn) error {
	if (in.Rm != "") == (in.Effect != "") || in.Effect != "" && in.Tool == "" {
		return usagef("rules diff takes EFFECT TOOL like rules add, or --rm RULE")
	}
	var rule *chatctx.Rule
	var err error
	if in.Rm == "" {
		if rule, err = in.rule(in.Effect, in.Tool); err != nil {
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
		old, err := st.FindRule(r.ctx, context, in.Rm)
		if err != nil {
			return err
		}
		gone = old.ID
	} else if err := r.scopeRule(st, rule, context, in.Here, in.Call); err != nil {
		return err
	}
	n, titles := 0, map[chatctx.ID]string{}
	err = st.DiffRules(r.ctx, rule, gone, func(d chatctx.RuleDifference) error {
		n++
		v := differenceJSON{callToJSON(d.Call), rulingToJSON(d.Before), rulingToJSON(d.After)}
		return r.emit(v, func() {
			r.callLine(st, d.Call, titles)
			r.printf("    %s → %s\n", rulingText(d.Before), rulingText(d.After))
		})
	})
	if err == nil && n == 0 {
		r.note("no call on record would be decided otherwise")
	}
	return err
}

// scopeRule sets where a rule that is only tried would hold: on this branch alone if here, and for a call if that is not "".
func (r *run) scopeRule(st *chatctx.Store, rule *chatctx.Rule, context chatctx.ID, here bool, call chatctx.CallRef) error {
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

func rulingToJSON(j *chatctx.Ruling) withoutJSON {
	v := withoutJSON{Effect: j.Effect}
	if j.Rule != nil {
		v.Rule = &j.Rule.ID
	}
	return v
}

func rulingText(j *chatctx.Ruling) string {
	if j.Rule == nil {
		return j.Effect
	}
	return fmt.Sprintf("%s by rule %s", j.Effect, short(j.Rule.ID))
}

func doRulesLs(r *run, in *allRulesFlag) error {
	owner, err := r.owner(in.Store)
	if err != nil {
		return err
	}
	rules, err := r.st.Rules(r.ctx, owner)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		err := r.emit(ruleToJSON(rule), func() {
			words := []string{r.paint(yellow, short(rule.ID)), pad(screen.Scope(rule), 12), clean(rule.String())}
			if rule.Expires != 0 {
				words = append(words, "until "+moment(rule.Expires))
			}
			if rule.Reason != "" {
				words = append(words, "("+oneLine(rule.Reason)+")")
			}
			r.row(4, "%s", strings.Join(words, "  "))
		})
		if err != nil {
			return err
		}
	}
	if len(rules) == 0 {
		r.note("no rules: every call waits for a decision; %s", r.again("rules add allow TOOL"))
	}
	return nil
}

// owner opens the store, and returns the context whose rules and tools a command is about, zero for those of all contexts.
func (r *run) owner(all bool) (chatctx.ID, error) {
	if all {
		_, err := r.reader()
		return chatctx.ID{}, err
	}
	c, err := r.conversation()
	if err != nil {
		return chatctx.ID{}, err
	}
	return c.ID, nil
}

type rulesRmIn struct {
	Rules []string `arg:"RULE…"`
	allRulesFlag
}

func doRulesRm(r *run, in *rulesRmIn) error {
	for _, ref := range in.Rules {
		var done *chatctx.Committed
		var err error
		if in.Store {
			var st *chatctx.Store
			if st, err = r.writer(); err == nil {
				done, err = st.RemoveRule(r.ctx, ref)
			}
		} else {
			done, err = r.change(func(b *chatctx.Batch) { b.RemoveRule(ref) })
		}
		r.close()
		if err != nil {
			return err
		}
		rule := done.Last().Rule
		v := ruleToJSON(rule)
		v.Operation = done.Operation
		if err := r.made(done, v, "removed rule %s: %s", short(rule.ID), clean(rule.String())); err != nil {
			return err
		}
	}
	return nil
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
	var j *chatctx.Ruling
	c, err := st.Call(r.ctx, r.contextRef(), r.branchName(), chatctx.CallRef(in.Name))
	if len(args) == 0 && err == nil {
		j, err = st.Judge(r.ctx, c)
	} else {
		var cc *chatctx.ChatContext
		if cc, err = st.Context(r.ctx, r.contextRef()); err != nil {
			return contextHint(err)
		}
		j, err = cc.Judge(r.ctx, r.branchName(), in.Name, args)
	}
	if err != nil {
		return err
	}
	return r.judged(j)
}

func (r *run) judged(j *chatctx.Ruling) error {
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
func (r *run) rulingLine(j *chatctx.Ruling) string { return screen.RulingLine(j) }
