package exchange

import "github.com/chatctx/chatctx/internal/codec"

// nativeLines writes and reads the lines of the store's own export. They leave out what the stored record leaves out, and have the names of these members,
// by their types, where those of answers differ.
var nativeLines = &codec.Codec{Plain: true, Lines: map[string]string{
	"Task.branch_id":       "branch",
	"Task.branch":          "branch_name",
	"Task.call_message":    "message",
	"Task.call_index":      "index",
	"CallRecord.since":     "since,omitempty",
	"Decision.at":          "at,omitempty",
	"Decision.by":          "", // its members stand in the decision
	"Decider.kind":         "by_kind",
	"Decider.name":         "by_name",
	"Decider.claimed":      "claimed after user",
	"Decider.said_by_file": "-",
}}
