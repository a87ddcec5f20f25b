// Package turn talks to a provider: from a branch to a request, over a stream to a message on the branch. It is the only such loop.
//
// A Turn is set up once and used for any number of Sends. What holds for each of them:
//
//   - the user's messages are durable before anything is sent;
//   - one reply runs on a branch at a time, by a claim that other processes see. Messages that come meanwhile wait in the queue,
//     stand on the branch once the reply does, and are then answered;
//   - what has come of a reply is stored half a second after the first words and then every two seconds, and the whole reply in one transaction. A crash leaves an unfinished
//     message, put on the branch by whoever next touches it. A cancelled context keeps what came in the same way;
//   - a program that takes the claim away (chatctx interrupt) stops the reply within a second, and nothing more of it is stored.
package turn

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
)

// Turn says how to ask. Only Context is needed. Its methods may be called by several goroutines, on different branches.
type Turn struct {
	Context *chatctx.ChatContext
	Branch  string // "" for the active one
	// Settings win over those in force on the branch: model, provider, base_url …
	Settings map[string]json.RawMessage
	// Client is asked in place of the one that the settings name.
	Client wire.Client
	// Enhancers run before the standard ones.
	Enhancers []enhancer.Enhancer
	// Show, if not nil, is told what happens, while it happens, by the goroutine of Send.
	Show func(Event)
	// Calls, if not nil, is asked after a reply that calls tools and is stored: it decides and runs those that may be, and reports
	// whether every call of the message has its result on the branch, so that the model is to be asked again. Without it Send returns and
	// the calls wait. named are the tools that the request named, nil where it is not known: the reply is of an earlier Send, or somebody else's.
	Calls func(ctx context.Context, branch string, reply *chatctx.Message, named []string) (goOn bool, err error)
	// PartOf, if not nil, is the batch that the command began with, committed: Undo takes the replies back together with it.
	PartOf *chatctx.Batch
	// Rounds bounds how often one Send asks; 0 is DefaultRounds.
	Rounds int
	// Tokens bounds what the replies of one Send may cost, input and output together; 0: no limit.
	Tokens int64
	// Asides, if not nil, knows what was asked apart from the conversation, for shorter digests. Turns that ask about one history share one, so that the same is asked and paid for once.
	Asides *enhancer.Once
	// Getenv reads the environment; nil: os.Getenv.
	Getenv func(string) string
	// HTTP, if its fields are set, is how clients send; addresses and keys in it count.
	HTTP wire.Options

	// reply, if not nil, has the branch already: it was made for the answer that the next Send gets.
	reply *chatctx.Reply
	// tick gives the times at which a reply that runs looks after its claim; nil: every lookAfter.
	tick func() (times <-chan time.Time, stop func())
}

// DefaultRounds is how often one Send asks at most.
const DefaultRounds = 50

// ErrRounds: a Send reached its limit of rounds while the model still wanted to go on.
var ErrRounds = errors.New("the limit of rounds is reached: send --continue goes on")

// Event is something that happens in a Send. One of its fields is set.
type Event struct {
	Delta   *wire.Delta        // words of the reply
	Request *Request           // a request that is about to be sent
	Message *chatctx.Message   // a message that was put on the branch: a reply, or the user's; Place is where
	Retry   *Retry             // the provider had no time; it is asked again after a wait
	Settled *chatctx.Message   // what had come of an earlier reply whose program died; it is on the branch now
	Place   *chatctx.Placement // of Message
}

// Retry is a request that failed and is sent again.
type Retry struct {
	Failed *wire.Error
	Wait   time.Duration
}

// Outcome is what a Send came to.
type Outcome struct {
	Context chatctx.ID
	Branch  string
	Asked   []chatctx.Placement // the user's messages
	// Queued: a reply of another program runs on the branch; the messages wait for it, and it will answer them.
	Queued bool
	Holder *chatctx.Claim // that program
	// Replies are the model's messages, the last one perhaps unfinished.
	Replies  []*chatctx.Message
	Places   []chatctx.Placement
	Revision uint64
	// Operation is the last one that was made.
	Operation string
	// Waiting are the calls of the last reply that nobody has answered.
	Waiting int
	Request *Request // the last one
}

// Reply is the last reply, nil if none came.
func (o *Outcome) Reply() *chatctx.Message {
	if len(o.Replies) == 0 {
		return nil
	}
	return o.Replies[len(o.Replies)-1]
}

// Send puts messages on the branch, asks the provider and puts its reply there. Without messages it answers what the branch ends with.
//
// With an error the Outcome still says what was stored: the messages, and what came of a reply, unfinished. Errors to test for are *wire.Error,
// chatctx.ErrStopped, ErrRounds, those of adapters (nothing was sent), and the context's cause.
func (t *Turn) Send(ctx context.Context, messages ...*chatctx.Message) (*Outcome, error) {
	if t.reply != nil {
		s := &sending{Turn: t, reply: t.reply, out: &Outcome{Context: t.Context.ID, Branch: t.Branch}}
		t.reply = nil
		return s.send(ctx, nil, true)
	}
	begun, err := t.Context.BeginReply(ctx, t.Branch, chatctx.AppendOptions{}, messages...)
	if err != nil {
		return nil, err
	}
	out := &Outcome{Context: begun.Context, Branch: begun.Branch, Asked: begun.Last().Placed, Revision: begun.Revision}
	if begun.Reply == nil {
		out.Queued, out.Holder = true, begun.Holder
		return out, nil
	}
	s := &sending{Turn: t, reply: begun.Reply, out: out}
	return s.send(ctx, begun.Settled, len(messages)+len(begun.FromQueue) > 0)
}

// send is Send with the claim.
func (s *sending) send(ctx context.Context, settled *chatctx.Message, asked bool) (*Outcome, error) {
	if s.PartOf != nil {
		s.reply.Together(s.PartOf)
	}
	panics := true
	defer func() {
		if panics { // in Show or another function of the program: whoever recovers finds the branch free
			_ = s.giveUp(ctx)
		}
	}()
	if settled != nil {
		s.show(Event{Settled: settled})
	}
	err := s.answer(ctx, asked)
	if panics = false; err != nil {
		return s.out, errors.Join(err, s.giveUp(ctx))
	}
	return s.out, nil
}

// sending is one Send that has the claim.
type sending struct {
	*Turn
	reply *chatctx.Reply
	out   *Outcome
}

// answer asks for what stands on the branch; asked: a message is new. Without an error the claim has ended with it.
func (s *sending) answer(ctx context.Context, asked bool) error {
	if !asked {
		if ask, err := s.resume(ctx); err != nil || !ask {
			return err
		}
	}
	return s.all(ctx)
}

// all asks until the model stops, a call waits, or an error ends it.
func (s *sending) all(ctx context.Context) error {
	rounds := s.Rounds
	if rounds == 0 {
		rounds = DefaultRounds
	}
	for range rounds {
		more, err := s.round(ctx)
		if err != nil || !more {
			return err
		}
		if s.Tokens > 0 && s.out.spent() >= s.Tokens {
			return ErrTokens
		}
	}
	return ErrRounds
}

// round asks once. more: the claim is kept, and what stands on the branch now wants an answer.
func (s *sending) round(ctx context.Context) (more bool, err error) {
	asides := s.Asides
	if asides == nil {
		asides = &enhancer.Once{}
	}
	req, err := s.request(ctx, s.reply.Branch, asides)
	if err == nil {
		err = s.keepPaid(ctx, req)
	}
	if err != nil {
		return false, err
	}
	s.out.Request = req
	s.show(Event{Request: req})
	m, failed := s.ask(ctx, req)
	if m == nil || errors.Is(failed, chatctx.ErrStopped) {
		return false, failed
	}
	e := chatctx.Ending{Messages: []*chatctx.Message{m}, Sessions: req.sessions(), Provider: req.Provider, Request: req.record(),
		GoOn: failed == nil && s.Calls != nil && len(m.Calls) > 0, Stop: failed != nil}
	ended, err := s.finish(ctx, e)
	if err != nil {
		return false, errors.Join(failed, err)
	}
	s.stored(m, ended)
	if failed != nil || !e.GoOn {
		return ended.Held, failed
	}
	return s.afterCalls(ctx, m, req.named(), len(ended.FromQueue) > 0)
}

// keepPaid stores what a model was asked for the request, before anything else can fail: it is paid for, and other requests use it.
func (s *sending) keepPaid(ctx context.Context, req *Request) error {
	if len(req.Report.Paid) == 0 {
		return nil
	}
	e := chatctx.Ending{Sessions: req.sessions(), Loose: req.Report.Paid, GoOn: true, Stop: true}
	_, err := s.finish(ctx, e)
	req.before = req.Draft.Session
	return err
}

// finishTries is how often a reply is stored while somebody else holds the file: each try waits as long as the store does. A reply is
// paid for.
const finishTries = 12

func (s *sending) finish(ctx context.Context, e chatctx.Ending) (ended *chatctx.Ended, err error) {
	for range finishTries {
		ended, err = s.reply.Finish(unstoppable(ctx), e)
		if !errors.Is(err, chatctx.ErrLocked) || ctx.Err() != nil {
			break
		}
	}
	return ended, err
}

// stored notes a reply that is on the branch.
func (s *sending) stored(m *chatctx.Message, ended *chatctx.Ended) {
	out := s.out
	out.Replies, out.Places = append(out.Replies, m), append(out.Places, ended.Last().Placed[0])
	out.Asked = append(out.Asked, ended.FromQueue...)
	out.Revision, out.Operation, out.Waiting = ended.Revision, ended.Operation, 0
	for i := range m.Calls {
		if m.Calls[i].Open() {
			out.Waiting++
		}
	}
	s.show(Event{Message: m, Place: &ended.Last().Placed[0]})
}

// afterCalls lets the calls of a reply be decided and run.
func (s *sending) afterCalls(ctx context.Context, m *chatctx.Message, named []string, queued bool) (bool, error) {
	goOn, err := s.runCalls(ctx, m, named)
	if err != nil {
		return false, err
	}
	if goOn {
		s.out.Waiting = 0
	}
	if goOn || queued {
		return true, nil
	}
	ended, err := s.reply.Finish(unstoppable(ctx), chatctx.Ending{})
	if err != nil {
		return false, err
	}
	s.out.Asked = append(s.out.Asked, ended.FromQueue...)
	return ended.Held, nil
}

// runCalls keeps the claim while tools run, and cancels them where it is taken away.
func (s *sending) runCalls(ctx context.Context, m *chatctx.Message, named []string) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopKeeping := (&keeper{reply: s.reply}).keep(ctx, s.ticks, cancel)
	goOn, err := s.Calls(ctx, s.out.Branch, m, named)
	stopKeeping()
	if cause := context.Cause(ctx); errors.Is(cause, chatctx.ErrStopped) {
		return false, cause
	}
	return goOn, err
}

// giveUp ends the claim without a reply, if it is still held. What waits in the queue stays there.
func (s *sending) giveUp(ctx context.Context) error {
	_, err := s.reply.Finish(unstoppable(ctx), chatctx.Ending{Stop: true})
	if errors.Is(err, chatctx.ErrStopped) {
		return nil
	}
	return err
}

// unstoppable is a context for storing what there is, also after an interrupt.
func unstoppable(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (t *Turn) show(e Event) {
	if t.Show != nil {
		t.Show(e)
	}
}

func (t *Turn) getenv(name string) string {
	if t.Getenv != nil {
		return t.Getenv(name)
	}
	return os.Getenv(name)
}
