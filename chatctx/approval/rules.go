package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// CheckRule says why a rule can never be meant; the error is a chatctx.ErrInvalid.
func CheckRule(r *chatctx.Rule) error {
	if err := checkRule(r); err != nil {
		return chatctx.Invalid("%v", err)
	}
	return nil
}

func checkRule(r *chatctx.Rule) error {
	if r.Effect != chatctx.Allow && r.Effect != chatctx.Deny && r.Effect != chatctx.Ask {
		return fmt.Errorf("a rule is allow, deny or ask, not %q", r.Effect)
	}
	if _, err := path.Match(r.Tool, ""); err != nil || r.Tool == "" {
		return fmt.Errorf("the pattern %q of tools' names is not one", r.Tool)
	}
	if r.After != 0 && (r.Effect != chatctx.Ask || r.After < 0) {
		return errors.New("only an ask has a time after which calls expire")
	}
	for i := range r.When {
		if err := checkCondition(&r.When[i]); err != nil {
			return err
		}
	}
	return nil
}

// Question is a call as rules see it.
type Question struct {
	Context   chatctx.ID
	Branch    chatctx.ID // its id, not its name
	Message   chatctx.ID // zero for a call that was only thought of
	Index     int        // from 1
	Tool      string
	Arguments json.RawMessage
	Mode      string // the setting mode
	Dir       string // relative paths are read in it
}

// Judgement is what rules say of a call.
type Judgement struct {
	Effect string        // chatctx.Allow, Deny or Ask; ask where no rule decides
	Rule   *chatctx.Rule // that decides; nil: none
	// Inherited: the rule is a parent context's.
	Inherited bool
	// Without is what would be the case without the rule.
	Without *Judgement
	// Notes say of each rule for this tool whether it holds, and why.
	Notes []RuleNote
}

// RuleNote says whether a rule holds.
type RuleNote struct {
	Rule  *chatctx.Rule
	Holds bool
	Why   string
}

// Judge lets rules decide about a call: of those that hold the one with the highest priority, of these the most specific one, and of equals a deny before an ask before an allow.
// More specific is: for a call, a branch, a context, a parent's, the store; then a name without patterns, the longer name; then more conditions.
func Judge(rules []*chatctx.Rule, q Question) *Judgement {
	args, err := decodeArguments(q.Arguments)
	var holding []*chatctx.Rule
	var notes []RuleNote
	for _, r := range rules {
		if ok, _ := path.Match(r.Tool, q.Tool); !ok || !inScope(r, &q) {
			continue
		}
		ok, why := ruleHolds(r, &q, args, err)
		notes = append(notes, RuleNote{Rule: r, Holds: ok, Why: why})
		if ok {
			holding = append(holding, r)
		}
	}
	slices.SortStableFunc(holding, func(a, b *chatctx.Rule) int { return slices.Compare(rank(b, &q), rank(a, &q)) })
	var last *Judgement = &Judgement{Effect: chatctx.Ask}
	for _, r := range slices.Backward(holding) {
		last = &Judgement{Effect: r.Effect, Rule: r, Inherited: r.Context != (chatctx.ID{}) && r.Context != q.Context, Without: last}
	}
	last.Notes = notes
	return last
}

// inScope reports whether a rule is about this place.
func inScope(r *chatctx.Rule, q *Question) bool {
	if r.Message != (chatctx.ID{}) && (r.Message != q.Message || r.Index != q.Index) {
		return false
	}
	own := r.Context == q.Context
	return (r.Branch == (chatctx.ID{}) || !own || r.Branch == q.Branch) && (r.Mode == "" || r.Mode == q.Mode)
}

// ruleHolds reports whether all conditions of a rule hold. What cannot be told counts against allowing and for denying and asking.
func ruleHolds(r *chatctx.Rule, q *Question, args any, unreadable error) (bool, string) {
	if len(r.When) == 0 {
		return true, "for all arguments"
	}
	if unreadable != nil {
		return r.Effect != chatctx.Allow, "the arguments are no JSON"
	}
	var whys []string
	for i := range r.When {
		a, why := holds(&r.When[i], args, q.Dir)
		whys = append(whys, why)
		if a == no || a == unsure && r.Effect == chatctx.Allow {
			return false, why
		}
	}
	return true, strings.Join(whys, "; ")
}

// rank is how much a rule counts; the larger one, read from the left, decides.
func rank(r *chatctx.Rule, q *Question) []int {
	scope := map[string]int{"call": 4, "branch": 3, "context": 2, "store": 0}[r.ScopeWord()]
	if scope != 0 && r.Context != q.Context {
		scope = 1
	}
	exact, literal := 1, 0
	for _, c := range r.Tool {
		if strings.ContainsRune(`*?[\`, c) {
			exact = 0
		} else {
			literal++
		}
	}
	effect := map[string]int{chatctx.Deny: 2, chatctx.Ask: 1, chatctx.Allow: 0}[r.Effect]
	return []int{r.Priority, scope, exact, literal, len(r.When), effect}
}

// Ruler applies the rules of a store to calls. It reads them anew for each call, so that a rule holds at once.
type Ruler struct {
	Store *chatctx.Store
	// Dir is where relative paths are read, for tools without a folder of their own; "": the present one.
	Dir string
}

// Judge says what the rules say of a call now.
func (r *Ruler) Judge(ctx context.Context, c *chatctx.Call) (*Judgement, error) {
	cc, err := r.Store.Context(ctx, c.Context.String())
	if err != nil {
		return nil, err
	}
	q := Question{Context: c.Context, Message: c.Message, Index: c.Index, Tool: c.Tool, Arguments: c.RunArguments(), Dir: r.Dir}
	return r.Ask(ctx, cc, c.Branch, q)
}

// Ask says what the rules say of a question about a branch, "" for the active one.
func (r *Ruler) Ask(ctx context.Context, cc *chatctx.ChatContext, branchName string, q Question) (*Judgement, error) {
	b, err := cc.Branch(ctx, branchName)
	if err != nil {
		return nil, err
	}
	settings, err := cc.Effective(ctx, b.Name)
	if err != nil {
		return nil, err
	}
	_ = json.Unmarshal(settings["mode"], &q.Mode) // a mode that is no text is none
	tools, err := r.Store.Offered(ctx, cc.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		if t.Name == q.Tool && t.Dir != "" {
			q.Dir = t.Dir
		}
	}
	rules, err := r.Store.Rules(ctx, cc.ID)
	if err != nil {
		return nil, err
	}
	q.Context, q.Branch = cc.ID, b.ID
	return Judge(rules, q), nil
}

// Apply lets the rules decide about a call that waits for a decision. An ask may give it a time to expire. What somebody else decided meanwhile stays.
func (r *Ruler) Apply(ctx context.Context, c *chatctx.Call) (*Judgement, error) {
	j, err := r.Judge(ctx, c)
	if err != nil || j.Rule == nil {
		return j, err
	}
	cc, err := r.Store.Context(ctx, c.Context.String())
	if err != nil {
		return nil, err
	}
	b := cc.Begin(c.Branch)
	v := chatctx.Verdict{Status: pool.Approved, Kind: chatctx.ByRule, Name: j.Rule.ID.String(), Reason: j.Rule.Reason}
	if j.Inherited {
		v.Kind = chatctx.ByInherited
	}
	switch {
	case j.Effect == chatctx.Allow:
		b.Decide(c.Ref(), v)
	case j.Effect == chatctx.Deny:
		v.Status = pool.Denied
		b.Decide(c.Ref(), v)
	case j.Rule.After > 0 && c.Expires == 0:
		b.ExpireCall(c.Ref(), c.Since+pool.Time(j.Rule.After.Microseconds()))
	default:
		return j, nil
	}
	if _, err := b.Commit(ctx); err != nil && !errors.Is(err, chatctx.ErrConflict) {
		return nil, err
	}
	return j, nil
}
