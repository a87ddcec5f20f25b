package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/pool"
)

const ruleFields = "rule, effect, tool, when[{argument, op, value}], scope, context, branch_id, call, priority, expires, after, reason, mode, by, created_at"

func ruleCommands() []*command {
	store := &urfave.BoolFlag{Name: "store", Usage: "for all contexts (name another store before the command: chatctx --store FILE rules)"}
	return []*command{
		{name: "rules", does: "rules that decide about tool calls", scope: onBranch, subs: []*command{
			{name: "add", args: "EFFECT TOOL", does: "add a rule: allow, deny or ask, for tools whose name matches a pattern", scope: onBranch, do: doRulesAdd,
				more: "A rule holds at once in every program. Of the rules that hold for a call the one with the highest priority decides, of these the most specific: for a call, a branch, the context, a parent, the store; an exact name; the longer name; more conditions. Of equals deny comes before ask before allow. " +
					"A condition is ARGUMENT OP VALUE with one of equals, prefix, glob, regexp (the whole value), range (LO..HI), under (a folder, after symbolic links). What cannot be told never allows.",
				flags: []urfave.Flag{
					&urfave.StringSliceFlag{Name: "when", Usage: "a `CONDITION` on an argument: \"path under /srv\"; may be given again, all have to hold"},
					&urfave.StringFlag{Name: "call", Usage: "for one `CALL` alone"},
					&urfave.BoolFlag{Name: "here", Usage: "for this branch alone"},
					store,
					&urfave.IntFlag{Name: "priority", Usage: "`N`, the highest decides; else 0"},
					&urfave.DurationFlag{Name: "for", Usage: "the rule holds for this `TIME`"},
					&urfave.DurationFlag{Name: "after", Usage: "of ask: calls that nobody decides expire after this `TIME`"},
					&urfave.StringFlag{Name: "mode", Usage: "only while the setting mode is this `MODE`"},
					&urfave.StringFlag{Name: "reason", Usage: "the `REASON`; that of a denial goes to the model"},
				},
				json: ruleFields + ", operation", example: "chatctx rules add allow \"read_*\" --when \"path under /srv/docs\"\nchatctx rules add deny \"*\" --when \"path under /etc\" --store --reason \"not there\"\nchatctx rules add ask write_file --after 30m"},
			{name: "ls", does: "list the rules that count here: the context's, its parents', the store's", scope: onBranch, do: doRulesLs, flags: []urfave.Flag{store},
				json: ruleFields + "; a line each", example: "chatctx rules ls"},
			{name: "rm", args: "RULE…", does: "take rules away", scope: onBranch, do: doRulesRm, flags: []urfave.Flag{store},
				json: ruleFields + ", operation; a line each", example: "chatctx rules rm 1a2b3c4d"},
			{name: "test", args: "CALL|TOOL [ARGUMENTS]", does: "show which rule decides about a call, or about a tool with arguments, and what would be without it", scope: onBranch, do: doRulesTest,
				json: "effect, rule, inherited, without{effect, rule}, rules[{rule, effect, tool, holds, why}]", example: "chatctx rules test @:1\nchatctx rules test read_file {}"},
		}},
	}
}

// ruleJSON is a rule.
type ruleJSON struct {
	Rule      chatctx.ID      `json:"rule"`
	Effect    string          `json:"effect"`
	Tool      string          `json:"tool"`
	When      []conditionJSON `json:"when"`
	Scope     string          `json:"scope"`
	Context   *chatctx.ID     `json:"context,omitempty"`
	Branch    *chatctx.ID     `json:"branch_id,omitempty"`
	Call      string          `json:"call,omitempty"`
	Priority  int             `json:"priority"`
	Expires   *time.Time      `json:"expires,omitempty"`
	After     string          `json:"after,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Mode      string          `json:"mode,omitempty"`
	By        string          `json:"by"`
	Created   *time.Time      `json:"created_at"`
	Operation string          `json:"operation,omitempty"`
}

type conditionJSON struct {
	Argument string `json:"argument"`
	Op       string `json:"op"`
	Value    string `json:"value"`
}

func ruleToJSON(r *chatctx.Rule) ruleJSON {
	v := ruleJSON{Rule: r.ID, Effect: r.Effect, Tool: r.Tool, When: []conditionJSON{}, Scope: r.ScopeWord(), Context: idOrNull(r.Context), Branch: idOrNull(r.Branch),
		Priority: r.Priority, Expires: jsonTime(r.Expires), Reason: r.Reason, Mode: r.Mode, By: r.By, Created: jsonTime(r.Created)}
	for _, c := range r.When {
		v.When = append(v.When, conditionJSON(c))
	}
	if r.Message != (chatctx.ID{}) {
		v.Call = fmt.Sprintf("%s:%d", r.Message, r.Index)
	}
	if r.After > 0 {
		v.After = r.After.String()
	}
	return v
}

// newRule is the rule that the command line describes.
func (r *run) newRule() (*chatctx.Rule, error) {
	rule := &chatctx.Rule{Effect: r.arg(0), Tool: r.arg(1), Priority: r.flags.Int("priority"), After: r.flags.Duration("after"), Mode: r.flag("mode"), Reason: r.flag("reason")}
	for _, text := range append(r.flags.StringSlice("when"), rule.Tool, rule.Reason, rule.Mode) {
		if err := validText(text); err != nil {
			return nil, err
		}
	}
	for _, s := range r.flags.StringSlice("when") {
		words := strings.SplitN(s, " ", 3)
		if len(words) < 3 {
			return nil, &usageError{fmt.Sprintf("the condition %q", s), "write ARGUMENT OP VALUE: \"path under /srv\", with one of " + strings.Join(approval.Ops, ", ")}
		}
		rule.When = append(rule.When, chatctx.Condition{Argument: words[0], Op: words[1], Value: words[2]})
	}
	if d := r.flags.Duration("for"); d > 0 {
		rule.Expires = pool.Now() + pool.Time(d.Microseconds())
	} else if r.given("for") {
		return nil, usagef("--for takes a time: 10m, 24h")
	}
	scopes := 0
	for _, on := range []bool{r.given("call"), r.is("here"), r.is("store")} {
		if on {
			scopes++
		}
	}
	if scopes > 1 {
		return nil, usagef("a rule is for --call, --here, --store or else the context")
	}
	return rule, approval.CheckRule(rule)
}

func doRulesAdd(r *run) error {
	rule, err := r.newRule()
	if err != nil {
		return err
	}
	var done *chatctx.Committed
	if r.is("store") {
		st, err := r.writer()
		if err != nil {
			return err
		}
		done, err = st.AddRule(r.ctx, *rule)
		if err != nil {
			return err
		}
	} else {
		done, err = r.change(func(b *chatctx.Batch) {
			b.AddRule(*rule, chatctx.RuleScope{Branch: r.is("here"), Call: chatctx.CallRef(r.flag("call"))})
		})
		if err != nil {
			return err
		}
	}
	rule = done.Last().Rule
	v := ruleToJSON(rule)
	v.Operation = done.Operation
	return r.made(done, v, "rule %s: %s, for the %s", short(rule.ID), clean(rule.String()), rule.ScopeWord())
}

func doRulesLs(r *run) error {
	rules, err := r.rules()
	if err != nil {
		return err
	}
	for _, rule := range rules {
		err := r.emit(ruleToJSON(rule), func() {
			words := []string{r.paint(yellow, short(rule.ID)), pad(rule.ScopeWord(), 7), clean(rule.String())}
			if rule.Priority != 0 {
				words = append(words, fmt.Sprintf("priority %d", rule.Priority))
			}
			if rule.Expires != 0 {
				words = append(words, "until "+moment(rule.Expires))
			}
			if rule.Reason != "" {
				words = append(words, "("+oneLine(rule.Reason)+")")
			}
			r.printf("%s\n", strings.Join(words, "  "))
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

// rules are those that the flags name.
func (r *run) rules() ([]*chatctx.Rule, error) {
	if r.is("store") {
		st, err := r.reader()
		if err != nil {
			return nil, err
		}
		return st.Rules(r.ctx, chatctx.ID{})
	}
	c, err := r.conversation()
	if err != nil {
		return nil, err
	}
	return c.Store().Rules(r.ctx, c.ID)
}

func doRulesRm(r *run) error {
	for _, ref := range r.args {
		var done *chatctx.Committed
		var err error
		if r.is("store") {
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
		if err := r.made(done, v, "took away rule %s: %s", short(rule.ID), clean(rule.String())); err != nil {
			return err
		}
	}
	return nil
}

// judgedJSON is what rules say.
type judgedJSON struct {
	Effect    string         `json:"effect"`
	Rule      *chatctx.ID    `json:"rule"`
	Inherited bool           `json:"inherited"`
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

func doRulesTest(r *run) error {
	args := json.RawMessage(r.arg(1))
	if len(r.args) > 1 && !json.Valid(args) {
		return usagef("the arguments are no JSON")
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	ruler := &approval.Ruler{Store: st}
	var j *approval.Judgement
	c, err := st.Call(r.ctx, r.contextRef(), r.branchName(), chatctx.CallRef(r.arg(0)))
	if len(r.args) == 1 && err == nil {
		j, err = ruler.Judge(r.ctx, c)
	} else {
		var cc *chatctx.ChatContext
		if cc, err = st.Context(r.ctx, r.contextRef()); err != nil {
			return contextHint(err)
		}
		j, err = ruler.Ask(r.ctx, cc, r.branchName(), approval.Question{Tool: r.arg(0), Arguments: args})
	}
	if err != nil {
		return err
	}
	return r.judged(j)
}

func (r *run) judged(j *approval.Judgement) error {
	v := judgedJSON{Effect: j.Effect, Inherited: j.Inherited, Rules: []ruleNoteJSON{}}
	for _, n := range j.Notes {
		v.Rules = append(v.Rules, ruleNoteJSON{n.Rule.ID, n.Rule.Effect, n.Rule.Tool, n.Holds, n.Why})
	}
	if j.Rule != nil {
		v.Rule, v.Without = &j.Rule.ID, &withoutJSON{Effect: j.Without.Effect}
		if j.Without.Rule != nil {
			v.Without.Rule = &j.Without.Rule.ID
		}
	}
	return r.emit(v, func() {
		if j.Rule == nil {
			r.printf("ask: no rule decides\n")
		} else {
			r.printf("%s: by rule %s of the %s: %s\n", j.Effect, short(j.Rule.ID), j.Rule.ScopeWord(), clean(j.Rule.String()))
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
