package turn

import (
	"github.com/chatctx/chatctx/internal/window"
)

// What a turn gives and takes of the room that fits conversations into requests. Only this module makes values of these types.
type (
	// Completion is a model's answer to a question apart from the conversation: a summary, a digest, a title.
	Completion = window.Answer
	// Compacted is what a compaction did.
	Compacted = window.Compacted
	// Stands says what a part of a summary stands for.
	Stands = window.Stands
)
