// Package show describes messages and their outcomes for readers. All formats for people share it.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Speaker returns the name of a message's role for readers.
func Speaker(m *chatctx.Message) string {
	name := map[pool.Role]string{pool.System: "System", pool.User: "User", pool.Assistant: "Assistant", pool.ToolRole: "Tool"}[m.Role]
	if m.Result != nil && m.Result.Tool != "" {
		name += " " + OneLine(m.Result.Tool)
	}
	if m.Kind != "" {
		name += " (" + OneLine(m.Kind) + ")"
	}
	return name
}

// DescribeFile returns the name and type of an image or document.
func DescribeFile(p *pool.Part) string {
	words := []string{p.Type + ":"}
	for _, w := range []string{p.Name, p.MediaType, p.URL} {
		if w != "" {
			words = append(words, OneLine(w))
		}
	}
	if p.Size > 0 {
		words = append(words, sizeText(p.Size))
	}
	return strings.Join(words, " ")
}

func sizeText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// CallOf returns a call of a message by its id; if there is none, a call of an unknown tool.
func CallOf(m *chatctx.Message, id string) *pool.Call {
	for i := range m.Calls {
		if m.Calls[i].ID == id {
			return &m.Calls[i]
		}
	}
	return &pool.Call{ID: id, Tool: "unknown"}
}

// CallState returns the state of a call that was not simply run, "" for others, and who put other arguments in place of the model's.
func CallState(c *pool.Call) string {
	if c.Effective != nil {
		return outcome(c) + " (changed by " + OneLine(c.ChangedBy.String()) + ")"
	}
	return outcome(c)
}

func outcome(c *pool.Call) string {
	switch {
	case c.Status == pool.Denied && c.Reason != "":
		return " (denied: " + OneLine(c.Reason) + ")"
	case c.Status == pool.Approved && c.Execution == pool.Done, c.Status == "":
		return ""
	case c.Status == pool.Approved:
		return " (" + string(c.Execution) + ")"
	}
	return " (" + string(c.Status) + ")"
}

// Ran returns the arguments that the call ran with, or is to run with.
func Ran(c *pool.Call) string {
	if c.Effective != nil {
		return Pretty(c.Effective)
	}
	return Pretty(c.Arguments)
}

// Pretty indents JSON; it returns anything else unchanged.
func Pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// OneLine returns a text without line breaks and other control characters, for headings.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 }), " ")
}

// Counted returns a number with its noun: 1 message, 2 messages.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Clip shortens a text to n characters, and adds an ellipsis.
func Clip(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
