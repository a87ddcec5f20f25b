package operation

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"path"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Tools and their calls", Of: callOperations}) }

func callOperations() []*Operation {
	const at = "/contexts/{context}/branches/{branch}/calls/{call}"
	return slices.Concat([]*Operation{
		Define("calls.list", "GET /calls", Read, "list the open calls of all conversations, the oldest first", listCalls).
			As("calls ls", "chatctx calls ls\nchatctx calls ls --here\nchatctx calls ls --matching \"fs_*\" --json").
			With("With --context: only those of that conversation and its sub-contexts. A call's name is MESSAGE:INDEX, or the provider's id if that is unique."),
		Define("calls.log", "GET /contexts/{context}/calls/log", Read, "list every step of calls: who took it, when, from which program and why", callLog).
			As("calls log", "chatctx calls log --json").With("The steps of a call, from the first on, lead to its present state."),
		Define("calls.get", "GET "+at, Read, "show a call: its arguments, as a diff where they change a file, and what was decided", getCall).
			As("calls show", "chatctx calls show @:1"),
		Define("calls.approve", "POST "+at+"/approve", Decide, "approve calls", approveCalls).
			As("calls approve", "chatctx calls approve @:1 --reason \"looked at it\"\nchatctx calls approve --matching \"read_*\"").
			With("Approving runs nothing: calls run, send --continue, chat, or any program that claims the call runs it. All named calls of a conversation are decided together or not at all. --waiting and --matching are for the branch; --everywhere makes it all conversations, or with --context that one and its sub-contexts."),
		Define("calls.deny", "POST "+at+"/deny", Decide, "deny calls", denyCalls).As("calls deny", "chatctx calls deny @:1 --reason \"not in this folder\"").
			With("A tool message with the denial goes to the end of the branch."),
		Define("calls.cancel", "POST "+at+"/cancel", Decide, "give calls up, also approved ones that nobody has begun to run", cancelCalls).As("calls cancel", "chatctx calls cancel @:1"),
		Define("calls.expire", "POST "+at+"/expire", Decide, "let calls count as denied when nobody has decided in time", expireCall).
			As("calls expire", "chatctx calls expire @:1 --in 10m"),
		Define("calls.claim", "POST "+at+"/claim", Run, "take an approved call to run it: of several who try, one gets it", claimCall).
			As("calls claim", "chatctx calls claim @:1 --json").
			With("Then run the tool, and end the call with calls resolve. A claim that is not renewed (calls claim CALL --renew TOKEN) ends after --hold: then the call is uncertain, and calls claim --again takes it once more."),
		Define("calls.renew", "POST "+at+"/renew", Run, "extend a claim", renewCall),
		Define("calls.resolve", "POST "+at+"/resolve", Run, "answer a call that was claimed, or that is uncertain", resolveCall).
			As("calls resolve", "chatctx calls resolve @:1 --result \"It is 15 degrees.\"").With("The result message and the call's end are stored together."),
		Define("calls.ensure", "POST /calls/ensure", Run, "bring a call of another program's agent before it runs, or find it, and say what the agent is to do", ensureCall).With(ensureHelp).Fails("conflict").
			As("calls ensure", "chatctx calls ensure ls {} --agent mine --session 7 --id c1"),
	}, []*Operation{callDecision(at)}, callRuns(at))
}

// CallListing says which open calls to list.
type CallListing struct {
	Context    string `json:"context,omitempty" doc:"only calls of this conversation and its sub-contexts"`
	Branch     string `json:"branch,omitempty" doc:"only calls of this branch of the conversation"`
	Tool       string `json:"tool,omitempty" flag:"matching" old:"tool" doc:"those of tools whose name matches {PATTERN}: fs_*"`
	State      string `json:"state,omitempty" flag:"state" words:"pending approved running uncertain" doc:"only in this {STATE}: pending, approved, running, uncertain"`
	All        bool   `json:"-" flag:"here" old:"all" doc:"of this branch alone"`
	Everywhere bool   `json:"-" flag:"everywhere" doc:"of all conversations and branches"`
	After      string `json:"after,omitempty" doc:"the cursor next of the previous page"`
	Limit      *int   `json:"limit,omitempty" flag:"n" doc:"at most {N}" api:"up to 1000; 100 without it"`
	here       bool   // a branch without a conversation is one of the current conversation
}

func (in *CallListing) locate(context, branch string) Place {
	in.Context, in.Branch, in.here = context, branch, true
	return OnBranch
}

// Filter returns the filter for the calls to list.
func (in *CallListing) Filter(r *Request) (f record.CallFilter, err error) {
	if _, err := path.Match(in.Tool, ""); err != nil {
		return f, base.Invalid("the pattern %q cannot be read", in.Tool)
	}
	f = record.CallFilter{Branch: in.Branch, Tool: in.Tool, State: contract.CallStates[in.State]}
	here := in.All && !in.Everywhere
	switch {
	case in.Branch != "" && in.Context == "" && !in.here:
		return f, base.Invalid("calls.list: branch needs context")
	case in.Context == "" && in.Branch == "" && !here:
		return f, nil
	}
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return f, err
	}
	if f.Context = c.ID; here || in.here && in.Branch != "" {
		b, err := c.Branch(r.Ctx, in.Branch)
		if err != nil {
			return f, err
		}
		f.Branch = b.Name
	}
	return f, nil
}

func listCalls(r *Request, in *CallListing) (out List[contract.Call], err error) {
	f, err := in.Filter(r)
	if err == nil && in.After != "" {
		f.After, err = readCallCursor(in.After)
	}
	if err != nil {
		return out, err
	}
	return PageOf(r, r.waiting(f, in.State == "pending"), in.Limit, callCursor)
}

// waiting returns calls with what the rules say of each. Of those that wait, only persons' are for persons: the rules decide the others.
func (r *Request) waiting(f record.CallFilter, persons bool) iter.Seq2[contract.Call, error] {
	return func(yield func(contract.Call, error) bool) {
		j := &judging{r: r}
		for c, err := range r.Store.Calls(r.Ctx, f) {
			var v contract.Call
			if err == nil {
				v, _, err = j.call(c)
			}
			if persons && v.Effect != "" && v.Effect != record.Ask {
				continue
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// callCursor returns the cursor for the place of a call in the list.
func callCursor(c contract.Call) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.Since))
	b = append(append(b, c.Context[:]...), c.Message[:]...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint16(b, uint16(c.Index)))
}

func readCallCursor(s string) (*record.Call, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 42 {
		return nil, base.Invalid("after is no cursor of a page")
	}
	return &record.Call{Since: pool.Time(binary.BigEndian.Uint64(b)), Context: chatctx.ID(b[8:24]), Message: chatctx.ID(b[24:40]), Index: int(binary.BigEndian.Uint16(b[40:]))}, nil
}

// judging returns calls with the decision of the rules, with the titles of their conversations, and with the origins of those of sub-contexts.
type judging struct {
	r    *Request
	from map[chatctx.ID]callOrigin
}

type callOrigin struct {
	title string
	task  *contract.Origin // nil in a conversation that is no sub-context
}

// JudgedCall returns a call with what the rules say of it. It writes nothing.
func (r *Request) JudgedCall(c *record.Call) (contract.Call, error) {
	v, _, err := (&judging{r: r}).call(c)
	return v, err
}

func (j *judging) call(c *record.Call) (contract.Call, *record.Ruling, error) {
	v := contract.CallOf(c)
	from, err := j.origin(c.Context)
	if v.Title, v.Origin = from.title, from.task; err != nil || c.Status != pool.Pending {
		return v, nil, err
	}
	ruling, err := toolcall.Judge(j.r.Ctx, base.Of(j.r.Store), c)
	if err != nil {
		return v, nil, err
	}
	if v.Effect = ruling.Effect; ruling.Rule != nil {
		v.Rule = ruling.Rule.ID
	}
	return v, ruling, nil
}

func (j *judging) origin(id chatctx.ID) (from callOrigin, err error) {
	if from, ok := j.from[id]; ok {
		return from, nil
	}
	c, err := j.r.Store.Context(j.r.Ctx, id.String())
	if err != nil {
		return from, err
	}
	info, err := c.Info(j.r.Ctx)
	if err != nil {
		return from, err
	}
	from.title = info.Title
	task, err := c.TaskInfo(j.r.Ctx)
	switch {
	case errors.Is(err, chatctx.ErrInvalid): // not a sub-context
	case err != nil:
		return from, err
	default:
		from.task = contract.OriginOf(task)
	}
	if j.from == nil {
		j.from = map[chatctx.ID]callOrigin{}
	}
	j.from[id] = from
	return from, nil
}

// CallSteps says which steps of calls to list: those of a conversation, or of a call. The command line lists those of all conversations, too.
type CallSteps struct {
	Conversation
	Branch string         `json:"branch,omitempty" doc:"the branch on which the call is named"`
	Call   record.CallRef `json:"call,omitempty" arg:"[CALL]" doc:"only the steps of this call"`
}

func (in *CallSteps) locate(context, branch string) Place {
	in.Context, in.Branch = context, branch
	return OnBranch
}

func callLog(r *Request, in *CallSteps) (out List[contract.Step], err error) {
	var id chatctx.ID
	only := &record.Call{}
	if in.Call != "" {
		only, err = r.Store.Call(r.Ctx, in.Context, in.Branch, in.Call)
	} else if in.Context != "" {
		id, err = (&Owner{Context: in.Context}).id(r)
	}
	if err != nil {
		return out, err
	}
	if in.Call != "" {
		id = only.Context
	}
	steps, err := toolcall.CallLog(r.Ctx, base.Of(r.Store), id)
	return ListEach(slices.DeleteFunc(steps, func(s *record.CallStep) bool {
		return in.Call != "" && (s.Message != only.Message || s.Index != only.Index)
	}), err, contract.StepOf)
}

// NamedCall names a call of a branch.
type NamedCall struct {
	Target
	CallName
}

// CallShowing names a call to show.
type CallShowing struct {
	NamedCall
	Recent    bool   `json:"recent,omitempty" doc:"also how many of the last calls each offer would have decided"`
	Arguments string `json:"arguments,omitempty" doc:"as it would be with these arguments, as JSON"`
}

// callChange is a change of a call.
type callChange struct {
	Change
	CallName
}

// CallName names a call.
type CallName struct {
	Call record.CallRef `json:"call" arg:"CALL" doc:"the call: MESSAGE:INDEX, or the provider's id if it is unique"`
}

func (r *Request) call(on Target, name CallName) (*record.Call, error) {
	return r.Store.Call(r.Ctx, on.Context, on.Branch, name.Call)
}

// ShownCall is a call with everything that a person needs for the decision.
type ShownCall struct {
	contract.Shown
	Ruling *ruling `json:"ruling,omitempty"` // for a call that waits
	Offers []Offer `json:"offers"`           // rules that would allow calls like it, the narrowest first
	Beside int     `json:"beside"`           // how many other calls of its turn are open
	Seen   string  `json:"seen"`             // a hash of what is shown, for calls.decide

	Judged   *record.Ruling `json:"-"` // what Ruling is of
	Plan     *approval.Plan `json:"-"` // what it runs; nil if that is unknown
	Replaced string         `json:"-"` // why it waits for a decision again when it runs
}

// ruling is the decision of the rules about a call, and the reason.
type ruling struct {
	Effect    string         `json:"effect" words:"allow deny ask"`
	Rule      *contract.Rule `json:"rule"`
	Inherited bool           `json:"inherited,omitempty"`
	Why       string         `json:"why,omitempty"`
	Notes     []ruleNote     `json:"notes"` // for each rule of this tool, whether it matches, and why
}

type ruleNote struct {
	Rule  chatctx.ID `json:"rule"`
	Text  string     `json:"text"`
	Holds bool       `json:"holds"`
}

func getCall(r *Request, in *CallShowing) (ShownCall, error) {
	c, err := r.call(in.Target, in.CallName)
	if err != nil {
		return ShownCall{}, err
	}
	if in.Arguments != "" {
		if _, err := jsontree.Parse([]byte(in.Arguments)); err != nil {
			return ShownCall{}, base.Invalid("the arguments cannot be read: %v", err)
		}
		c.Effective = json.RawMessage(in.Arguments)
	}
	return r.shown(c, in.Recent)
}

// shown returns a call with everything that a person needs for the decision; with recent also what each offer would have decided lately.
func (r *Request) shown(c *record.Call, recent bool) (ShownCall, error) {
	v, j, err := (&judging{r: r}).call(c)
	if err != nil {
		return ShownCall{}, err
	}
	plan, err := r.plan(c)
	if err != nil {
		return ShownCall{}, err
	}
	runs, err := toolcall.RunsNow(r.Ctx, base.Of(r.Store), c)
	if err != nil {
		return ShownCall{}, err
	}
	out := ShownCall{Shown: contract.ShownOf(c, v, plan), Offers: []Offer{}, Seen: seenOf(c, plan, runs), Judged: j, Plan: plan}
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err == nil {
		out.Beside, err = openBeside(r, cc, c)
	}
	if err != nil {
		return out, err
	}
	if out.Replaced, err = toolcall.Replaced(r.Ctx, base.Of(r.Store), c); err != nil {
		return out, err
	}
	if j != nil {
		out.Ruling = &ruling{Effect: j.Effect, Inherited: j.Inherited, Why: j.Why, Notes: []ruleNote{}}
		if j.Rule != nil {
			rule := contract.RuleOf(j.Rule)
			out.Ruling.Rule = &rule
		}
		for _, n := range j.Notes {
			out.Ruling.Notes = append(out.Ruling.Notes, ruleNote{n.Rule.ID, n.Why, n.Holds})
		}
		rules := approval.Offers(j.Question)
		for _, offer := range rules {
			out.Offers = append(out.Offers, offerOf(offer))
		}
		if recent {
			err = r.recent(c, j.Question, out.Offers, rules)
		}
	}
	return out, err
}

// plan returns what the server runs for a call.
func (r *Request) plan(c *record.Call) (*approval.Plan, error) {
	in, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil {
		return nil, err
	}
	e, end := r.Executor(in)
	defer end()
	return e.Plan(r.Ctx, c)
}

// Expiring sets when a call expires.
type Expiring struct {
	Change
	Call record.CallRef `json:"call" arg:"CALL…" doc:"the call: MESSAGE:INDEX, or the provider's id if it is unique"`
	At   *time.Time     `json:"at,omitempty" doc:"when the call expires; without it, never"`
	In   *time.Duration `json:"-" flag:"in" doc:"the {TIME} from now: 10m, 24h; 0 removes the limit"`
}

// Find implements Finder.
func (in *Expiring) Find(r *Request) error {
	_, err := r.call(in.Target, CallName{in.Call})
	return err
}

func expireCall(r *Request, in *Expiring) (contract.Call, error) {
	c, err := r.call(in.Target, CallName{in.Call})
	if err != nil {
		return contract.Call{}, err
	}
	b := r.Store.Begin(c.Context.String(), c.Branch)
	b.ExpireCall(c.Ref(), timeOf(in.At))
	done, err := b.Commit(r.Ctx)
	if err != nil {
		return contract.Call{}, err
	}
	c.Expires, r.Revision = timeOf(in.At), &done.Revision
	v := contract.CallOf(c)
	v.Operation = done.Operation
	return v, nil
}

// Claiming says how a call is claimed, or which claim is kept.
type Claiming struct {
	callChange
	holding
	PID   *int   `json:"-" flag:"pid" doc:"the {PROCESS} whose end ends the claim"`
	Renew string `json:"-" flag:"renew" doc:"keep the claim that has this {TOKEN}"`
	By    string `json:"-" flag:"by" doc:"the {NAME} of who does it, noted beside the user's"`
}

// holding says how a claim is held.
type holding struct {
	Again bool           `json:"again,omitempty" flag:"again" doc:"run a call again whose program died while it ran"`
	Hold  int            `json:"hold,omitempty" doc:"how many seconds the claim lasts if it is not renewed, up to 86400; 0 means as long as chatctx's own claims"`
	For   *time.Duration `json:"-" flag:"hold" doc:"how long the claim lasts without being renewed, as a {TIME}"`
}

func (in *holding) hold() time.Duration {
	if in.For != nil {
		return *in.For
	}
	return time.Duration(in.Hold) * time.Second
}

// check refuses an invalid hold.
func (in *holding) check() error {
	if in.Hold < 0 || in.Hold > 24*60*60 {
		return base.Invalid("hold is %d, and has to be from 1 to 86400 seconds", in.Hold)
	}
	return nil
}

func claimCall(r *Request, in *Claiming) (v contract.Claim, err error) {
	if in.Renew != "" {
		return renewCall(r, &renewParams{NamedCall: NamedCall{in.Target, in.CallName}, holding: in.holding, Token: in.Renew})
	}
	if err := in.check(); err != nil {
		return v, err
	}
	o := record.ClaimOptions{Again: in.Again, PID: -1, Hold: in.hold(), Name: cmp.Or(in.By, r.By)}
	if in.PID != nil {
		o.PID = *in.PID
	}
	k, err := r.Store.ClaimCall(r.Ctx, in.Context, in.Branch, in.Call, o)
	if err != nil {
		return v, err
	}
	return contract.ClaimOf(k.Call, k.Token), nil
}

type renewParams struct {
	NamedCall
	Keyed
	holding
	Token string `json:"token" doc:"the token of the claim"`
}

func renewCall(r *Request, in *renewParams) (v contract.Claim, err error) {
	if err := in.check(); err != nil {
		return v, err
	}
	token, err := uuid.Parse(in.Token)
	if err != nil {
		return v, errNoToken
	}
	c, err := r.call(in.Target, in.CallName)
	if err != nil {
		return v, err
	}
	err = toolcall.Renew(r.Ctx, base.Of(r.Store), &record.Claimed{Call: c, Token: token}, in.hold())
	if errors.Is(err, chatctx.ErrStopped) {
		err = &record.ConflictError{Text: err.Error()}
	}
	if err != nil {
		return v, err
	}
	return contract.ClaimOf(c, token), nil
}

var errNoToken = base.Invalid("token is no token of a claim")

// Resolving is the result of a call. The command line has it as one text.
type Resolving struct {
	callChange
	Text   string          `json:"text,omitempty" doc:"the result as text"`
	JSON   json.RawMessage `json:"json,omitempty" doc:"the result as JSON, in place of text"`
	Result *string         `json:"-" flag:"result,empty" doc:"the result's {TEXT}, or - for standard input"`
	AsJSON bool            `json:"-" flag:"as-json" doc:"the result is JSON"`
	Error  bool            `json:"is_error,omitempty" flag:"error" doc:"the tool failed"`
	Token  string          `json:"token,omitempty" flag:"token" doc:"the claim's {TOKEN}: refuse if there is another claim by now"`
	By     string          `json:"-" flag:"by" doc:"the {NAME} of who does it, noted beside the user's"`
	RawInput
}

func resolveCall(r *Request, in *Resolving) (v contract.Answered, err error) {
	a := record.CallAnswer{Result: pool.Result{Text: in.Text, JSON: in.JSON, IsError: in.Error}, By: in.By}
	if in.JSON != nil && in.Text != "" {
		return v, base.Invalid("calls.resolve takes text or json")
	}
	if in.Token == "" {
		a.By = cmp.Or(in.By, r.By) // a claim has a name of its own
	} else if a.Token, err = uuid.Parse(in.Token); err != nil {
		return v, errNoToken
	}
	done, err := r.Store.ResolveCall(r.Ctx, in.Context, in.Branch, in.Call, a)
	if err != nil {
		return v, err
	}
	return contract.AnsweredOf(done), nil
}
