package operation

import (
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/plural"
)

// Offer is a rule that would allow calls like one, as it is shown and as it goes back whole with a decision.
type Offer struct {
	Effect   string             `json:"effect"`
	Tool     string             `json:"tool"`
	When     []record.Condition `json:"when,omitempty"`
	Unless   []record.Condition `json:"unless,omitempty"`
	Scope    string             `json:"scope,omitempty" words:"context branch"` // where it holds; "" means context
	Sentence string             `json:"sentence,omitempty"`                     // the rule in words
	Decides  *Decides           `json:"decides,omitempty"`                      // if it was asked for
}

// Decides is what a rule would have decided of the last calls of the tool on the branch, without the call itself.
type Decides struct {
	Calls int `json:"calls"`
	Of    int `json:"of"`
}

// offerOf returns an offer that holds in the conversation.
func offerOf(r *record.Rule) Offer {
	return Offer{Effect: r.Effect, Tool: r.Tool, When: r.When, Unless: r.Unless, Scope: "context", Sentence: sentenceOf(r)}
}

// is reports whether a rule is the one that was shown.
func (o *Offer) is(r *record.Rule) bool {
	same := func(a, b []record.Condition) bool {
		return slices.EqualFunc(a, b, func(a, b record.Condition) bool {
			return a.Argument == b.Argument && a.Op == b.Op && a.Value == b.Value
		})
	}
	return o.Effect == r.Effect && o.Tool == r.Tool && same(o.When, r.When) && same(o.Unless, r.Unless) && (o.Sentence == "" || o.Sentence == sentenceOf(r))
}

// sentenceOf is a rule in a whole sentence, with what else its patterns take.
func sentenceOf(r *record.Rule) string {
	verb := map[string]string{record.Allow: "Allow", record.Deny: "Deny", record.Ask: "Ask about"}[r.Effect]
	if r.Default {
		return verb + " every call that no other rule decides."
	}
	text := verb + " calls of the tool " + quotedWords(r.Tool)
	switch {
	case r.Tool == "*":
		text = verb + " calls of every tool"
	case strings.ContainsAny(r.Tool, `*?[{\`):
		text = verb + " calls of every tool whose name fits " + quotedWords(r.Tool)
	}
	if len(r.When) == 0 {
		text += ", whatever its arguments are"
	}
	for i, c := range r.When {
		text += map[bool]string{true: " where ", false: ", and "}[i == 0] + conditionWords(c)
	}
	for i, c := range r.Unless {
		text += map[bool]string{true: ", but not where ", false: ", or where "}[i == 0] + conditionWords(c)
	}
	return text + "."
}

// conditionWords is a condition in words.
func conditionWords(c record.Condition) string {
	what := quotedWords(c.Argument)
	if c.Argument == approval.All {
		what = "all arguments"
	}
	value := quotedWords(c.Value)
	switch c.Op {
	case approval.Equals:
		return what + " are exactly " + c.Value
	case approval.Prefix:
		return what + " begins with " + value + ", whatever follows"
	case approval.Glob:
		return what + " fits the pattern " + value
	case approval.Regexp:
		return what + " fits the regular expression " + value
	case approval.Range:
		low, high, _ := strings.Cut(c.Value, "..")
		return what + " is " + strings.TrimSpace(strings.Join([]string{map[bool]string{true: "at least " + low}[low != ""], map[bool]string{true: "at most " + high}[high != ""]}, " "))
	case approval.Under:
		return what + " is the folder " + value + " or anything below it"
	case approval.Each:
		return "each command in " + what + " begins with " + plural.Or(strings.Fields(value)) + ", whatever follows"
	case approval.Writes:
		return what + " writes to no file but " + c.Value
	case approval.Sets:
		return what + " sets no variable but " + c.Value
	case approval.Tool:
		return "the tool's name fits " + value
	}
	return c.String()
}

// quotedWords puts a text in quotation marks.
func quotedWords(s string) string { return "“" + s + "”" }

// The calls that are looked at to say what an offer would have decided.
const (
	recentCalls    = 20
	recentMessages = 200
)

// recent adds to offers what each would have decided of the last calls of the tool on the branch.
func (r *Request) recent(c *record.Call, q record.Question, offers []Offer, rules []*record.Rule) error {
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil || c.Branch == "" {
		return err
	}
	snap, err := cc.Snapshot(r.Ctx, c.Branch)
	if err != nil || snap.Len() == 0 {
		return err
	}
	of, takes := 0, make([]int, len(rules))
	for e, err := range snap.Entries(r.Ctx, snap.Len(), max(1, snap.Len()-recentMessages)) {
		if err != nil {
			return err
		}
		for i, call := range slices.Backward(e.Message.Calls) {
			if of == recentCalls || call.Tool != c.Tool || e.Message.ID == c.Message && i+1 == c.Index {
				continue
			}
			of++
			q.Arguments = call.Arguments
			for n, rule := range rules {
				if approval.Allows(rule, q) {
					takes[n]++
				}
			}
		}
	}
	for i := range offers {
		offers[i].Decides = &Decides{takes[i], of}
	}
	return nil
}
