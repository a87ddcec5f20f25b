package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/chatctx/chatctx/pool"
)

// Delta is a piece of a reply, to show it as it arrives.
type Delta struct {
	Type string // a part type: text, thinking, refusal; tool_call for a piece of a call's arguments
	// Text may end in half a character if it comes from a Fold, as a Text may; from Stream.Read its characters are whole.
	Text string
	Tool string // the tool's name, at the beginning of a call
}

// Fold makes one message from a reply's events, in order. Each provider has its own. It is not safe for concurrent use.
type Fold interface {
	// Event adds the next event and passes its visible pieces to out. An *Error is the provider's own; any other error means that the event could not be
	// understood.
	Event(e Event, out func(Delta)) error
	// Whole adds a response that came in one piece.
	Whole(body []byte) error
	// Ended reports whether the provider's own end of the reply has arrived.
	Ended() bool
	// Message returns what has arrived, as a message that shares nothing with later ones. Before the end it is marked unfinished and leaves out what a provider
	// would not accept back: incomplete calls, thinking without its signature.
	Message() *pool.Message
}

// Stream is a reply that is arriving.
type Stream struct {
	provider string
	key      string
	body     io.Closer
	frames   Frames
	cause    func() error // why this side ended the connection, nil if it did not

	mu   sync.Mutex
	fold Fold
	err  error
	done bool
}

// NewStream returns a Stream that reads a reply from body and closes it at the end. Without frames, the reply comes in one piece.
func NewStream(provider string, body io.ReadCloser, frames Frames, fold Fold) *Stream {
	if frames == nil {
		frames, fold = &whole{body: body}, wholeFold{fold}
	}
	return &Stream{provider: provider, body: body, frames: frames, fold: fold, cause: func() error { return nil }}
}

// Read reads the reply to its end and returns the message. out, if not nil, is called for each piece, by this goroutine. With an error the message is what
// arrived, marked unfinished, or nil if nothing did. Call Read only once.
func (s *Stream) Read(out func(Delta)) (*pool.Message, error) {
	var pending []Delta
	whole := joiner{out: func(d Delta) { pending = append(pending, d) }}
	for !s.done {
		e, err := s.frames.Next()
		s.mu.Lock()
		s.step(e, err, whole.take)
		s.mu.Unlock()
		if s.done {
			whole.flush()
		}
		for _, d := range pending {
			if out != nil {
				out(d)
			}
		}
		pending = pending[:0]
	}
	s.body.Close()
	m := s.Partial()
	if s.err == nil {
		return m, nil
	}
	if m != nil {
		m.Unfinished, m.Meta.Error = true, s.why()
	}
	return m, s.err
}

// stoppedEarly describes a reply that was cancelled.
const stoppedEarly = "it was stopped before its end"

// why returns the error for the message itself, without advice.
func (s *Stream) why() string {
	var e *Error
	if errors.Is(s.err, context.Canceled) {
		return stoppedEarly
	}
	if errors.As(s.err, &e) {
		return e.text()
	}
	return s.err.Error()
}

// step handles one frame, or the end of the frames.
func (s *Stream) step(e Event, err error, out func(Delta)) {
	if err == nil {
		e.Data = escapeBytes(e.Data)
		err = s.fold.Event(e, out)
		if err == nil {
			return
		}
	}
	s.done = true
	var own *Error
	switch {
	case errors.As(err, &own):
		own.Provider = s.provider
		s.err = own.without(s.key)
	case s.fold.Ended():
		// Data or an error after the end changes nothing.
	default:
		s.err = s.brokenOff(err)
	}
}

func (s *Stream) brokenOff(err error) error {
	e := &Error{Kind: Incomplete, Provider: s.provider, Status: 200, Nothing: s.partial() == nil}
	var syntax *json.SyntaxError
	var op *net.OpError
	switch cause := s.cause(); {
	case cause != nil:
		e.Err, e.Message = cause, cause.Error()
		if errors.Is(cause, context.Canceled) {
			e.Message = stoppedEarly
		}
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = "the connection was closed before the reply's end"
	case errors.As(err, &syntax):
		e.Message = "an event of the reply could not be read"
	case errors.As(err, &op):
		e.Err, e.Message = err, redact(op.Err.Error(), s.key)
	default:
		e.Err, e.Message = err, redact(err.Error(), s.key)
	}
	return e
}

// Partial returns what has arrived so far, nil if nothing has. It is safe for concurrent use.
func (s *Stream) Partial() *pool.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partial()
}

func (s *Stream) partial() *pool.Message {
	m := sound(s.fold.Message())
	if m.Unfinished && len(m.Content) == 0 && len(m.Calls) == 0 {
		return nil
	}
	return m
}

// whole returns a response that came in one piece as the only frame of a stream.
type whole struct {
	body io.Reader
	read bool
}

func (w *whole) Next() (Event, error) {
	if w.read {
		return Event{}, io.EOF
	}
	w.read = true
	data, err := io.ReadAll(io.LimitReader(w.body, maxFrame))
	return Event{Data: data}, err
}

// wholeFold folds the only frame of whole.
type wholeFold struct{ Fold }

func (f wholeFold) Event(e Event, out func(Delta)) error {
	if err := f.Whole(e.Data); err != nil {
		return err
	}
	for _, p := range f.Message().Content {
		if p.Type == pool.TextPart || p.Type == pool.ThinkingPart {
			out(Delta{Type: p.Type, Text: p.Text})
		}
	}
	return nil
}
