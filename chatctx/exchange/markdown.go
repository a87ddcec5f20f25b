package exchange

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/pool"
)

// writeMarkdown writes one branch for reading: a heading for each message, its text unchanged, everything else in fences or in italics.
func writeMarkdown(ctx context.Context, x *Writing) error {
	info, err := x.Context.Info(ctx)
	if err != nil {
		return err
	}
	snap, err := x.Context.Snapshot(ctx, x.Options.Branch)
	if err != nil {
		return err
	}
	fmt.Fprintf(x.Out, "# %s\n\n*Branch %s, %s*\n", show.OneLine(info.Title), show.OneLine(snap.Info.Name), show.Counted(snap.Len(), "message"))
	if snap.Info.System != "" {
		fmt.Fprintf(x.Out, "\n## System prompt\n\n%s\n", closed(snap.Info.System))
	}
	for e, err := range snap.Entries(ctx, 1, 0) {
		if err != nil {
			return err
		}
		if e.Hidden && !x.Options.Hidden {
			continue
		}
		if err := x.markdownMessage(e); err != nil {
			return err
		}
	}
	return nil
}

func (x *Writing) markdownMessage(e *chatctx.Entry) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n## %s\n", heading(e.Message))
	calls := map[string]bool{}
	for i := range e.Content {
		p := &e.Content[i]
		if p.Type == pool.CallPart {
			calls[p.CallID] = true
			markdownCall(&b, show.CallOf(e.Message, p.CallID))
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
	_, err := x.Out.Write(b.Bytes())
	return err
}

// heading says who speaks, with which model, and when.
func heading(m *chatctx.Message) string {
	parts := []string{show.Speaker(m)}
	if m.Meta.Model != "" {
		parts = append(parts, show.OneLine(m.Meta.Model))
	}
	if m.Created != 0 {
		parts = append(parts, m.Created.Time().Format("2006-01-02 15:04 UTC"))
	}
	if m.Unfinished {
		parts = append(parts, "broken off")
	}
	if refused := m.Refusal(); refused != "" {
		parts = append(parts, refused)
	}
	return strings.Join(parts, " · ")
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
		fmt.Fprintf(b, "\n*[%s]*\n", show.DescribeFile(p))
	default:
		fmt.Fprintf(b, "\n*[%s, not shown]*\n", show.OneLine(p.Type))
	}
}

func markdownCall(b *bytes.Buffer, c *pool.Call) {
	fmt.Fprintf(b, "\n**Calls `%s`**%s\n\n%s", strings.ReplaceAll(show.OneLine(c.Tool), "`", "'"), show.CallState(c), fenced(show.Ran(c), "json"))
	if c.Effective != nil {
		b.WriteString("\n*The model asked for:*\n\n" + fenced(show.Pretty(c.Arguments), "json"))
	}
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
		b.WriteString("\n" + fenced(show.Pretty(r.JSON), "json"))
	default:
		b.WriteString("\n" + fenced(r.Text, ""))
	}
}

// fenced returns a text as a code block whose fence is longer than any in the text.
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

// closed returns Markdown text in which an open code block is closed, so that it does not swallow what follows.
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

// fenceOf returns the run of three or more backticks or tildes at the beginning of a line.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, c); len(line)-len(rest) >= 3 {
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}
