package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Branches", Of: compareOperations}) }

func compareOperations() []*Operation {
	const at = "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("compare", "GET "+at+"/compare", Read, "show answers side by side", compareBranches).
			As("compare", "chatctx compare\nchatctx compare main trains@a1 --html > compare.html").
			With("Each REF is a branch, or a place at which the comparison of a branch ends; a single REF is compared with this branch. Without REF, or with this branch alone: the answers to this branch's last user message. The turns after the common part are shown in as many columns as the terminal holds, else below each other; words that the first does not have are marked."),
		Define("take", "POST "+at+"/take", Write, "use another branch's answer here", takeAnswer).As("take", "chatctx take trains").
			With("REF's whole answer, with its calls, replaces this branch's answer to the same user message, or goes to its end. The replaced messages and all after them go to a new branch, main.2, main.3 …; one undo takes back both. Calls without a result wait again here."),
		Define("tokens", "GET "+at+"/tokens", Read, "count the tokens of the next request and of its budget, and say what becomes of each message", countTokens),
		Define("bill", "GET "+at+"/bill", Read, "estimate what a send would cost with each model, with and without the provider's cache; nothing is sent", billFor),
		Define("cost", "GET /cost", Read, "what the replies in the store cost", sumCost).
			As("cost", "chatctx cost\nchatctx cost --per model --since 30d\nchatctx config --default 'prices={\"llama3.3\": {\"input\": 0, \"output\": 0}}'").
			With("Each reply counts once, by the tokens that its provider reported: not again if it was copied, or imported a second time. Replies in the trash, on removed branches or rewound away count; those that gc or purge removed do not. " +
				"Prices are those of a table with source and date; the setting prices of the store (--default), or CHATCTX_PRICES, wins: an object, or a file with one. They are list prices of single requests, without the costs of a plan, a batch or a provider's own tool. Replies of models without a price are listed, with their tokens, and are in no sum. Figures that the program of an imported file gave, not a provider, are called estimated."),
	}
}

// Comparing names what to compare.
type Comparing struct {
	Target
	With     []record.Ref `json:"with,omitempty" arg:"[REF…]" doc:"the branches, or places on them, to compare; by default the branch and its siblings"`
	Markdown bool         `json:"-" flag:"markdown" doc:"write Markdown"`
	HTML     bool         `json:"-" flag:"html" doc:"write one page that needs nothing else"`
}

func compareBranches(r *Request, in *Comparing) (*compare.Table, error) {
	c, err := r.settled(in.Context)
	if err != nil {
		return nil, err
	}
	if err := r.holdWhole(func() (int, error) {
		return view.CompareSize(r.Ctx, base.ContextOf(c.Store(), c.ID), in.Branch, in.With...)
	}); err != nil {
		return nil, err
	}
	return compare.Of(r.Ctx, c, in.Branch, in.With...)
}

// Taking names the answer to take.
type Taking struct {
	Change
	Message  record.Ref `json:"message" arg:"REF" doc:"the answer: its branch, its id, a tag, @, @-2, u3 …"`
	KeepRest bool       `json:"keep_rest,omitempty" flag:"keep-rest" doc:"keep the messages that came after it"`
}

func takeAnswer(r *Request, in *Taking) (contract.Taken, error) {
	done, err := r.commit(in.Change, func(b *chatctx.Batch) {
		b.Take(in.Message, record.TakeOptions{KeepRest: in.KeepRest})
	})
	if err != nil {
		return contract.Taken{}, err
	}
	return contract.TakenOf(done), nil
}

// sized is the size of a branch's next request, as the command status shows it.
type sized struct {
	Total int `json:"total_tokens"`
	contract.Window
	Model    string   `json:"model"`
	States   []state  `json:"states"`   // the states of the messages, with sums
	Rows     int      `json:"rows"`     // the number of messages, with the summary
	Messages []within `json:"messages"` // the requested ones of the session, with its summary first
}

// state has the sums of the messages in one state.
type state struct {
	State    string `json:"state"`
	Messages int    `json:"messages"`
	Tokens   int    `json:"tokens"`
}

type tokensParams struct {
	Target
	Brief bool `json:"brief,omitempty" doc:"leave out the list of messages"`
	From  int  `json:"from,omitempty" doc:"the first message to list; 0 means 1"`
	Limit int  `json:"limit,omitempty" doc:"the most messages, up to 1000; 0 means 100"`
}

// within is the state of a message in the request.
type within struct {
	ID       chatctx.ID `json:"id"`
	Position int        `json:"position,omitempty"` // 0 for a summary, which stands for the messages before
	Role     pool.Role  `json:"role"`
	State    string     `json:"state"`
	Step     string     `json:"step,omitempty"`
	Tokens   int        `json:"tokens"`
}

func countTokens(r *Request, in *tokensParams) (sized, error) {
	limit, err := limitOf(in.Limit)
	if err != nil {
		return sized{}, err
	}
	c, err := r.settled(in.Context)
	if err != nil {
		return sized{}, err
	}
	req, err := (&turn.Turn{Context: c, Branch: in.Branch}).Fit(r.Ctx)
	var budget *enhancer.BudgetError
	if errors.As(err, &budget) { // its size is reported anyway
		window.Of(req).Forecast.Tokens = budget.Size
	} else if err != nil {
		return sized{}, err
	}
	v := sized{Total: window.Of(req).Forecast.Tokens, Window: contract.WindowOf(window.Of(req).Forecast), Model: window.Of(req).Options.Model, States: []state{}, Messages: []within{}}
	shares, _ := window.Of(req).Window.Shares(req.Draft)
	put := func(m *chatctx.DraftMessage, become string) {
		tokens, ok := shares[m.ID]
		if !ok {
			tokens = m.Tokens
		}
		v.count(become, tokens)
		if v.Rows++; !in.Brief && v.Rows >= in.From && len(v.Messages) < limit {
			v.Messages = append(v.Messages, within{m.ID, m.Position, m.Role, become, m.Step, tokens})
		}
	}
	if s := req.Draft.Summary; s != nil {
		put(s, enhancer.In)
	}
	for _, m := range req.Report.Messages {
		put(m, m.State)
	}
	return v, nil
}

// count adds a message to the sums.
func (v *sized) count(become string, tokens int) {
	i := slices.IndexFunc(v.States, func(s state) bool { return s.State == become })
	if i < 0 {
		i, v.States = len(v.States), append(v.States, state{State: become})
	}
	v.States[i].Messages++
	v.States[i].Tokens += tokens
}

type billParams struct {
	Target
	Text   string   `json:"text,omitempty" doc:"the user's message; without it, the request answers the last message of the branch"`
	Models []string `json:"models,omitempty" doc:"the models to ask; by default the model in the settings"`
}

// bills are the prices of a send, and the models that could not be asked.
type bills struct {
	List[contract.Bill]
	Failed []failed `json:"failed"`
}

// billFor returns the price of a send for each model. It asks no model.
func billFor(r *Request, in *billParams) (bills, error) {
	if len(in.Models) > mostAsked {
		return bills{}, base.Invalid("at most %d models", mostAsked)
	}
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return bills{}, err
	}
	var messages []*chatctx.Message
	if in.Text != "" {
		messages = append(messages, pool.NewText(pool.User, in.Text))
	}
	models := in.Models
	if len(models) == 0 {
		models = []string{""}
	}
	out := bills{ListOf[contract.Bill](nil), []failed{}}
	for _, model := range models {
		t := &turn.Turn{Context: c, Branch: snap.Info.Name, Settings: map[string]json.RawMessage{}}
		if model != "" {
			t.Settings["model"] = jsontree.Quote(model)
		}
		if r.Turn != nil {
			r.Turn(t)
		}
		req, err := t.Request(r.Ctx, messages...)
		if err != nil {
			out.Failed = append(out.Failed, failed{snap.Info.Name, model, errorOf(fits(err))})
			continue
		}
		bill := req.Bill()
		out.Items = append(out.Items, contract.BillOf(req, &bill))
	}
	return out, nil
}

// CostQuery says which replies to sum up.
type CostQuery struct {
	By      string     `json:"by,omitempty" flag:"per" old:"by" words:"context branch model day kind" doc:"a line for each {WHAT}: context, branch, model, day (of this machine) or kind"`
	Since   *time.Time `json:"since,omitempty" flag:"since" doc:"only what came or changed since {WHEN}"`
	Until   *time.Time `json:"until,omitempty" doc:"only replies before then"`
	Context string     `json:"context,omitempty" flag:"context" doc:"only in the conversation {CTX}"`
	Branch  string     `json:"branch,omitempty" flag:"branch" doc:"only replies that were written on {BRANCH} of that conversation, or else of the current one"`
}

func sumCost(r *Request, in *CostQuery) (v contract.Cost, err error) {
	q := cost.Query{By: cost.By(in.By)}
	if in.Since != nil {
		q.Since = *in.Since
	}
	if in.Until != nil {
		q.Until = *in.Until
	}
	if in.Context != "" || in.Branch != "" {
		c, err := r.Store.Context(r.Ctx, in.Context)
		if err != nil {
			return v, err
		}
		q.Context = c.ID
		if in.Branch != "" {
			b, err := c.Branch(r.Ctx, in.Branch)
			if err != nil {
				return v, err
			}
			q.Branch = b.Name
		}
	}
	if q.Prices, err = r.Prices(); err != nil {
		return v, err
	}
	report, err := cost.Spent(r.Ctx, r.Store, q)
	if err != nil {
		return v, err
	}
	return contract.CostOf(&q, report), nil
}

// Prices returns the prices of the store's settings, or of the environment.
func (r *Request) Prices() (*cost.Prices, error) {
	own, err := r.Store.Settings(r.Ctx)
	if err != nil {
		return nil, err
	}
	p, err := cost.Parse(settings.WithEnv(own, os.Getenv)["prices"])
	if err != nil {
		return nil, fmt.Errorf("%w %w", settings.ErrSetting, err)
	}
	return p, nil
}
