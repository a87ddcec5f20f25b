package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// writeMarkdown writes one branch to read: a heading a message, its text as it is, everything else in fences or in italics.
func writeMarkdown(ctx context.Context, x *export) error {
	info, err := x.context.Info(ctx)
	if err != nil {
		return err
	}
	snap, err := x.context.Snapshot(ctx, x.opts.Branch)
	if err != nil {
		return err
	}
	fmt.Fprintf(x.w, "# %s\n\n*Branch %s, %s*\n", oneLine(info.Title), oneLine(snap.Info.Name), counted(snap.Len(), "message"))
	if snap.Info.SystemText != "" {
		fmt.Fprintf(x.w, "\n## System prompt\n\n%s\n", closed(snap.Info.SystemText))
	}
	for e, err := range snap.Entries(ctx, 1, 0) {
		if err != nil {
			return err
		}
		if e.Hidden && !x.opts.Hidden {
			continue
		}
		if err := x.markdownMessage(e); err != nil {
			return err
		}
	}
	return nil
}

func (x *export) markdownMessage(e *chatctx.Entry) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n## %s\n", heading(e.Message))
	calls := map[string]bool{}
	for i := range e.Content {
		p := &e.Content[i]
		if p.Type == pool.CallPart {
			calls[p.CallID] = true
			markdownCall(&b, callOf(e.Message, p.CallID))
			continue
		}
		markdownPart(&b, p)
	}
	for i := range e.Calls {
		if !calls[e.Calls[i].ID] {
			markdownCall(&b, &e.Calls[i])
		}
	}
	if e.Result != nil {
		markdownResult(&b, e.Result)
	}
	_, err := x.w.Write(b.Bytes())
	return err
}

// heading says who speaks, with which model, and when.
func heading(m *chatctx.Message) string {
	parts := []string{speaker(m)}
	if m.Meta.Model != "" {
		parts = append(parts, oneLine(m.Meta.Model))
	}
	if m.Created != 0 {
		parts = append(parts, m.Created.Time().Format("2006-01-02 15:04 UTC"))
	}
	if m.Unfinished {
		parts = append(parts, "broken off")
	}
	return strings.Join(parts, " · ")
}

// speaker names the role for readers.
func speaker(m *chatctx.Message) string {
	name := map[pool.Role]string{pool.System: "System", pool.User: "User", pool.Assistant: "Assistant", pool.ToolRole: "Tool"}[m.Role]
	if m.Result != nil && m.Result.Tool != "" {
		name += " " + oneLine(m.Result.Tool)
	}
	if m.Kind != "" {
		name += " (" + oneLine(m.Kind) + ")"
	}
	return name
}

func markdownPart(b *bytes.Buffer, p *pool.Part) {
	switch p.Type {
	case pool.TextPart:
		if p.Text != "" {
			fmt.Fprintf(b, "\n%s\n", closed(p.Text))
		}
	case pool.ThinkingPart:
		b.WriteString("\n> *Thinking*\n")
		for line := range strings.Lines(p.Text) {
			fmt.Fprintf(b, "> %s\n", strings.TrimRight(line, "\r\n"))
		}
	case pool.ImagePart, pool.DocumentPart:
		fmt.Fprintf(b, "\n*[%s]*\n", describeFile(p))
	default:
		fmt.Fprintf(b, "\n*[%s, not shown]*\n", oneLine(p.Type))
	}
}

// describeFile names an image or document.
func describeFile(p *pool.Part) string {
	words := []string{p.Type + ":"}
	for _, w := range []string{p.Name, p.MediaType, p.URL} {
		if w != "" {
			words = append(words, oneLine(w))
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

func callOf(m *chatctx.Message, id string) *pool.Call {
	for i := range m.Calls {
		if m.Calls[i].ID == id {
			return &m.Calls[i]
		}
	}
	return &pool.Call{ID: id, Tool: "unknown"}
}

func markdownCall(b *bytes.Buffer, c *pool.Call) {
	fmt.Fprintf(b, "\n**Calls `%s`**%s\n\n%s", strings.ReplaceAll(oneLine(c.Tool), "`", "'"), callState(c), fenced(pretty(c.Arguments), "json"))
}

// callState says what became of a call that was not simply run.
func callState(c *pool.Call) string {
	switch {
	case c.Status == pool.Denied && c.Reason != "":
		return " (denied: " + oneLine(c.Reason) + ")"
	case c.Status == pool.Approved && c.Execution == pool.Done, c.Status == "":
		return ""
	case c.Status == pool.Approved:
		return " (" + string(c.Execution) + ")"
	}
	return " (" + string(c.Status) + ")"
}

func markdownResult(b *bytes.Buffer, r *pool.Result) {
	if r.IsError {
		b.WriteString("\n*An error:*\n")
	}
	switch {
	case len(r.Parts) > 0:
		for i := range r.Parts {
			if p := &r.Parts[i]; p.Type == pool.TextPart {
				b.WriteString("\n" + fenced(p.Text, ""))
			} else {
				markdownPart(b, p)
			}
		}
	case r.JSON != nil:
		b.WriteString("\n" + fenced(pretty(r.JSON), "json"))
	default:
		b.WriteString("\n" + fenced(r.Text, ""))
	}
}

// pretty indents JSON that is one; what is none stays.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// fenced puts text into a code block whose fence is longer than any in the text.
func fenced(text, language string) string {
	longest, run := 0, 0
	for _, c := range []byte(text) {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + language + "\n" + text + fence + "\n"
}

// closed is Markdown text with a code block that it leaves open closed, so that it does not swallow what follows.
func closed(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n ")
		trimmed := strings.TrimLeft(line, " ")
		if len(line)-len(trimmed) > 3 {
			continue
		}
		fence := fenceOf(trimmed)
		switch {
		case open == "" && fence != "" && !(fence[0] == '`' && strings.Contains(trimmed[len(fence):], "`")):
			open = fence
		case open != "" && strings.HasPrefix(fence, open) && trimmed == fence:
			open = ""
		}
	}
	text = strings.TrimRight(text, "\n")
	if open != "" {
		text += "\n" + open
	}
	return text
}

// fenceOf is the run of three or more backticks or tildes that a line begins with.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, c); len(line)-len(rest) >= 3 {
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}

// oneLine is text without line breaks and other controls, for headings.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 }), " ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
