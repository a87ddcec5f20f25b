package compare

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// heads returns the names of the columns.
func (t *Table) heads() []string {
	var heads []string
	for i := range t.Columns {
		heads = append(heads, t.Head(i))
	}
	return heads
}

// Head returns the name of a column: its branch, and the reference if another column has the same branch.
func (t *Table) Head(column int) string {
	c := t.Columns[column]
	name, ref := c.Branch, strings.TrimPrefix(string(c.Ref), "branch:")
	for i, other := range t.Columns {
		if i != column && other.Branch == c.Branch && ref != name {
			return name + " (" + ref + ")"
		}
	}
	return name
}

// WriteMarkdown writes the comparison as Markdown: a heading for each turn, and below it one for each column. New words are bold, gone ones struck out.
func (t *Table) WriteMarkdown(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n", strings.Join(escapedAll(t.heads(), markdownEscape), " · "))
	if t.Ancestor != nil {
		fmt.Fprintf(b, "\nCommon up to %s: %s\n", t.Ancestor.Turn, markdownEscape(firstLine(t.Ancestor.Text())))
	}
	for _, turn := range t.Turns {
		fmt.Fprintf(b, "\n## Turn %d\n", turn.Turn)
		for i, cell := range turn.Cells {
			fmt.Fprintf(b, "\n### %s\n", markdownEscape(t.Head(i)))
			if words := cell.Figures.Words(); len(words) > 0 {
				fmt.Fprintf(b, "\n*%s*\n", markdownEscape(strings.Join(words, ", ")))
			}
			if len(cell.Messages) == 0 {
				b.WriteString("\n*No such turn.*\n")
				continue
			}
			b.WriteString("\n")
			for _, e := range turn.Marked(i) {
				b.WriteString(marked(e))
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// marked puts Markdown's marks around each line of a stretch. A mark cannot span lines, nor begin or end with a space.
func marked(e Edit) string {
	mark := map[Kind]string{Gone: "~~", New: "**"}[e.Kind]
	if mark == "" {
		return e.Text
	}
	lines := strings.Split(e.Text, "\n")
	for i, line := range lines {
		if words := strings.TrimSpace(line); words != "" {
			before, after, _ := strings.Cut(line, words)
			lines[i] = before + mark + words + mark + after
		}
	}
	return strings.Join(lines, "\n")
}

func escapedAll(all []string, escape func(string) string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = escape(s)
	}
	return out
}

// markdownEscape returns text on one line that Markdown shows unchanged.
func markdownEscape(s string) string {
	var b strings.Builder
	for _, c := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_[]<>#|~", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

const pageStyle = `:root{--paper:#fff;--ink:#1d1d1f;--quiet:#63636b;--line:#dededb;--new:#d9f2d9;--gone:#f6d5d2}
@media(prefers-color-scheme:dark){:root{--paper:#1f1f22;--ink:#ececec;--quiet:#a2a2aa;--line:#38383d;--new:#1f4a25;--gone:#5a2522}}
body{margin:0;padding:1rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
.wide{overflow-x:auto}table{border-collapse:collapse;table-layout:fixed;width:100%}
th,td{border:1px solid var(--line);padding:.5rem .7rem;vertical-align:top;text-align:left;min-width:16rem;white-space:pre-wrap;overflow-wrap:anywhere}
.figures{color:var(--quiet);font-size:.85rem;white-space:normal}ins{background:var(--new);text-decoration:none}del{background:var(--gone)}`

// WriteHTML writes the comparison as one page without external resources or scripts: a column for each history, a row for each turn.
func (t *Table) WriteHTML(w io.Writer) error {
	b := &strings.Builder{}
	title := html.EscapeString(strings.Join(t.heads(), " · "))
	fmt.Fprintf(b, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>%s</title>\n<style>%s</style>\n<h1>%s</h1>\n", title, pageStyle, title)
	if t.Ancestor != nil {
		fmt.Fprintf(b, "<p>Common up to %s: %s</p>\n", t.Ancestor.Turn, html.EscapeString(firstLine(t.Ancestor.Text())))
	}
	b.WriteString("<div class=\"wide\"><table>\n<tr>")
	for _, head := range t.heads() {
		fmt.Fprintf(b, "<th scope=\"col\">%s</th>", html.EscapeString(head))
	}
	b.WriteString("</tr>\n")
	for _, turn := range t.Turns {
		b.WriteString("<tr>")
		for i, cell := range turn.Cells {
			b.WriteString("<td dir=\"auto\">")
			for _, e := range turn.Marked(i) {
				b.WriteString(element(e))
			}
			if words := cell.Figures.Words(); len(words) > 0 {
				fmt.Fprintf(b, "<div class=\"figures\">%s</div>", html.EscapeString(strings.Join(words, ", ")))
			}
			b.WriteString("</td>")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func element(e Edit) string {
	text := html.EscapeString(e.Text)
	if tag := map[Kind]string{Gone: "del", New: "ins"}[e.Kind]; tag != "" {
		return "<" + tag + ">" + text + "</" + tag + ">"
	}
	return text
}
