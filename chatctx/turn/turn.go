// Package turn talks to a provider: from a branch to a request, and over a stream to a message on the branch. It is the only such loop.
//
// A Turn is set up once and used for any number of Sends. Each Send keeps these rules:
//   - the user's messages are durable before anything is sent;
//   - one reply at a time runs on a branch, with a claim that other processes see. Messages that arrive meanwhile wait in the queue, go on the
//     branch after the reply, and are then answered;
//   - what has arrived of a reply is stored half a second after the first words and then every two seconds, and the whole reply in one
//     transaction. A crash leaves an unfinished message, which the next program that uses the branch puts on it. A cancelled context keeps what
//     arrived in the same way;
//   - a program that takes the claim away (chatctx interrupt) stops the reply within a second, and nothing more of it is stored.
package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/window"
)

// Turn says how to ask. Only Context is required. Its methods are safe for concurrent use on different branches.
type Turn struct {
	Context *chatctx.ChatContext
	Branch  string // "" means the active one
	// Settings override those in force on the branch: model, provider, base_url …
	Settings map[string]json.RawMessage
	// System, if not empty, becomes the branch's system prompt together with the messages of Send, or with that of Ask if the first of its turns has it.
	System string
	// Client, if not nil, is used instead of the one that the settings name.
	Client wire.Client
	// Enhancers run right after exclude, or where window.Before and window.After put them.
	Enhancers []enhancer.Enhancer
	// Show, if not nil, is called for each event as it happens, by the goroutine of Send.
	Show func(Event)
	// Calls, if not nil, is called after a reply with calls is stored, and before the model is asked where calls of the branch are approved and were not run.
	// It decides and runs the calls that may run, and reports whether every call of the message has its result on the branch, so that the model is asked again.
	// Without it Send returns and the calls wait. named are the tools that the request named, nil if they are unknown, because the reply is of an earlier Send
	// or of another program.
	Calls func(ctx context.Context, branch string, reply *chatctx.Message, named []string) (goOn bool, err error)
	// PartOf, if not nil, is the committed batch with which the command began: Undo undoes the replies together with it.
	PartOf *chatctx.Batch
	// Rounds bounds how often one Send asks; 0 means DefaultRounds.
	Rounds int
	// Tokens bounds the tokens of one Send's replies, input and output together; 0 means no limit. It is checked after each reply.
	Tokens int64
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
	// HTTP says how clients send. Its fields override the settings, also addresses and keys.
	HTTP wire.Options

	// asides, if not nil, keeps the answers to questions apart from the conversation, for shorter digests. Turns that ask about one history share one, so that
	// each question is asked and paid for once.
	asides *window.Once
	// tick returns the times at which a running reply checks its claim; nil means every lookAfter.
	tick func() (times <-chan time.Time, stop func())
}

// DefaultRounds is how often one Send asks at most.
const DefaultRounds = 50

// ErrRounds means that a Send reached its limit of rounds while the model still wanted to go on.
var ErrRounds = errors.New("the limit of rounds is reached: send --continue goes on")

// Event is an event of a Send. One of its fields is set; Place is set with Message.
type Event struct {
	Begun   bool              // the branch is claimed, and the messages are stored: the first event
	Delta   *wire.Delta       // a piece of the reply
	Request *Request          // a request that is about to be sent
	Message *chatctx.Message  // a message that is now on the branch: a reply, or the user's
	Retry   *Retry            // the request failed; it is sent again after a wait
	Settled *chatctx.Message  // what had arrived of an earlier reply whose program died; it is on the branch now
	Place   *record.Placement // the place of Message
}

// Retry is a request that failed and is sent again.
type Retry struct {
	Failed *wire.Error
	Wait   time.Duration
}

// Outcome is the result of a Send.
type Outcome struct {
	Context chatctx.ID
	Branch  string
	Asked   []record.Placement // the user's messages
	// Queued means that a reply of another program runs on the branch; the messages wait, and that program will answer them.
	Queued bool
	Holder *record.Claim // that program
	// Replies are the model's messages; the last one may be unfinished.
	Replies  []*chatctx.Message
	Places   []record.Placement
	Revision uint64
	// Operation is the last one that was made.
	Operation string
	// Waiting is the number of calls of the last reply that have no result.
	Waiting int
	Request *Request // the last one
}

// Reply returns the last reply, nil if none arrived.
func (o *Outcome) Reply() *chatctx.Message {
	if len(o.Replies) == 0 {
		return nil
	}
	return o.Replies[len(o.Replies)-1]
}

// Send puts messages on the branch, asks the provider and puts its reply there. Without messages it answers what the branch ends with.
//
// With an error the Outcome still says what was stored: the messages, and what arrived of a reply, unfinished; it is nil if nothing was. Errors to test for are
// *wire.Error, chatctx.ErrStopped, ErrRounds, ErrTokens, those of adapters (nothing was sent), and the context's cause.
func (t *Turn) Send(ctx context.Context, messages ...*chatctx.Message) (*Outcome, error) {
	begun, err := t.Context.BeginReply(ctx, t.Branch, chatctx.AppendOptions{System: t.System}, messages...)
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

// answer is Send on a branch of its own, which a reply has claimed.
func (t *Turn) answer(ctx context.Context, reply *chatctx.Reply) (*Outcome, error) {
	s := &sending{Turn: t, reply: reply, aside: true, out: &Outcome{Context: t.Context.ID, Branch: t.Branch}}
	return s.send(ctx, nil, true)
}

// send is Send after the claim.
func (s *sending) send(ctx context.Context, settled *chatctx.Message, asked bool) (*Outcome, error) {
	if s.PartOf != nil {
		s.reply.Together(s.PartOf)
	}
	panics := true
	defer func() {
		if panics { // in Show or another function of the program: a program that recovers finds the branch free
			_ = s.giveUp(ctx)
		}
	}()
	s.show(Event{Begun: true})
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
	aside bool // one of several answers to one message: calls of earlier turns are left alone
}

// answer answers what is on the branch; asked means that a message is new. Without an error it has ended the claim.
func (s *sending) answer(ctx context.Context, asked bool) error {
	if ask, err := s.resume(ctx, asked); err != nil || !ask {
		return err
	}
	return s.all(ctx)
}

// all asks until the model stops, a call waits, or an error ends it.
func (s *sending) all(ctx context.Context) error {
	rounds := cmp.Or(s.Rounds, DefaultRounds)
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

// round asks once. more means that the claim is kept, and the branch ends with something to answer.
func (s *sending) round(ctx context.Context) (more bool, err error) {
	asides := s.asides
	if asides == nil {
		asides = &window.Once{}
	}
	req, err := s.request(ctx, s.reply.Branch, &asking{asides, s.keepPaid})
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
	req.compacted(m, &e)
	ended, err := s.finish(ctx, e)
	if err != nil {
		if !errors.Is(err, chatctx.ErrStopped) {
			err = fmt.Errorf("the answer came, but could not be stored: %w", err)
		}
		return false, errors.Join(failed, err)
	}
	s.stored(m, ended)
	if failed != nil || !e.GoOn {
		return ended.Held, failed
	}
	return s.afterCalls(ctx, m, req.named(), len(ended.FromQueue) > 0)
}

// keepPaid stores a model's answer that the request needs, before anything else can fail: it is paid for, and other requests use it. A reply that was stopped
// meanwhile keeps only what the answer took.
func (s *sending) keepPaid(ctx context.Context, sessions []branch.Session, paid *chatctx.Message) error {
	_, err := s.finish(ctx, chatctx.Ending{Sessions: sessions, Loose: []*chatctx.Message{paid}, GoOn: true, Stop: true})
	if err != nil {
		err = errors.Join(err, (&window.Answer{Paid: paid}).Lose(ctx, s.Context))
	}
	return err
}

// finishTries is how often storing a reply is tried while another program holds the file, since the reply is paid for. Each try waits as long as the store
// does.
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

// stored records a reply that is on the branch.
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

// afterCalls lets the program decide and run the calls of a reply. It reports whether the branch ends with something to answer.
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

// runCalls keeps the claim while tools run, and cancels them if it ends.
func (s *sending) runCalls(ctx context.Context, m *chatctx.Message, named []string) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopKeeping := (&keeper{reply: s.reply}).keep(ctx, s.ticks, cancel)
	goOn, err := s.Calls(s.reply.Within(ctx), s.out.Branch, m, named)
	stopKeeping()
	if cause := context.Cause(ctx); errors.Is(cause, chatctx.ErrStopped) {
		return false, cause
	}
	return goOn, err
}

// giveUp ends the claim without a reply, if it is still held. Queued messages stay queued.
func (s *sending) giveUp(ctx context.Context) error {
	_, err := s.reply.Finish(unstoppable(ctx), chatctx.Ending{Stop: true})
	if errors.Is(err, chatctx.ErrStopped) {
		return nil
	}
	return err
}

// unstoppable returns a context for storing results even after an interrupt.
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
