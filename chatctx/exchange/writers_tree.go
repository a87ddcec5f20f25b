package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Writers of formats with a whole tree: those of Claude Code and pi.

// eachNode calls f for the messages of all branches, each once, parents first, with the id of its parent ("" for none). A message that follows different
// messages on two branches is passed once for each. It returns the id at which the active branch ends.
func (x *Writing) eachNode(ctx context.Context, f func(id, parent string, m *chatctx.Message) error) (active string, err error) {
	branches, err := x.Context.Branches(ctx)
	if err != nil {
		return "", err
	}
	written := map[[2]string]string{} // the id under which each pair of message and parent was written
	taken := map[string]bool{}
	for _, b := range branches {
		if x.Options.Branch != "" && b.Name != x.Options.Branch {
			continue
		}
		snap, err := x.Context.Snapshot(ctx, b.Name)
		if err != nil {
			return "", err
		}
		parent := ""
		for e, err := range snap.Entries(ctx, 1, 0) {
			if err != nil {
				return "", err
			}
			key := [2]string{e.ID.String(), parent}
			id, again := written[key]
			if !again {
				id = key[0]
				for n := 2; taken[id]; n++ {
					id = fmt.Sprintf("%s~%d", key[0], n)
				}
				written[key], taken[id] = id, true
				if err := f(id, parent, e.Message); err != nil {
					return "", err
				}
			}
			parent = id
		}
		if b.Active || x.Options.Branch != "" {
			active = parent
		}
	}
	return active, nil
}

func timestamp(t pool.Time) any {
	if t == 0 {
		return nil
	}
	return t.Time().Format(time.RFC3339Nano)
}

// orNull returns a text, or null if it is empty.
func orNull(s string) any {
	if s == "" {
		return json.RawMessage("null")
	}
	return s
}

// writeClaudeCode writes all branches as the lines of a session.
func writeClaudeCode(ctx context.Context, x *Writing) error {
	info, err := x.Context.Info(ctx)
	if err != nil {
		return err
	}
	session := info.ID.String()
	x.line(jsonObject(field{"type", "custom-title"}, field{"customTitle", info.Title}, field{"sessionId", session}))
	active, err := x.eachNode(ctx, func(id, parent string, m *chatctx.Message) error {
		typ, message, err := x.claudeCodeMessage(ctx, m)
		if err != nil {
			return err
		}
		x.line(jsonObject(field{"parentUuid", orNull(parent)}, field{"isSidechain", false}, field{"userType", "external"}, field{"sessionId", session},
			field{"type", typ}, field{"uuid", id}, field{"timestamp", timestamp(m.Created)}, field{"isMeta", onlyTrue(m.Kind == injected)},
			field{"isCompactSummary", onlyTrue(m.Kind == summary)}, field{"isApiErrorMessage", onlyTrue(m.Kind == failure)}, field{"message", message}))
		return nil
	})
	if err == nil && active != "" {
		x.line(jsonObject(field{"type", "last-prompt"}, field{"leafUuid", active}, field{"sessionId", session}))
	}
	return err
}

// onlyTrue returns nil for false, so that its field is left out.
func onlyTrue(b bool) any {
	if !b {
		return nil
	}
	return true
}

func (x *Writing) claudeCodeMessage(ctx context.Context, m *chatctx.Message) (typ string, message json.RawMessage, err error) {
	if m.Result != nil {
		b, err := x.toolResultOf(ctx, m.Result)
		return "user", jsonObject(field{"role", "user"}, field{"content", []json.RawMessage{b}}), err
	}
	content, err := x.blocksOf(ctx, m)
	if m.Role != pool.Assistant {
		return "user", jsonObject(field{"role", string(m.Role)}, field{"content", content}), err
	}
	var usage any
	if m.Meta.Usage != nil && m.Meta.Provider == anthropicProvider {
		usage = m.Meta.Usage
	}
	return "assistant", jsonObject(field{"type", "message"}, field{"role", "assistant"}, field{"model", orNil(m.Meta.Model)}, field{"content", content},
		field{"stop_reason", orNull(m.Meta.FinishReason)}, field{"usage", usage}), err
}

// writePi writes all branches as the entries of a session.
func writePi(ctx context.Context, x *Writing) error {
	info, err := x.Context.Info(ctx)
	if err != nil {
		return err
	}
	x.line(jsonObject(field{"type", "session"}, field{"version", 3}, field{"id", info.ID.String()}, field{"timestamp", timestamp(max(info.Created, 1))}, field{"cwd", ""}))
	active, err := x.eachNode(ctx, func(id, parent string, m *chatctx.Message) error {
		message, err := x.piMessage(ctx, m)
		if err != nil {
			return err
		}
		x.line(jsonObject(field{"type", "message"}, field{"id", id}, field{"parentId", orNull(parent)}, field{"timestamp", timestamp(m.Created)}, field{"message", message}))
		return nil
	})
	if err == nil { // a session is at its last entry
		x.line(jsonObject(field{"type", "session_info"}, field{"id", "title"}, field{"parentId", orNull(active)}, field{"name", info.Title}))
	}
	return err
}

func (x *Writing) piMessage(ctx context.Context, m *chatctx.Message) (json.RawMessage, error) {
	if r := m.Result; r != nil {
		content, err := x.piContent(ctx, m, r.Parts)
		if len(r.Parts) == 0 {
			content = []json.RawMessage{jsonObject(field{"type", "text"}, field{"text", resultText(r)})}
		}
		return jsonObject(field{"role", "toolResult"}, field{"toolCallId", r.RequestID}, field{"toolName", r.Tool}, field{"content", content}, field{"isError", r.IsError}), err
	}
	role := string(m.Role)
	switch m.Kind {
	case injected:
		role = "custom"
	case branchSummary:
		role = "branchSummary"
	}
	content, err := x.piContent(ctx, m, m.Content)
	return jsonObject(field{"role", role}, field{"content", content}, field{"provider", orNil(m.Meta.Provider)}, field{"model", orNil(m.Meta.Model)},
		field{"stopReason", orNil(m.Meta.FinishReason)}, field{"errorMessage", orNil(m.Meta.Error)}), err
}

func (x *Writing) piContent(ctx context.Context, m *chatctx.Message, parts []pool.Part) ([]json.RawMessage, error) {
	return asBlocks(m, parts, piCall, func(p *pool.Part) (json.RawMessage, error) {
		if p.Type == pool.ThinkingPart {
			return jsonObject(field{"type", "thinking"}, field{"thinking", p.Text}, field{"thinkingSignature", orNil(p.Signature)}), nil
		}
		return x.block(ctx, p)
	})
}

func piCall(c *pool.Call) json.RawMessage {
	return jsonObject(field{"type", "toolCall"}, field{"id", c.ID}, field{"name", c.Tool}, field{"arguments", argumentsOf(c)})
}
