package exchange

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// term-llm's sessions.db has tables of sessions and messages; parts have the names of Go fields. A session that was branched off contains a copy of what came
// before. What undo took off a session's end is in a table of its own, as lists of messages: they follow the end, and the session's current
// message is the one before them.

const termLLMName = "term-llm"

func detectTermLLM(h *head) bool {
	return h.db.has("sessions", "compaction_seq") && h.db.has("messages", "session_id", "parts", "sequence")
}

var termLLMShape = shape{role: "role", time: "created_at", model: "model", provider: "provider", content: "parts|text_content", key: "Type", parted: true, kinds: map[string]partReader{
	"text": func(t *turn, p value) {
		t.think(p.get("ReasoningContent").str(), p.get("ReasoningEncryptedContent").str())
		t.text(p.get("Text").str())
	},
	"tool_call":   calling("ToolCall.ID", "ToolCall.Name", "ToolCall.Arguments"),
	"tool_result": answering("ToolResult.ID", "ToolResult.Name", "ToolResult.Content", "ToolResult.IsError"),
}}

// termLLMFork is the origin of a session that was branched off: up to the message after, it repeats its parent's messages.
type termLLMFork struct {
	parent string
	after  int64
}

func readTermLLM(r *reading) error {
	r.db.knows("session_branches", "fork_after_message_id")
	forks := map[string]termLLMFork{}
	for w, err := range r.db.rows("session_branches") {
		if err != nil {
			return err
		}
		v := w.asRow(r, place{}, "child_session_id", "parent_session_id", "fork_after_sequence")
		after, _ := v.get("fork_after_sequence").int()
		forks[idText(v.get("child_session_id"))] = termLLMFork{idText(v.get("parent_session_id")), after}
	}
	about := func(in *record.Incoming, v value) {
		in.Title = firstOf(in.Title, v.get("generated_short_title").str(), v.get("generated_long_title").str(), v.get("summary").str())
		parent := idText(v.get("parent_id"))
		if fork, ok := forks[idText(v.get("id"))]; ok {
			parent = fork.parent
		}
		if parent != "" {
			in.Parent = &record.SourceLink{Format: termLLMName, Conversation: parent}
		}
	}
	rows := &rowFormat{"sessions", "messages", "session_id", []string{"sequence", "id"}, nil, about, func(t *gathered, at place, v value) {
		from := len(t.records)
		termLLMShape.next(t.thread, at, v, idText(v.get("sequence")), func(v value, msgs []*chatctx.Message) {
			if role := v.get("role").str(); role == "event" || role == "developer" {
				msgs[0].Hidden, msgs[0].Kind, msgs[0].Unsent = true, injected, role == "event"
			}
		})
		fork, sequence := forks[idText(v.get("session_id"))], int64(0)
		if sequence, _ = v.get("sequence").int(); fork.parent == "" || sequence > fork.after {
			return
		}
		for i := from; i < len(t.records); i++ {
			t.records[i].copyOf = record.NodeLink{Conversation: fork.parent, Node: t.records[i].id}
		}
	}}
	g := r.gather()
	err := rows.into(g)
	if err == nil {
		err = termLLMUndone(g, rows.message)
	}
	return r.atEnd(err, g.emit)
}

// termLLMUndone adds the messages that were undone. The last ones of a session were undone first.
func termLLMUndone(g *gather, message func(t *gathered, at place, v value)) error {
	var undone []value
	for w, err := range g.r.db.sorted("session_redo", "stack_pos") {
		if err != nil {
			return err
		}
		undone = append(undone, w.asRow(g.r, place{what: "session " + w.str("session_id")}, "session_id", "stack_pos", "suffix", "metadata", "created_at"))
	}
	for _, v := range slices.Backward(undone) {
		id := idText(v.get("session_id"))
		t := g.of(place{what: "session " + id}, id)
		t.active = firstOf(t.active, t.last())
		for m := range v.get("suffix").items() {
			message(t, t.at.in("undone message "+idText(m.get("sequence"))), m)
		}
		v.get("stack_pos").taken()
		t.keep(v) // titles that were taken back too
	}
	return nil
}
