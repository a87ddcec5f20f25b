// Package bodies has what the bodies of several providers share.
package bodies

import (
	"fmt"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// itemSize returns roughly how many bytes an item takes in a body.
func itemSize(i *adapter.Item) int {
	switch {
	case i.Media != nil:
		return 160 + len(i.Media.Data)*4/3 + len(i.Media.URL)
	case i.Thinking != nil:
		return 96 + len(i.Thinking.Text) + len(i.Thinking.Signature) + len(i.Thinking.Redacted) + len(i.Thinking.Raw)
	case i.Raw != nil:
		return len(i.Raw.Raw)
	case i.Call != nil:
		return 160 + len(i.Call.Arguments)*9/8
	}
	return 64 + len(i.Text)*17/16
}

// SizeOf returns roughly how many bytes a conversation takes in a body.
func SizeOf(c *adapter.Conversation) int {
	n := 4096
	for _, t := range c.Tools {
		n += 96 + len(t.Description) + len(t.Schema)
	}
	for _, t := range c.Turns {
		n += 64
		for i := range t.Items {
			n += itemSize(&t.Items[i])
		}
		for _, r := range t.Results {
			n += 96
			for i := range r.Items {
				n += itemSize(&r.Items[i])
			}
		}
	}
	return n
}

// Apply puts the settings' own members into a body's fields, as Settings.Apply does.
func Apply(s *adapter.Settings, fields *jsontree.Members, merge ...string) {
	if raw, err := s.Apply(fields.Bytes(), merge...); err == nil { // an object
		*fields, _ = jsontree.ParseObject(raw)
	}
}

// Choose returns the tool choice that can be sent, nil if there is none. It needs tools, and a named tool must be among them; otherwise the choice is left out,
// with a note.
func Choose(c *adapter.Conversation, s *adapter.Settings) *adapter.Choice {
	switch {
	case s.Choice == nil:
		return nil
	case len(c.Tools) == 0:
		if s.Choice.Mode == "tool" || s.Choice.Mode == "required" {
			c.Note(chatctx.ID{}, "%s left out: there are no tools", adapter.ToolChoice)
		}
		return nil
	case s.Choice.Mode != "tool":
		return s.Choice
	}
	choice := &adapter.Choice{Mode: "tool", Tool: c.ToolName(s.Choice.Tool)}
	if !c.HasTool(choice.Tool) {
		c.Note(chatctx.ID{}, "%s left out: there is no tool %s", adapter.ToolChoice, s.Choice.Tool)
		return nil
	}
	return choice
}

// Crowds returns a warning, for a provider that accepts no number, that the thinking may use up max_tokens before the answer; "" if it cannot.
func Crowds(s *adapter.Settings) string {
	if t := s.Thinking; t != nil && !t.Off && s.MaxTokens > 0 {
		if fits, _ := t.Within(t.Tokens, s.MaxTokens); fits < t.Tokens {
			return fmt.Sprintf("thinking of some %d tokens may leave nothing for the answer: max_tokens is %d, and the provider takes no number", t.Tokens, s.MaxTokens)
		}
	}
	return ""
}
