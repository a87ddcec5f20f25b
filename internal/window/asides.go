package window

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Named has a name: a Completer, or a Compactor.
type Named interface{ Name() string }

// Question is a question to a model apart from a conversation.
type Question struct {
	Kind           string // what the answer is for: digest, summary or title
	System, Prompt string
	Limit          int // about how many tokens the answer may have
	// About is a hash of the ids of the messages that the question is about. Together with the model and the form of the question it identifies the question.
	About pool.Hash
	// Fits, if not nil, returns an error for a whole answer that cannot be used.
	Fits func(text string) error
	// compacted, if not nil, means that the answer is a provider's compaction, and returns an error for a whole one that cannot be used.
	compacted func(*pool.Message) error
}

// About returns the hash of the ids of messages for a Question.
func About(messages []*chatctx.DraftMessage) pool.Hash { return hashOf(messages) }

// Answer is a usable answer of a model.
type Answer struct {
	Text string
	// Paid records what the answer took. It goes into the pool, on no branch, together with what the text is for.
	Paid  *pool.Message
	parts []pool.Part // of a provider's compaction
}

// Ask asks a model a question about a conversation. It returns only the text of a whole answer that fits; any other answer is an *UnusableError. What an unusable
// answer took is stored before Ask returns, and the question is remembered: Ask does not ask the same model again, unless the reply broke off. A usable answer is
// for the caller to store, see Lose. With a nil context nothing is stored and nothing is remembered.
func Ask(ctx context.Context, c *chatctx.ChatContext, m enhancer.Completer, q Question) (*Answer, error) {
	if err := unusable(ctx, c, verdictID(c, m, q)); err != nil {
		return nil, err
	}
	reply, paid, err := complete(ctx, c, m, q)
	if reply == nil {
		return nil, cmp.Or(err, error(&enhancer.UnusableError{Cause: &pool.OutcomeError{Outcome: pool.Empty, Ending: pool.Empty.Words()}}))
	}
	a := &Answer{Paid: paid}
	if err != nil {
		return nil, errors.Join(err, a.Lose(ctx, c))
	}
	if err = a.read(reply, &q); err == nil {
		return a, nil
	}
	records := []*pool.Message{a.Paid}
	if pool.OutcomeOf(reply) != pool.BrokenOff {
		records = append(records, verdict(verdictID(c, m, q), q.Kind, err))
	}
	return nil, errors.Join(&enhancer.UnusableError{Cause: err}, putLoose(ctx, c, records...))
}

// read takes the text of a reply, or the parts of a compaction, if it can be used.
func (a *Answer) read(reply *pool.Message, q *Question) (err error) {
	if q.compacted != nil {
		a.parts, err = compaction(reply, q.compacted)
		return err
	}
	if a.Text, err = reply.Whole(); err == nil && q.Fits != nil {
		err = q.Fits(a.Text)
	}
	return err
}

// Lose stores what an answer took if what it was for could not be stored. Without an answer it does nothing.
func (a *Answer) Lose(ctx context.Context, c *chatctx.ChatContext) error {
	if a == nil {
		return nil
	}
	return putLoose(ctx, c, a.Paid)
}

// putLoose stores records of answers, also after an interrupt.
func putLoose(ctx context.Context, c *chatctx.ChatContext, records ...*pool.Message) error {
	if c == nil {
		return nil
	}
	b := c.Begin("")
	for _, m := range records {
		b.PutLoose(m)
	}
	_, err := b.Commit(context.WithoutCancel(ctx))
	return err
}

// receipt returns the message that records what a reply took. It has no text: that is where the answer is used.
func receipt(reply *pool.Message, kind string) *pool.Message {
	m := &pool.Message{ID: reply.ID, Role: pool.Assistant, Kind: kind, Hidden: true, Unsent: true, Meta: reply.Meta, Created: reply.Meta.Completed}
	m.Meta.ProviderData = nil
	if m.ID == (pool.ID{}) {
		m.ID = pool.NewID()
	}
	return m
}

// verdictKey is the name in a message's app data for why an answer was not usable.
const verdictKey = "unusable"

// storedVerdict says why an answer was not usable.
type storedVerdict struct {
	Outcome pool.Outcome `json:"outcome,omitempty"`
	Cause   string       `json:"cause"`
}

// verdictID returns the id under which a context remembers that a question has no usable answer. It is made of ids, names and sizes: the hash of a text could be
// tested by guessing after the text was purged.
func verdictID(c *chatctx.ChatContext, m Named, q Question) pool.ID {
	if c == nil {
		return pool.ID{}
	}
	h := sha256.New()
	h.Write(c.ID[:])
	h.Write(q.About[:])
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00%d\x00%d", q.Kind, m.Name(), q.Limit, len(q.System), len(q.Prompt))
	id := pool.ID(h.Sum(nil)[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of a form of its own, version 8
	return id
}

// verdict returns the message that remembers a question without a usable answer.
func verdict(id pool.ID, kind string, cause error) *pool.Message {
	v := storedVerdict{Cause: cause.Error()}
	if o := (*pool.OutcomeError)(nil); errors.As(cause, &o) {
		v = storedVerdict{o.Outcome, o.Ending}
	}
	raw, _ := json.Marshal(v) // texts always encode
	return &pool.Message{ID: id, Role: pool.Assistant, Kind: kind, Hidden: true, Unsent: true, AppData: map[string]json.RawMessage{verdictKey: raw}}
}

// unusable returns an *UnusableError if the context remembers a question by its id.
func unusable(ctx context.Context, c *chatctx.ChatContext, id pool.ID) error {
	if c == nil {
		return nil
	}
	m, err := c.Message(ctx, id)
	if err != nil {
		if errors.Is(err, chatctx.ErrNotFound) {
			return nil
		}
		return err
	}
	var v storedVerdict
	_ = json.Unmarshal(m.AppData[verdictKey], &v) // unreadable data still mean that it was asked
	e := &enhancer.UnusableError{Cause: errors.New(cmp.Or(v.Cause, "the model's answer was not usable")), Again: true}
	if v.Outcome != pool.Answered {
		e.Cause = &pool.OutcomeError{Outcome: v.Outcome, Ending: v.Cause}
	}
	return e
}

// growth is by what factor a session grows before a model that gave no usable summary is asked for one again by itself.
const growth = 1.25

// attempt is the question that stands for all automatic compactions of a draft's session, as the store returns it, until it has grown.
func attempt(d *chatctx.Draft) Question {
	q := Question{Kind: "summary"}
	of := slices.Clone(d.Session.ID[:])
	weight := 1
	for i, m := range d.Messages {
		if weight += poolstore.Weight(m.Entry.Message); i == 0 {
			of = append(of, m.ID[:]...)
		}
	}
	q.About, q.Limit = sha256.Sum256(of), int(math.Log(float64(weight))/math.Log(growth))
	return q
}

// GaveUp reports whether the model's summary of a draft's session was not usable when an automatic compaction asked for it, and the session has not grown by
// about a quarter since. The draft is as the store returns it.
func GaveUp(ctx context.Context, c *chatctx.ChatContext, m Named, d *chatctx.Draft) (bool, error) {
	err := unusable(ctx, c, verdictID(c, m, attempt(d)))
	if is := (*enhancer.UnusableError)(nil); errors.As(err, &is) {
		return true, nil
	}
	return false, err
}

// GiveUp remembers for GaveUp that an automatic compaction failed with cause. A cause that may pass is not remembered.
func GiveUp(ctx context.Context, c *chatctx.ChatContext, m Named, d *chatctx.Draft, cause error) error {
	var is *enhancer.UnusableError
	var o *pool.OutcomeError
	if !errors.As(cause, &is) || errors.As(cause, &o) && o.Outcome == pool.BrokenOff {
		return nil
	}
	q := attempt(d)
	return putLoose(ctx, c, verdict(verdictID(c, m, q), q.Kind, is.Cause))
}

// Once asks each question only once: all who ask it again, meanwhile or later, get the first answer, from whichever Completer. It serves several requests about
// one history. A question that failed is asked again. It is safe for concurrent use.
type Once struct {
	mu    sync.Mutex
	asked map[[32]byte]*asked
}

// By returns a Completer that asks c each question that nobody has asked before.
func (o *Once) By(c enhancer.Completer) enhancer.Completer { return &once{o, c} }

type once struct {
	*Once
	enhancer.Completer
}

type asked struct {
	mu    sync.Mutex
	reply *pool.Message
}

func (o *once) Complete(ctx context.Context, p enhancer.Prompt) (*pool.Message, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", p.Limit, p.System, p.Text))
	o.mu.Lock()
	if o.asked == nil {
		o.asked = map[[32]byte]*asked{}
	}
	q := o.asked[key]
	if q == nil {
		q = &asked{}
		o.asked[key] = q
	}
	o.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reply != nil {
		return q.reply, nil
	}
	reply, err := o.Completer.Complete(ctx, p)
	if err == nil {
		q.reply = reply
	}
	return reply, err
}
