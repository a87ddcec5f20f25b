package operation

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Talking to a model", Of: sendOperations}) }

func sendOperations() []*Operation {
	const at = "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("send", "POST "+at+"/send", Run, "send a message to a model, or to several at once, and report the answers as they come; each answer is stored on a branch", send).Stream(sendEvents...).Fails(asking...),
		Define("retry", "POST "+at+"/retry", Run, "answer the last user message again on a new branch, and report the answer as it comes; the old answer stays", retry).Stream(sendEvents...).Fails(asking...),
	}
}

// asked says whom to ask.
type asked struct {
	Model    string                     `json:"model,omitempty" doc:"the model; by default the one in the settings"`
	Provider string                     `json:"provider,omitempty" doc:"the provider; by default the model's name decides"`
	Models   []string                   `json:"models,omitempty" doc:"several models to ask at once, instead of model; each answers on a new branch with its name"`
	Times    int                        `json:"times,omitempty" doc:"how many answers to get from each model, each on a new branch; 0 means 1"`
	Settings map[string]json.RawMessage `json:"settings,omitempty" doc:"settings for this request only"`
}

type sendParams struct {
	Change
	asked
	Text    string           `json:"text,omitempty" doc:"the user's message as text; without text and message, the model answers the last message of the branch"`
	Message *chatctx.Message `json:"message,omitempty" doc:"the user's message, instead of text"`
}

type retryParams struct {
	Change
	asked
	Name     string `json:"name,omitempty" doc:"the new branch's name; by default the next free one of main.2, main.3 …"`
	Activate bool   `json:"activate,omitempty" doc:"make the new branch the active one"`
}

// The events of send and retry.
type (
	// Delta is the next words of an answer.
	requested struct {
		Branch   string `json:"branch"`
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}
	Delta struct {
		Branch  string `json:"branch"`
		Type    string `json:"type"` // text, thinking, refusal …
		Text    string `json:"text"`
		Skipped bool   `json:"skipped,omitempty"` // earlier words were left out because they were not read in time; the message has all
	}
	arrived struct {
		Branch  string         `json:"branch"`
		Message *chatctx.Entry `json:"message"`
	}
	retried struct {
		Branch  string  `json:"branch"`
		Kind    string  `json:"kind"`
		Seconds float64 `json:"seconds"` // until the request is sent again
	}
	failed struct {
		Branch string         `json:"branch"`
		Model  string         `json:"model,omitempty"`
		Error  contract.Error `json:"error"`
	}
)

var sendEvents = []Event{
	Tells[requested]("request", "a request goes to a provider"), Tells[Delta]("delta", "the next words of an answer"), Tells[retried]("retry", "a provider failed and is asked again after some seconds"),
	Tells[arrived]("message", "a message is complete and stored"), Tells[contract.Answer]("answer", "one of several answers is complete"), Tells[failed]("failed", "one of several answers failed"),
}

// answers are the result of a send: an answer for each branch, and the failures.
type answers struct {
	Answers []contract.Answer `json:"answers"`
	Failed  []failed          `json:"failed"`
}

// mostAsked bounds how many answers one request asks for, since each costs money.
const mostAsked = 32

func send(r *Request, in *sendParams) (answers, error) {
	m := in.Message
	if m != nil && in.Text != "" {
		return answers{}, base.Invalid("send takes text or message")
	}
	if in.Text != "" {
		m = pool.NewText(pool.User, in.Text)
	}
	if m != nil {
		if err := ready([]*chatctx.Message{m}); err != nil {
			return answers{}, err
		}
		if err := r.mayAppend(in.Target, []*chatctx.Message{m}); err != nil {
			return answers{}, err
		}
	}
	s, err := r.sending(in.Target, &in.asked)
	if err != nil {
		return answers{}, err
	}
	defer s.close()
	if len(in.Models) > 0 || in.Times > 1 {
		at := record.Ref("")
		if m == nil {
			question, _, err := turn.Question(r.Ctx, s.snap)
			if err != nil {
				return answers{}, err
			}
			at = record.RefTo(question.ID)
		}
		return s.many(m, at)
	}
	var messages []*chatctx.Message
	if m != nil {
		messages = append(messages, m)
	}
	if err := fits(s.turn.Fits(r.Ctx, messages...)); err != nil {
		return answers{}, err
	}
	return s.said(messages...)
}

func retry(r *Request, in *retryParams) (answers, error) {
	s, err := r.sending(in.Target, &in.asked)
	if err != nil {
		return answers{}, err
	}
	defer s.close()
	question, last, err := turn.Question(r.Ctx, s.snap)
	if err != nil {
		return answers{}, err
	}
	if len(in.Models) > 0 || in.Times > 1 {
		return s.many(nil, record.RefTo(question.ID))
	}
	if err := fits(s.turn.Fits(r.Ctx)); err != nil {
		return answers{}, err
	}
	if last && in.Name == "" {
		return s.said()
	}
	a, err := s.turn.Beside(r.Ctx, in.Name, question)
	if err != nil {
		return answers{}, err
	}
	s.show(a.Turn)
	return s.one(func() (*turn.Outcome, error) {
		if a.Ask(r.Ctx, !in.Activate); !a.Kept() {
			return nil, a.Err
		}
		return a.Outcome, a.Err
	})
}

// fits describes the error of a provider that would not take a message unchanged.
func fits(err error) error {
	var not *turn.NotTakenError
	if errors.As(err, &not) {
		return base.Invalid("%s; nothing was stored", not.Error())
	}
	return err
}

// sending is a running send.
type sending struct {
	r      *Request
	in     *asked
	turn   *turn.Turn
	snap   *chatctx.Snapshot
	teller Teller
	end    func() // ends the executor
}

func (r *Request) sending(at Target, in *asked) (*sending, error) {
	if in.Times < 0 || in.Times > mostAsked || max(in.Times, 1)*max(len(in.Models), 1) > mostAsked {
		return nil, base.Invalid("times is at least 1, and all together are at most %d answers", mostAsked)
	}
	if len(in.Models) > 0 && in.Model != "" {
		return nil, base.Invalid("give model or models, not both")
	}
	for i, m := range in.Models {
		if m == "" || slices.Contains(in.Models[:i], m) {
			return nil, base.Invalid("in models one is empty or stands there twice; one model several times: times")
		}
	}
	if err := r.maySet(in.Settings); err != nil {
		return nil, err
	}
	c, snap, err := r.snapshotToChange(at)
	if err != nil {
		return nil, err
	}
	set := map[string]json.RawMessage{}
	for name, value := range in.Settings {
		set[name] = value
	}
	for name, word := range map[string]string{"model": in.Model, "provider": in.Provider} {
		if word != "" {
			set[name] = jsontree.Quote(word)
		}
	}
	e, end := r.Executor(c)
	s := &sending{r: r, in: in, snap: snap, teller: r.Teller(), end: end}
	s.turn = &turn.Turn{Context: c, Branch: snap.Info.Name, Settings: set, Calls: e.Calls}
	if r.Turn != nil {
		r.Turn(s.turn)
	}
	s.show(s.turn)
	return s, nil
}

func (s *sending) close() {
	s.teller.Close()
	s.end()
}

// show passes a turn's events on.
func (s *sending) show(t *turn.Turn) {
	t.Show = func(e turn.Event) {
		switch {
		case e.Delta != nil && e.Delta.Text != "":
			s.teller.Delta(Delta{Branch: t.Branch, Type: e.Delta.Type, Text: e.Delta.Text})
		case e.Request != nil:
			s.teller.Put("request", requested{t.Branch, e.Request.Provider, e.Request.Model})
		case e.Retry != nil:
			s.teller.Put("retry", retried{t.Branch, string(e.Retry.Failed.Kind), e.Retry.Wait.Seconds()})
		case e.Message != nil && e.Place != nil:
			s.teller.Put("message", arrived{t.Branch, &chatctx.Entry{Message: e.Message, Position: e.Place.Position}})
		}
	}
}

// said asks on the turn's branch.
func (s *sending) said(messages ...*chatctx.Message) (answers, error) {
	return s.one(func() (*turn.Outcome, error) { return s.turn.Send(s.r.Ctx, messages...) })
}

// one passes on what one turn is told.
func (s *sending) one(ask func() (*turn.Outcome, error)) (answers, error) {
	out, err := ask()
	v := answers{Answers: answersOf(out), Failed: []failed{}}
	s.teller.Flush()
	return v, err
}

// answersOf returns the answers of a send.
func answersOf(out *turn.Outcome) []contract.Answer {
	all := []contract.Answer{}
	if out == nil {
		return all
	}
	if out.Queued {
		return append(all, contract.Answer{Context: out.Context, Branch: out.Branch, Queued: true})
	}
	for i, m := range out.Replies {
		v := contract.Answer{Context: out.Context, Branch: out.Branch, Message: &chatctx.Entry{Message: m, Position: out.Places[i].Position}, Position: out.Places[i].Position}
		outcome := pool.OutcomeOf(m)
		v.FinishReason, v.Outcome, v.Refused = m.Meta.FinishReason, string(outcome), outcome.Refused()
		if i == len(out.Replies)-1 {
			v.Waiting, v.Revision, v.Operation = out.Waiting, out.Revision, out.Operation
		}
		all = append(all, v)
	}
	return all
}

// many asks all at once, each on a branch of its own.
func (s *sending) many(m *chatctx.Message, at record.Ref) (answers, error) {
	taken, err := turn.NamesOf(s.r.Ctx, s.turn.Context)
	if err != nil {
		return answers{}, err
	}
	models := s.in.Models
	if len(models) == 0 {
		models = []string{s.in.Model}
	}
	var turns []*turn.Turn
	labels := map[*turn.Turn]string{}
	for _, model := range models {
		for range max(s.in.Times, 1) {
			own := *s.turn
			own.Settings = map[string]json.RawMessage{}
			for name, value := range s.turn.Settings {
				own.Settings[name] = value
			}
			if model != "" {
				own.Settings["model"] = jsontree.Quote(model)
			}
			own.Branch = taken.Free(s.snap.Info.Name, model)
			s.show(&own)
			turns, labels[&own] = append(turns, &own), model
		}
	}
	out := answers{Answers: []contract.Answer{}, Failed: []failed{}}
	_, err = turn.Ask(s.r.Ctx, s.snap.Info.Name, m, at, turns, func() {}, func(a *turn.Answer) {
		if a.Err != nil {
			f := failed{a.Turn.Branch, labels[a.Turn], errorOf(a.Err)}
			out.Failed = append(out.Failed, f)
			s.teller.Put("failed", f)
			return
		}
		for _, v := range answersOf(a.Outcome) {
			out.Answers = append(out.Answers, v)
			s.teller.Put("answer", v)
		}
	})
	s.teller.Flush()
	return out, fits(err)
}
