// Package adapter turns a draft into a request that its provider accepts, whatever the branch holds.
//
// Each provider has a package with its own Adapter and body type. This package has what they share. Normalise brings a draft into the form from which all of
// them render: every call has exactly one result, right after it; nothing is blank; ids and names are ones that the provider allows; it begins and ends as the
// provider requires. Settings has the parameters, and the constants below are the texts that stand for what is missing. docs/providers.md lists them with the
// rules.
//
// What was sent stays the same: a message is rendered only from itself and from the messages before it, so a longer branch begins with the bytes of the shorter
// one. The exceptions are at the end of a branch: missing results of the last turn's calls, and Continue.
package adapter

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/settings"
)

// Adapter makes a body from a draft. Adapt reads nothing except the draft and its Artifact, changes nothing in the draft except its Notes (one with the step
// "adapter" for each repair), and returns the same body for the same draft.
//
// Its errors are chatctx.ErrEmpty for a branch without messages, ErrNoModel, and a *SettingError.
type Adapter[Body any] interface {
	Adapt(*chatctx.Draft) (Body, error)
	// Reader returns a Reader that says what the model gets of each message, by the settings of a draft. Its errors are those of Adapt, without ErrEmpty.
	Reader(*chatctx.Draft) (*Reader, error)
}

// Body has the methods of all bodies.
type Body interface {
	// MarshalJSON returns the bytes to send: always the same for the same body, without the escapes that only HTML needs. (A json.Marshal of the body adds
	// those, which changes the bytes, not the meaning.)
	MarshalJSON() ([]byte, error)
	// Prefix returns the body in the order in which the provider reads it: tools, system, messages, one piece each, without the marks of cache breakpoints,
	// which providers ignore when they compare. Two requests share a cache as far as their pieces are equal.
	Prefix() []Piece
	// ToolNames maps the names of tools as they were sent to the draft's names, where these differ. A reply's calls have the sent names. Nil means that none
	// differs.
	ToolNames() map[string]string
}

// Piece is a part of a body.
type Piece struct {
	Message chatctx.ID // its message; zero for tools, system texts and what an adapter added
	Bytes   []byte
}

// ErrNoModel means that the settings name no model.
var ErrNoModel = errors.New("no model is set: the setting model names one")

// ErrProvider means that there is no provider of that name.
var ErrProvider = errors.New("no provider")

// ErrSetting means that a setting is unknown to the provider or has an invalid value. The error is a *SettingError.
var ErrSetting = settings.ErrSetting

// SettingError names a setting that cannot be sent.
type SettingError struct {
	Key      string
	Provider string
	Why      string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s: %s %s; remove it with config %s=", e.Key, e.Provider, e.Why, e.Key)
}

// Unwrap returns ErrSetting.
func (e *SettingError) Unwrap() error { return ErrSetting }

// The texts that an adapter adds. They never depend on anything that may change later.
const (
	NoResult    = "no result yet" // for a call without a result, whatever was decided about it after its message was stored
	Denied      = "denied"        // for a denied call whose result is blank; with a reason, "denied: REASON"
	Interrupted = "interrupted"   // for a result that is blank because its tool was interrupted
	NoOutput    = "(no output)"   // for any other blank result
	ImagesBelow = "(see the next message)"
	Continue    = "Continue."       // the last user message, if a branch ends with an assistant message
	Begin       = "Begin."          // the first user message, if the provider requires one
	AnswerJSON  = "Answer in JSON." // a system text, if a provider requires the word for the format
	ErrorIs     = "error: "         // before a result that is an error, if the provider has no mark for that
	GoOn        = "OK."             // an assistant message between a result and a user message, if a server requires one
)

// leftOut returns the text that stands for an image, a document or another part that the provider does not accept.
func leftOut(kind, name, reason string) string {
	kind = cmp.Or(kind, "part")
	if name != "" {
		kind += " " + name
	}
	return "[" + kind + " left out: " + reason + "]"
}

// lateText returns the first words of a result that came when its place was taken.
func lateText(c *Call, isError bool) string {
	word := "result"
	if isError {
		word = "error"
	}
	return fmt.Sprintf("[late %s of %s, call %s]", word, c.Name, c.ID)
}

// imagesText returns the first words of the message with the media of a result that cannot hold them.
func imagesText(c *Call) string { return fmt.Sprintf("[from the result of %s, call %s]", c.Name, c.ID) }

// systemText returns the text of a later system message for providers that accept none there.
func systemText(text string) string { return "[system] " + text }
