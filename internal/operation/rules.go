package operation

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

func init() {
	Register(Group{Heading: "Tools and their calls", Command: "rules", Does: "rules that decide about tool calls", Of: ruleOperations})
}

const rulesHelp = `A rule applies at once in every program. Deny beats ask, and ask beats allow, whatever their scope. If no rule applies, the default decides (rules default); without a default the call waits.
A condition is ARGUMENT OP VALUE, or tool PATTERN. OP is equals (a JSON value, or a text), prefix, glob (* is everything in a text, and stays within a name in a path), regexp (the whole value), range (LO..HI), under (a folder, after symbolic links), each (patterns of the words that every command of a shell text begins with), writes (patterns of the files that its redirections open) or sets (of the variables that it sets). In an allow, writes and sets stand beside each on the same argument; without them it covers no file but /dev/null. ARGUMENT is a name: options.path goes into an object, paths[*] is each element, {} is all arguments. A name with a dot, and the name tool, is quoted.
An allow applies if its conditions surely hold: for each element and command, to the letter. A deny or ask applies if they possibly hold: for one of them, whatever its case. A deny that cannot be decided asks.`

func ruleOperations() []*Operation {
	return slices.Concat([]*Operation{
		Define("rules.add", "POST /rules", Admin, "add a rule: allow, deny or ask, for tools whose name matches a pattern", addRule).With(rulesHelp).
			As("rules add", "chatctx rules add allow \"read_*\" --when \"path under /srv/docs\"\nchatctx rules add allow sh --when \"command each ls\" --example \"sh {} => ask\"\nchatctx rules add deny \"*\" --unless \"tool read_*\" --global --reason reading"),
		Define("rules.list", "GET /rules", Read, "list the rules that count here: the conversation's, its parents', the store's", listRules).As("rules ls", "chatctx rules ls"),
		Define("rules.default", "POST /rules/default", Admin, "say what becomes of calls that no rule decides: they wait, or they are denied", setDefaultRule).
			With("The default of the nearest scope counts: the branch, the conversation, a parent, the store. A deny that cannot be decided asks; with the default deny it denies.").
			As("rules default", "chatctx rules default deny --global"),
		Define("rules.remove", "POST /rules/{rule}/remove", Admin, "remove rules", removeRule).As("rules rm", "chatctx rules rm 1a2b3c4d"),
	}, ruleTrials())
}

// RuleList says whose rules are listed. On the command line it may name a branch, as all commands about rules.
type RuleList struct{ Scoped }

func (in *RuleList) locate(context, branch string) Place {
	in.Scoped.locate(context, branch)
	return OnBranch
}

func listRules(r *Request, in *RuleList) (List[contract.Rule], error) {
	id, err := in.id(r)
	if err != nil {
		return List[contract.Rule]{}, err
	}
	rules, err := r.Store.Rules(r.Ctx, id)
	return ListEach(rules, err, contract.RuleOf)
}

// Condition is a condition on the arguments of a call: as text, ARGUMENT OP VALUE, or an object.
type Condition struct{ record.Condition }

// UnmarshalText reads a condition that was typed.
func (c *Condition) UnmarshalText(text []byte) (ok error) {
	var is bool
	if c.Argument, c.Op, c.Value, is = approval.SplitCondition(string(text)); !is {
		return errors.New("ARGUMENT OP VALUE, as in \"path under /srv\", with one of " + strings.Join(approval.Ops(), ", ") + "; or tool PATTERN")
	}
	return nil
}

// UnmarshalJSON reads an object, or a text as it is typed.
func (c *Condition) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if err := c.UnmarshalText([]byte(text)); err != nil {
			return base.Invalid("%q is no condition: it has to be %s", text, err)
		}
		return nil
	}
	if err := codec.Exact(raw, reflect.TypeFor[record.Condition]()); err != nil {
		return base.Invalid("a condition: %s", err)
	}
	return json.Unmarshal(raw, &c.Condition)
}

// RuleTerms describe a rule.
type RuleTerms struct {
	When   []Condition    `json:"when,omitempty" flag:"when" doc:"a {CONDITION}: \"path under /srv\"; may be given again, all must hold"`
	Unless []Condition    `json:"unless,omitempty" flag:"unless" doc:"a {CONDITION} under which the rule does not apply: \"tool read_*\"; may be given again, one is enough"`
	Call   record.CallRef `json:"call,omitempty" flag:"call" doc:"for one {CALL} alone"`
	Branch string         `json:"branch,omitempty" doc:"for this branch alone; with call, the branch where the call is"`
	Here   bool           `json:"-" flag:"here" doc:"of this branch alone"`
	ScopedChange
	For      *time.Duration `json:"-" flag:"for" doc:"the rule applies for this {TIME}"`
	Expires  *time.Time     `json:"expires,omitempty" doc:"when the rule ends; without it, never"`
	Delay    Span           `json:"after,omitempty" flag:"after" doc:"with ask: calls that nobody decides expire after this {TIME}"`
	Mode     string         `json:"mode,omitempty" flag:"in-mode" old:"mode" doc:"only while the setting mode is this {MODE}"`
	Reason   string         `json:"reason,omitempty" flag:"reason" doc:"the {REASON}, which goes to the model word for word when a call is denied or a task given up"`
	Examples []string       `json:"examples,omitempty" flag:"example" doc:"a decision that must hold, as {'TOOL JSON => EFFECT'}: stored with the rule, and a change of rules that breaks it is refused; may be given again"`

	at string // the branch of the command line
}

func (in *RuleTerms) locate(context, branch string) Place {
	in.Scoped.locate(context, branch)
	in.at = branch
	return OnBranch
}

// Rule makes the rule.
func (in *RuleTerms) Rule(effect, tool string) record.Rule {
	rule := record.Rule{Effect: effect, Tool: tool, Examples: in.Examples, Expires: timeOf(in.Expires), After: time.Duration(in.Delay), Mode: in.Mode, Reason: in.Reason}
	if in.For != nil {
		rule.Expires = pool.Now() + pool.Time(in.For.Microseconds())
	}
	for _, c := range in.When {
		rule.When = append(rule.When, c.Condition)
	}
	for _, c := range in.Unless {
		rule.Unless = append(rule.Unless, c.Condition)
	}
	return rule
}

// NewRule is a rule to add.
type NewRule struct {
	Effect  string `json:"effect" arg:"EFFECT" doc:"allow, deny or ask" words:"allow deny ask"`
	Tool    string `json:"tool" arg:"TOOL" doc:"a pattern that the tool's name has to match"`
	Default bool   `json:"default,omitempty" doc:"apply the effect to all calls that no other rule decides"`
	RuleTerms
}

// DefaultRule is what becomes of calls that no rule decides.
type DefaultRule struct {
	Effect string `json:"effect" arg:"ask|deny" words:"ask deny" doc:"ask or deny"`
	Branch string `json:"branch,omitempty" doc:"of this branch alone"`
	Here   bool   `json:"-" flag:"here" doc:"of this branch alone"`
	ScopedChange
	at string // the branch of the command line
}

func (in *DefaultRule) locate(context, branch string) Place {
	in.Scoped.locate(context, branch)
	in.at = branch
	return OnBranch
}

func setDefaultRule(r *Request, in *DefaultRule) (contract.Rule, error) {
	all := &NewRule{Effect: in.Effect, Default: true, RuleTerms: RuleTerms{Branch: in.Branch, Here: in.Here, ScopedChange: in.ScopedChange, at: in.at}}
	return addRule(r, all)
}

func addRule(r *Request, in *NewRule) (contract.Rule, error) {
	rule := in.Rule(in.Effect, in.Tool)
	rule.Default, rule.By = in.Default, r.By
	if in.ofStore() {
		if in.Branch != "" || in.Call != "" {
			return contract.Rule{}, base.Invalid("rules.add: branch and call need context")
		}
		return r.ruled(r.Store.AddRule(r.Ctx, rule))
	}
	b := r.Store.Begin(in.Context, in.Branch+in.at)
	b.AddRule(rule, record.RuleScope{Branch: in.Here || in.Branch != "" && in.Call == "", Call: in.Call})
	return r.ruled(b.Commit(r.Ctx))
}

func (r *Request) ruled(done *record.Committed, err error) (contract.Rule, error) {
	if r.Done = done; err != nil {
		return contract.Rule{}, err
	}
	s := done.Last()
	v := contract.RuleOf(s.Rule)
	v.Operation, v.Broken = done.Operation, contract.BrokenOf(s.Broken)
	return v, nil
}

// RuleRef names a rule.
type RuleRef struct {
	Rule string `json:"rule" arg:"RULE…" doc:"the rule's id"`
	ScopedChange
	at string // the branch of the command line
}

func (in *RuleRef) locate(context, branch string) Place {
	in.Scoped.locate(context, branch)
	in.at = branch
	return OnBranch
}

// Find implements Finder.
func (in *RuleRef) Find(r *Request) error {
	var id pool.ID
	if !in.ofStore() {
		c, err := r.Store.Context(r.Ctx, in.Context)
		if err != nil {
			return err
		}
		id = c.ID
	}
	_, err := toolcall.RuleOf(r.Ctx, base.Of(r.Store), id, in.Rule)
	return err
}

func removeRule(r *Request, in *RuleRef) (contract.Rule, error) {
	if in.ofStore() {
		return r.ruled(r.Store.RemoveRule(r.Ctx, in.Rule))
	}
	b := r.Store.Begin(in.Context, in.at)
	b.RemoveRule(in.Rule)
	return r.ruled(b.Commit(r.Ctx))
}
