// Package adapter turns a draft into a request that its provider takes, whatever the branch holds.
//
// Each provider has a package with an Adapter and a body type of its own. What they share is here: Normalise brings a draft
// into the one form from which all of them render (every call has exactly one result, right after it; nothing is blank; ids
// and names are ones that the provider allows; it begins and ends as the provider wants), Settings reads the parameters, and
// the texts that stand for what is missing are the constants below. docs/providers.md lists them with the rules.
//
// What was sent stays sent: a message is rendered from itself and from what stands before it, so a longer branch begins with
// the bytes of the shorter one. What hangs on the end of a branch is not part of that: results of the last turn's calls that
// are still missing, and Continue.
package adapter

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
)

// Adapter makes a body of a draft. Adapt does no input or output but through the draft's Artifact, changes nothing in the
// draft but its Notes (one with the step "adapter" for each repair), and gives the same body for the same draft.
//
// Its errors are chatctx.ErrEmpty for a branch without messages, ErrNoModel, and a *SettingError.
type Adapter[Body any] interface {
	Adapt(*chatctx.Draft) (Body, error)
}

// Func is a function that is an Adapter.
type Func[Body any] func(*chatctx.Draft) (Body, error)

// Adapt calls f.
func (f Func[Body]) Adapt(d *chatctx.Draft) (Body, error) { return f(d) }

// Body is what all bodies can do.
type Body interface {
	// MarshalJSON gives the bytes to send: always the same for the same body, with no escapes that only HTML needs. (A
	// json.Marshal of the body adds those, which changes the bytes, not the meaning.)
	MarshalJSON() ([]byte, error)
	// Prefix is the body in the order in which the provider reads it: tools, system, messages, a piece each, without the
	// marks of cache breakpoints, which providers leave out when they compare. Two requests share a cache as far as their
	// pieces are equal.
	Prefix() []Piece
	// ToolNames maps the names of tools as they were sent to what they are called here, where that differs. A reply's calls
	// have the sent names. Nil: none differs.
	ToolNames() map[string]string
}

// Piece is a stretch of a body.
type Piece struct {
	Message chatctx.ID // the message that it is from; zero for tools, system texts and what an adapter put in
	Bytes   []byte
}

// ErrNoModel: the settings name no model.
var ErrNoModel = errors.New("no model is set: the setting model names one")

// ErrProvider: there is no provider of that name.
var ErrProvider = errors.New("no provider")

// ErrSetting: a setting that the provider does not know, or a value that it cannot have. The error is a *SettingError.
var ErrSetting = settings.ErrSetting

// SettingError names a setting that cannot be sent.
type SettingError struct {
	Key      string
	Provider string
	Why      string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s: %s %s; take it away with config %s=", e.Key, e.Provider, e.Why, e.Key)
}

// Unwrap gives ErrSetting.
func (e *SettingError) Unwrap() error { return ErrSetting }

// The texts that an adapter puts in. They never depend on anything that may change later.
const (
	NoResult    = "no result yet" // of a call without result, whatever was decided about it after its message was stored
	Denied      = "denied"        // of a denied call whose result says nothing; with a reason, "denied: REASON"
	Interrupted = "interrupted"   // of a result that says nothing since its tool was interrupted
	NoOutput    = "(no output)"   // of another result that says nothing
	ImagesBelow = "(see the next message)"
	Continue    = "Continue."       // the last user message, where a branch ends with an assistant
	Begin       = "Begin."          // the first user message, where one is needed
	AnswerJSON  = "Answer in JSON." // a system text, where a provider wants the word for the format
	ErrorIs     = "error: "         // before a result that is an error, where there is no mark for that
	GoOn        = "OK."             // an assistant message between a result and a user, where a server wants one
)

// LeftOut stands for an image, a document or another part that the provider does not take.
func LeftOut(kind, name, reason string) string {
	if kind == "" {
		kind = "part"
	}
	if name != "" {
		kind += " " + name
	}
	return "[" + kind + " left out: " + reason + "]"
}

// lateText begins the text of a result that came when its place was taken.
func lateText(c *Call, isError bool) string {
	word := "result"
	if isError {
		word = "error"
	}
	return fmt.Sprintf("[late %s of %s, call %s]", word, c.Name, c.ID)
}

// imagesText begins the message with what a result could not hold.
func imagesText(c *Call) string { return fmt.Sprintf("[from the result of %s, call %s]", c.Name, c.ID) }

// systemText is a system message in the middle, for providers that take none there.
func systemText(text string) string { return "[system] " + text }
