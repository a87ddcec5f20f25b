package operation

import (
	"encoding/json"
	"errors"
	"iter"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/toolcall"
)

// ruleTrials are the operations that try rules.
func ruleTrials() []*Operation {
	return []*Operation{
		Define("rules.test", "GET", Read, "show which rule decides about a call, or about a tool with arguments, and what would happen without it", testRules).
			As("rules test", "chatctx rules test @:1\nchatctx rules test read_file {}"),
		Define("rules.diff", "GET", Read, "show which recorded calls one more rule, or with --rm one less, would decide differently; nothing is written", diffRules).
			As("rules diff", "chatctx rules diff deny shell --when \"command each rm\"\nchatctx rules diff --rm 1a2b3c4d"),
	}
}

// RuleTrial names a call, or a tool with arguments.
type RuleTrial struct {
	Target
	Name      string `json:"name" arg:"CALL|TOOL"`
	Arguments string `json:"arguments,omitempty" arg:"[ARGUMENTS]"`
}

// Judged is what rules say.
type Judged struct {
	Effect    string      `json:"effect"`
	Rule      *chatctx.ID `json:"rule"`
	Untold    bool        `json:"untold,omitempty"`
	Inherited bool        `json:"inherited"`
	Why       string      `json:"why"`
	Without   *RuledBy    `json:"without,omitempty"`
	Rules     []RuleNote  `json:"rules"`

	Ruling *record.Ruling `json:"-"`
}

// RuledBy is a decision, and the rule that makes it.
type RuledBy struct {
	Effect string      `json:"effect"`
	Rule   *chatctx.ID `json:"rule"`

	Ruling *record.Ruling `json:"-"`
}

// RuleNote says whether a rule applies, and why.
type RuleNote struct {
	Rule   chatctx.ID `json:"rule"`
	Effect string     `json:"effect"`
	Tool   string     `json:"tool"`
	Holds  bool       `json:"holds"`
	Why    string     `json:"why"`
}

func ruledBy(j *record.Ruling) RuledBy {
	v := RuledBy{Effect: j.Effect, Ruling: j}
	if j.Rule != nil {
		v.Rule = &j.Rule.ID
	}
	return v
}

func testRules(r *Request, in *RuleTrial) (v Judged, err error) {
	var j *record.Ruling
	c, err := r.Store.Call(r.Ctx, in.Context, in.Branch, record.CallRef(in.Name))
	if in.Arguments == "" && err == nil {
		j, err = toolcall.Judge(r.Ctx, base.Of(r.Store), c)
	} else {
		cc, missing := r.Store.Context(r.Ctx, in.Context)
		if missing != nil {
			return v, missing
		}
		j, err = toolcall.JudgeTool(r.Ctx, base.ContextOf(cc.Store(), cc.ID), in.Branch, in.Name, json.RawMessage(in.Arguments))
	}
	if err != nil {
		return v, err
	}
	v = Judged{Effect: j.Effect, Untold: j.Untold, Inherited: j.Inherited, Why: j.Why, Rules: []RuleNote{}, Ruling: j}
	for _, n := range j.Notes {
		v.Rules = append(v.Rules, RuleNote{n.Rule.ID, n.Rule.Effect, n.Rule.Tool, n.Holds, n.Why})
	}
	if j.Rule != nil {
		without := ruledBy(j.Without)
		v.Rule, v.Without = &j.Rule.ID, &without
	}
	return v, nil
}

// RuleChange is one more rule, or one less.
type RuleChange struct {
	Effect string `json:"effect,omitempty" arg:"[EFFECT]"`
	Tool   string `json:"tool,omitempty" arg:"[TOOL]"`
	Rm     string `json:"remove,omitempty" flag:"rm" doc:"without this {RULE}"`
	RuleTerms
}

// Difference is a call that would be decided differently.
type Difference struct {
	contract.Call
	Before RuledBy `json:"before"`
	After  RuledBy `json:"after"`
}

// errEnough ends a list of which the rest is not wanted.
var errEnough = errors.New("enough")

func diffRules(r *Request, in *RuleChange) (out List[Difference], err error) {
	context, err := in.id(r)
	if err != nil {
		return out, err
	}
	var rule *record.Rule
	var gone chatctx.ID
	if in.Rm != "" {
		old, err := toolcall.RuleOf(r.Ctx, base.Of(r.Store), context, in.Rm)
		if err != nil {
			return out, err
		}
		gone = old.ID
	} else if rule, err = r.scopedRule(in, context); err != nil {
		return out, err
	}
	return FirstOf(r, iter.Seq2[Difference, error](func(yield func(Difference, error) bool) {
		judges := &judging{r: r}
		err := toolcall.DiffRule(r.Ctx, base.Of(r.Store), rule, gone, func(d record.RuleDifference) error {
			v := Difference{contract.CallOf(d.Call), ruledBy(d.Before), ruledBy(d.After)}
			from, err := judges.origin(d.Call.Context)
			if err != nil {
				return err
			}
			if v.Title = from.title; !yield(v, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Difference{}, err)
		}
	}), 0)
}

// scopedRule makes a rule that is only tried, where it would hold: for the conversation, on the branch, or for a call.
func (r *Request) scopedRule(in *RuleChange, context chatctx.ID) (*record.Rule, error) {
	rule := in.RuleTerms.Rule(in.Effect, in.Tool)
	rule.Context = context
	if in.Here {
		c, err := r.Store.Context(r.Ctx, context.String())
		if err != nil {
			return nil, err
		}
		b, err := c.Branch(r.Ctx, in.at)
		if err != nil {
			return nil, err
		}
		rule.Branch = b.ID
	}
	if in.Call != "" {
		c, err := r.Store.Call(r.Ctx, in.Context, in.at, in.Call)
		if err != nil {
			return nil, err
		}
		rule.Message, rule.Index = c.Message, c.Index
	}
	return &rule, nil
}
