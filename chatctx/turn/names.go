package turn

import (
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
)

// What a turn gives and takes of the room that fits conversations into requests. Only this module makes values of these types.
type (
	// Options are the settings of the window that a request used.
	Options = window.Options
	// Window measured a draft.
	Window = window.Window
	// Forecast is what a request is expected to take.
	Forecast = window.Forecast
	// Link is a piece of a request's body that its provider may keep in its cache, by its hash.
	Link = window.Link
	// Prefix says what a request shares with the last one.
	Prefix = window.Prefix
	// Once keeps the answers to questions apart from the conversation.
	Once = window.Once
	// Completion is a model's answer to a question apart from the conversation: a summary, a digest, a title.
	Completion = window.Answer
	// Compactor makes summaries.
	Compactor = window.Compactor
	// Compacted is what a compaction did.
	Compacted = window.Compacted
	// Stands says what a part of a summary stands for.
	Stands = window.Stands
	// Reported are a provider's figures for a reply.
	Reported = window.Reported
	// Counter counts tokens as a model does.
	Counter = tokens.Counter
	// Sent says which parts of a branch go to a provider.
	Sent = tokens.Sent
	// Cache keeps counts by message and encoding.
	Cache = tokens.Cache
	// Model is what counting needs to know of a model.
	Model = tokens.Model
	// Encoding names a vocabulary.
	Encoding = tokens.Encoding
	// Sizes are the sizes of a draft's parts, in tokens.
	Sizes = tokens.Sizes
	// Embedder makes vectors of texts.
	Embedder = window.Embedder
)
