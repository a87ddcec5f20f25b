package operation

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Tools and their calls", Of: callOperations}) }

func callOperations() []*Operation {
	const at = "/contexts/{context}/branches/{branch}/calls/{call}"
	return []*Operation{
		Define("calls.list", "GET /calls", Read, "list the open calls of all conversations, oldest first", listCalls),
		Define("calls.log", "GET /contexts/{context}/calls/log", Read, "list every step of a conversation's calls, oldest first", callLog),
		Define("calls.get", "GET "+at, Read, "get a call with its history, what the rules say about it and why, and the rules that would allow similar calls", getCall),
		Define("calls.approve", "POST "+at+"/approve", Decide, "approve a call, with its own arguments or others", approveCall),
		Define("calls.deny", "POST "+at+"/deny", Decide, "deny a call", denyCall),
		Define("calls.cancel", "POST "+at+"/cancel", Decide, "give up a call that waits, or an approved one that nobody has begun to run", cancelCall),
		Define("calls.expire", "POST "+at+"/expire", Decide, "set when a call that nobody has decided counts as denied", expireCall),
		Define("calls.claim", "POST "+at+"/claim", Run, "claim an approved call to run it; if several programs try, one gets it", claimCall),
		Define("calls.renew", "POST "+at+"/renew", Run, "extend a claim", renewCall),
		Define("calls.resolve", "POST "+at+"/resolve", Run, "store the result of a claimed or uncertain call", resolveCall),
		Define("calls.run", "POST "+at+"/run", Run, "run an approved call with its stored tool", runCall).Lasting(),
	}
}

type callsParams struct {
	Context string `json:"context,omitempty" doc:"only calls of this conversation and its sub-contexts"`
	Branch  string `json:"branch,omitempty" doc:"only calls of this branch of the conversation"`
	Tool    string `json:"tool,omitempty" doc:"only calls of tools whose names match this pattern"`
	State   string `json:"state,omitempty" doc:"pending, approved, running or uncertain; by default all of these. A pending call waits because no rule decides it"`
	After   string `json:"after,omitempty" doc:"the cursor next of the previous page"`
	Limit   int    `json:"limit,omitempty" doc:"the most calls, up to 1000; 0 means 100"`
}

func listCalls(r *Request, in *callsParams) (List[contract.Call], error) {
	var none List[contract.Call]
	limit, err := limitOf(in.Limit)
	if err != nil {
		return none, err
	}
	state := contract.CallStates[in.State]
	if state == "" && in.State != "" {
		return none, chatctx.Invalid("state is %q, and has to be pending, approved, running or uncertain", in.State)
	}
	f := record.CallFilter{Branch: in.Branch, Tool: in.Tool, State: state}
	if in.Context != "" {
		c, err := r.Store.Context(r.Ctx, in.Context)
		if err != nil {
			return none, err
		}
		f.Context = c.ID
	} else if in.Branch != "" {
		return none, chatctx.Invalid("calls.list: branch needs context")
	}
	if in.After != "" {
		if f.After, err = readCallCursor(in.After); err != nil {
			return none, err
		}
	}
	out := ListOf[contract.Call](nil)
	var last *record.Call
	j := &judging{r: r}
	for c, err := range r.Store.Calls(r.Ctx, f) {
		if err != nil {
			return none, err
		}
		v, ruling, err := j.call(c)
		if err != nil {
			return none, err
		}
		if in.State == "pending" && ruling != nil && ruling.Effect != record.Ask {
			continue // the rules decide: it waits for no person
		}
		if len(out.Items) == limit {
			out.Next = callCursor(last)
			break
		}
		out.Items, last = append(out.Items, v), c
	}
	return out, nil
}

// callCursor returns the cursor for the place of a call in the list.
func callCursor(c *record.Call) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.Since))
	b = append(append(b, c.Context[:]...), c.Message[:]...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint16(b, uint16(c.Index)))
}

func readCallCursor(s string) (*record.Call, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 42 {
		return nil, chatctx.Invalid("after is no cursor of a page")
	}
	return &record.Call{Since: pool.Time(binary.BigEndian.Uint64(b)), Context: chatctx.ID(b[8:24]), Message: chatctx.ID(b[24:40]), Index: int(binary.BigEndian.Uint16(b[40:]))}, nil
}

// judging returns calls with the decision of the rules, and with the origins of those of sub-contexts.
type judging struct {
	r       *Request
	origins map[chatctx.ID]*contract.Origin
}

func (j *judging) call(c *record.Call) (contract.Call, *record.Ruling, error) {
	v := contract.CallOf(c)
	var err error
	if v.Origin, err = j.origin(c.Context); err != nil || c.Status != pool.Pending {
		return v, nil, err
	}
	ruling, err := j.r.Store.Judge(j.r.Ctx, c)
	if err != nil {
		return v, nil, err
	}
	if v.Effect = ruling.Effect; ruling.Rule != nil {
		v.Rule = ruling.Rule.ID
	}
	return v, ruling, nil
}

// origin returns the purpose of a sub-context, nil for any other context.
func (j *judging) origin(id chatctx.ID) (*contract.Origin, error) {
	if from, ok := j.origins[id]; ok {
		return from, nil
	}
	c, err := j.r.Store.Context(j.r.Ctx, id.String())
	if err != nil {
		return nil, err
	}
	var from *contract.Origin
	task, err := c.TaskInfo(j.r.Ctx)
	switch {
	case errors.Is(err, chatctx.ErrInvalid): // not a sub-context
	case err != nil:
		return nil, err
	default:
		from = contract.OriginOf(task)
	}
	if j.origins == nil {
		j.origins = map[chatctx.ID]*contract.Origin{}
	}
	j.origins[id] = from
	return from, nil
}

func callLog(r *Request, in *Conversation) (List[contract.Step], error) {
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return List[contract.Step]{}, err
	}
	steps, err := r.Store.CallLog(r.Ctx, c.ID)
	return ListEach(steps, err, contract.StepOf)
}

type callParams struct {
	Target
	callRef
}

// callChange is a change of a call.
type callChange struct {
	Change
	callRef
}

type callRef struct {
	Call string `json:"call" doc:"the call: MESSAGE:INDEX, or the provider's id if it is unique"`
}

func (r *Request) call(on Target, ref callRef) (*record.Call, error) {
	return r.Store.Call(r.Ctx, on.Context, on.Branch, record.CallRef(ref.Call))
}

// shownCall is a call with everything that a person needs for the decision.
type shownCall struct {
	contract.Shown
	Ruling *ruling         `json:"ruling,omitempty"` // for a call that waits
	Offers []contract.Rule `json:"offers"`           // rules that would allow calls like it, the narrowest first
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

func getCall(r *Request, in *callParams) (shownCall, error) {
	c, err := r.call(in.Target, in.callRef)
	if err != nil {
		return shownCall{}, err
	}
	v, j, err := (&judging{r: r}).call(c)
	if err != nil {
		return shownCall{}, err
	}
	plan, err := r.plan(c)
	if err != nil {
		return shownCall{}, err
	}
	out := shownCall{Shown: contract.ShownOf(c, v, plan), Offers: []contract.Rule{}}
	if j != nil {
		out.Ruling = &ruling{Effect: j.Effect, Inherited: j.Inherited, Why: j.Why, Notes: []ruleNote{}}
		if j.Rule != nil {
			rule := contract.RuleOf(j.Rule)
			out.Ruling.Rule = &rule
		}
		for _, n := range j.Notes {
			out.Ruling.Notes = append(out.Ruling.Notes, ruleNote{n.Rule.ID, n.Why, n.Holds})
		}
		for _, offer := range approval.Offers(j.Question) {
			out.Offers = append(out.Offers, contract.RuleOf(offer))
		}
	}
	return out, nil
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

type approveParams struct {
	callChange
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"arguments to run the call with; by default those of the model"`
	Reason    string          `json:"reason,omitempty" doc:"why, for the call's history"`
	Always    int             `json:"always,omitempty" doc:"also add a rule: its number among the call's offers, from 1; 0 means none. Needs admin"`
}

func approveCall(r *Request, in *approveParams) (contract.Call, error) {
	if string(in.Arguments) == "null" { // like a missing one
		in.Arguments = nil
	}
	c, err := r.call(in.Target, in.callRef)
	if err != nil {
		return contract.Call{}, err
	}
	b := r.Store.Begin(c.Context.String(), c.Branch)
	if in.Always != 0 {
		if err := r.need(Admin); err != nil {
			return contract.Call{}, err
		}
		j, err := r.Store.Judge(r.Ctx, c)
		if err != nil {
			return contract.Call{}, err
		}
		if in.Arguments != nil {
			j.Question.Arguments = in.Arguments
		}
		offers := approval.Offers(j.Question)
		if in.Always < 1 || in.Always > len(offers) {
			return contract.Call{}, chatctx.Invalid("always is %d, and the call has %d offers", in.Always, len(offers))
		}
		rule := offers[in.Always-1]
		rule.Reason = in.Reason
		b.AddRule(*rule, chatctx.RuleScope{})
	}
	b.Decide(c.Ref(), chatctx.Verdict{Status: pool.Approved, Name: r.By, Reason: in.Reason, Arguments: in.Arguments})
	return r.decided(b.Commit(r.Ctx))
}

func (r *Request) decided(done *chatctx.Committed, err error) (contract.Call, error) {
	if err != nil {
		return contract.Call{}, err
	}
	r.Revision = &done.Revision
	v := contract.CallOf(done.Last().Call)
	v.Operation = done.Operation
	return v, nil
}

type reasonParams struct {
	callChange
	Reason string `json:"reason,omitempty" doc:"why; the model gets the reason of a denial word for word"`
}

func (r *Request) decide(in *reasonParams, v chatctx.Verdict) (contract.Call, error) {
	c, err := r.call(in.Target, in.callRef)
	if err != nil {
		return contract.Call{}, err
	}
	v.Name, v.Reason = r.By, in.Reason
	b := r.Store.Begin(c.Context.String(), c.Branch)
	b.Decide(c.Ref(), v)
	return r.decided(b.Commit(r.Ctx))
}

func denyCall(r *Request, in *reasonParams) (contract.Call, error) {
	return r.decide(in, chatctx.Verdict{Status: pool.Denied})
}

func cancelCall(r *Request, in *reasonParams) (contract.Call, error) {
	return r.decide(in, chatctx.Verdict{Status: pool.Denied, Kind: record.ByCancel})
}

type expireParams struct {
	callChange
	At *time.Time `json:"at,omitempty" doc:"when the call expires; without it, never"`
}

func expireCall(r *Request, in *expireParams) (contract.Call, error) {
	c, err := r.call(in.Target, in.callRef)
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

type claimParams struct {
	callChange
	holding
}

// holding says how a claim is held.
type holding struct {
	Again bool `json:"again,omitempty" doc:"run a call again whose program died while it ran"`
	Hold  int  `json:"hold,omitempty" doc:"how many seconds the claim lasts if it is not renewed, up to 86400; 0 means as long as chatctx's own claims"`
}

func (in *holding) hold() time.Duration { return time.Duration(in.Hold) * time.Second }

// check refuses an invalid hold.
func (in *holding) check() error {
	if in.Hold < 0 || in.Hold > 24*60*60 {
		return chatctx.Invalid("hold is %d, and has to be from 1 to 86400 seconds", in.Hold)
	}
	return nil
}

func claimCall(r *Request, in *claimParams) (contract.Claim, error) {
	if err := in.check(); err != nil {
		return contract.Claim{}, err
	}
	k, err := r.Store.ClaimCall(r.Ctx, in.Context, in.Branch, record.CallRef(in.Call), record.ClaimOptions{Again: in.Again, PID: -1, Hold: in.hold(), Name: r.By})
	if err != nil {
		return contract.Claim{}, err
	}
	return contract.ClaimOf(k.Call, k.Token), nil
}

type renewParams struct {
	callParams
	Keyed
	holding
	Token string `json:"token" doc:"the token of the claim"`
}

func renewCall(r *Request, in *renewParams) (contract.Claim, error) {
	if err := in.check(); err != nil {
		return contract.Claim{}, err
	}
	token, err := uuid.Parse(in.Token)
	if err != nil {
		return contract.Claim{}, chatctx.Invalid("token is no token of a claim")
	}
	c, err := r.call(in.Target, in.callRef)
	if err != nil {
		return contract.Claim{}, err
	}
	err = r.Store.ClaimOf(c, token, in.hold()).Renew(r.Ctx)
	if errors.Is(err, chatctx.ErrStopped) {
		err = &chatctx.ConflictError{Text: err.Error()}
	}
	if err != nil {
		return contract.Claim{}, err
	}
	return contract.ClaimOf(c, token), nil
}

type resolveParams struct {
	callChange
	Text  string          `json:"text,omitempty" doc:"the result as text"`
	JSON  json.RawMessage `json:"json,omitempty" doc:"the result as JSON, in place of text"`
	Error bool            `json:"is_error,omitempty" doc:"whether the result is an error of the tool"`
	Token string          `json:"token,omitempty" doc:"the token of the claim; if another program has the claim by now, the result is refused"`
}

func resolveCall(r *Request, in *resolveParams) (contract.Answered, error) {
	a := chatctx.Answer{Result: pool.Result{Text: in.Text, JSON: in.JSON, IsError: in.Error}, By: r.By}
	if in.JSON != nil && in.Text != "" {
		return contract.Answered{}, chatctx.Invalid("calls.resolve takes text or json")
	}
	if in.Token != "" {
		var err error
		if a.Token, err = uuid.Parse(in.Token); err != nil {
			return contract.Answered{}, chatctx.Invalid("token is no token of a claim")
		}
		a.By = ""
	}
	done, err := r.Store.ResolveCall(r.Ctx, in.Context, in.Branch, record.CallRef(in.Call), a)
	if err != nil {
		return contract.Answered{}, err
	}
	return contract.AnsweredOf(done), nil
}

type runParams struct {
	callChange
	Again bool `json:"again,omitempty" doc:"run a call again whose program died while it ran"`
}

func runCall(r *Request, in *runParams) (contract.Answered, error) {
	c, err := r.call(in.Target, in.callRef)
	if err != nil {
		return contract.Answered{}, err
	}
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil {
		return contract.Answered{}, err
	}
	e, end := r.Executor(cc)
	defer end()
	note, show := "", e.Show
	e.Show = func(ev approval.Event) {
		if ev.Older {
			note = approval.OlderNote
		}
		if show != nil {
			show(ev)
		}
	}
	done, err := e.RunCall(r.Ctx, c, in.Again)
	if err != nil {
		return contract.Answered{}, err
	}
	v := contract.AnsweredOf(done)
	v.Note = note
	return v, nil
}
