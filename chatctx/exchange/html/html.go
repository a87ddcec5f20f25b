// Package html writes a context with all its branches as one page for reading offline. A program that imports it can export the format "html".
//
// It is separate from exchange because of the Markdown renderer that it needs.
package html

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
)

// The page is one self-contained file: it includes style, script, pictures and the tree of the branches, and its policy forbids everything from elsewhere. Each
// message is written once for each path that leads to it; the script shows the chosen path and puts a switch where paths part. Without a script the page shows
// the active branch.

// pageTree is the script's data: each node's parent, -1 for none, and the ends of the branches.
type pageTree struct {
	Parents  []int        `json:"parents"`
	Branches []pageBranch `json:"branches"`
	Active   int          `json:"active"`
}

type pageBranch struct {
	Name string `json:"name"`
	Leaf int    `json:"leaf"` // -1: an empty branch
}

// pageMessage is a message as the page shows it.
type pageMessage struct {
	N       int
	Class   string
	Shown   bool // without a script: on the active branch and not hidden
	Speaker string
	Model   string
	Time    string // RFC 3339
	When    string // for people
	Blocks  []pageBlock
}

// pageBlock is a piece of a message: Summary is the line of a folded block; Text, HTML or Image its content.
type pageBlock struct {
	Class   string
	Summary string
	HTML    string
	Text    string
	Image   string // a data: address
	Alt     string
}

func init() {
	exchange.RegisterExport(exchange.ExportFormat{Name: "html", Extension: ".html", What: "a conversation with all branches, one page to read offline", Write: write})
}

// writing is an export of the page.
type writing struct{ *exchange.Writing }

func write(ctx context.Context, w *exchange.Writing) error {
	x := writing{w}
	info, err := x.Context.Info(ctx)
	if err != nil {
		return err
	}
	branches, err := x.Context.Branches(ctx)
	if err != nil {
		return err
	}
	t := &pathTree{index: map[step]int{}}
	for i, b := range branches {
		if b.Active {
			t.page.Active = i
		}
		if err := t.add(ctx, x.Context, b); err != nil {
			return err
		}
	}
	if err := t.settle(ctx, x.Context); err != nil {
		return err
	}
	head, foot, err := frame(show.OneLine(info.Title), show.Counted(info.Messages, "message")+", "+branchCount(len(branches)), t.page)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(x.Out, head); err != nil {
		return err
	}
	if err := x.messages(ctx, t); err != nil {
		return err
	}
	_, err = io.WriteString(x.Out, foot)
	return err
}

func branchCount(n int) string { return plural.Count(n, "branch") }

// pathTree has the messages of several branches, with common beginnings once.
type pathTree struct {
	page     pageTree
	messages []chatctx.ID
	children [][]int
	roots    []int
	index    map[step]int
}

// step is a message after the node parent.
type step struct {
	parent  int
	message chatctx.ID
}

func (t *pathTree) add(ctx context.Context, c *chatctx.ChatContext, b *record.BranchInfo) error {
	snap, err := c.Snapshot(ctx, b.Name)
	if err != nil {
		return err
	}
	ids, err := snap.IDs(ctx)
	if err != nil {
		return err
	}
	at := -1
	for _, id := range ids {
		n, known := t.index[step{at, id}]
		if !known {
			n = t.node(at, id)
		}
		at = n
	}
	t.page.Branches = append(t.page.Branches, pageBranch{b.Name, at})
	return nil
}

func (t *pathTree) node(parent int, id chatctx.ID) int {
	n := len(t.messages)
	t.index[step{parent, id}] = n
	t.messages = append(t.messages, id)
	t.page.Parents = append(t.page.Parents, parent)
	t.children = append(t.children, nil)
	if parent < 0 {
		t.roots = append(t.roots, n)
	} else {
		t.children[parent] = append(t.children[parent], n)
	}
	return n
}

// settle numbers the nodes so that every path is in order. Versions of a message are in the order of their times if all are known, else in that of the
// branches.
func (t *pathTree) settle(ctx context.Context, c *chatctx.ChatContext) error {
	for _, ways := range append(t.children, t.roots) {
		if err := t.byTime(ctx, c, ways); err != nil {
			return err
		}
	}
	order := t.preorder()
	number := make([]int, len(order))
	for n, old := range order {
		number[old] = n
	}
	messages, parents := make([]chatctx.ID, len(order)), make([]int, len(order))
	for n, old := range order {
		messages[n], parents[n] = t.messages[old], -1
		if p := t.page.Parents[old]; p >= 0 {
			parents[n] = number[p]
		}
	}
	for i := range t.page.Branches {
		if leaf := &t.page.Branches[i].Leaf; *leaf >= 0 {
			*leaf = number[*leaf]
		}
	}
	t.messages, t.page.Parents = messages, parents
	return nil
}

func (t *pathTree) byTime(ctx context.Context, c *chatctx.ChatContext, ways []int) error {
	if len(ways) < 2 {
		return nil
	}
	times := make(map[int]pool.Time, len(ways))
	for _, n := range ways {
		m, err := c.Message(ctx, t.messages[n])
		if err != nil {
			return err
		}
		if m.Created == 0 {
			return nil
		}
		times[n] = m.Created
	}
	slices.SortStableFunc(ways, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	return nil
}

func (t *pathTree) preorder() []int {
	order := make([]int, 0, len(t.messages))
	stack := slices.Clone(t.roots)
	slices.Reverse(stack)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		order = append(order, n)
		stack = stack[:len(stack)-1]
		for _, child := range slices.Backward(t.children[n]) {
			stack = append(stack, child)
		}
	}
	return order
}

func (x writing) messages(ctx context.Context, t *pathTree) error {
	shown := map[int]bool{}
	for n := t.page.Branches[t.page.Active].Leaf; n >= 0; n = t.page.Parents[n] {
		shown[n] = true
	}
	for n, id := range t.messages {
		m, err := x.Context.Message(ctx, id)
		if err != nil {
			return err
		}
		pm, err := x.pageMessage(ctx, m)
		if err != nil {
			return err
		}
		pm.N, pm.Shown = n, shown[n] && !m.Hidden
		if _, err := io.WriteString(x.Out, pm.markup()); err != nil {
			return err
		}
	}
	return nil
}

func (x writing) pageMessage(ctx context.Context, m *chatctx.Message) (*pageMessage, error) {
	pm := &pageMessage{Class: string(m.Role), Speaker: show.Speaker(m), Model: m.Meta.Model}
	if m.Hidden {
		pm.Class += " aside"
	}
	if m.Created != 0 {
		pm.Time, pm.When = m.Created.Time().Format("2006-01-02T15:04:05Z"), m.Created.Time().Format("2006-01-02 15:04 UTC")
	}
	placed := map[string]bool{}
	for i := range m.Content {
		p := &m.Content[i]
		if p.Type == pool.CallPart {
			placed[p.CallID] = true
			pm.Blocks = append(pm.Blocks, callBlocks(show.CallOf(m, p.CallID))...)
			continue
		}
		b, err := x.partBlock(ctx, p, m.Role)
		if err != nil {
			return nil, err
		}
		pm.Blocks = append(pm.Blocks, b)
	}
	for i := range m.Calls {
		if !placed[m.Calls[i].ID] {
			pm.Blocks = append(pm.Blocks, callBlocks(&m.Calls[i])...)
		}
	}
	if m.Result != nil {
		blocks, err := x.resultBlocks(ctx, m.Result)
		if err != nil {
			return nil, err
		}
		pm.Blocks = append(pm.Blocks, blocks...)
	}
	if m.Unfinished {
		pm.Blocks = append(pm.Blocks, pageBlock{Class: "note", Text: "This reply was broken off."})
	}
	if refused := m.Refusal(); refused != "" {
		pm.Blocks = append(pm.Blocks, pageBlock{Class: "note", Text: "This reply was " + refused + "."})
	}
	return pm, nil
}

func (x writing) partBlock(ctx context.Context, p *pool.Part, role pool.Role) (pageBlock, error) {
	switch p.Type {
	case pool.TextPart:
		if role == pool.Assistant {
			if html, ok := renderMarkdown(p.Text); ok {
				return pageBlock{Class: "text", HTML: html}, nil
			}
		}
		return pageBlock{Class: "plain", Text: p.Text}, nil
	case pool.ThinkingPart:
		return pageBlock{Class: "thinking", Summary: "Thinking", Text: cmp.Or(p.Text, "(not readable)")}, nil
	case pool.ImagePart:
		return x.imageBlock(ctx, p)
	case pool.DocumentPart:
		return pageBlock{Class: "note", Text: show.DescribeFile(p)}, nil
	}
	return pageBlock{Class: "thinking", Summary: p.Type, Text: show.Pretty(p.Raw)}, nil
}

// pictures are the image types that a page may include unchanged.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/avif": true}

// maxPicture is the largest picture, in bytes, that is included in the page.
const maxPicture = 16 << 20

func (x writing) imageBlock(ctx context.Context, p *pool.Part) (pageBlock, error) {
	note := pageBlock{Class: "note", Text: show.DescribeFile(p)}
	if p.SHA256 == (pool.Hash{}) || p.Size > maxPicture {
		return note, nil
	}
	data, _, err := x.Artifact(ctx, p.SHA256)
	if err != nil || data == nil {
		return note, err
	}
	mediaType := pool.SniffMediaType(data)
	if !pictures[mediaType] {
		return note, nil
	}
	uri := "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
	return pageBlock{Class: "picture", Image: uri, Alt: cmp.Or(p.Name, "image")}, nil
}

func callBlocks(c *pool.Call) []pageBlock {
	blocks := []pageBlock{{Class: "call", Summary: "Calls " + c.Tool + show.CallState(c), Text: show.Ran(c)}}
	if c.Effective != nil {
		blocks = append(blocks, pageBlock{Class: "call", Summary: "The model asked for", Text: show.Pretty(c.Arguments)})
	}
	return blocks
}

func (x writing) resultBlocks(ctx context.Context, r *pool.Result) ([]pageBlock, error) {
	class, summary := "result", "Result"
	if r.IsError {
		class, summary = "result error", "Error"
	}
	if len(r.Parts) == 0 {
		text := r.Text
		if r.JSON != nil {
			text = show.Pretty(r.JSON)
		}
		return []pageBlock{{Class: class, Summary: summary + resultHint(text), Text: text}}, nil
	}
	var blocks []pageBlock
	for i := range r.Parts {
		b, err := x.partBlock(ctx, &r.Parts[i], pool.ToolRole)
		if err != nil {
			return nil, err
		}
		if b.Class == "plain" {
			b.Class, b.Summary = class, summary+resultHint(b.Text)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// resultHint returns the beginning of a folded text.
func resultHint(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		return ""
	}
	return ": " + show.Clip(first, 60)
}

// renderMarkdown returns Markdown as HTML, with all HTML in it escaped and pictures as links. It reports false for text that is too long or nested too deeply.
func renderMarkdown(text string) (string, bool) {
	if len(text) > maxMarkdown || strings.Count(text, "](") > maxLinks || nestsDeep(text) {
		return "", false
	}
	var b bytes.Buffer
	if err := markdownRenderer().Convert([]byte(text), &b); err != nil {
		return "", false
	}
	return b.String(), true
}

// Text is rendered up to this many bytes, with this many links, since unclosed ones take quadratic time. Other text is shown unchanged.
const (
	maxMarkdown = 64 << 10
	maxLinks    = 2000
)

// nestsDeep reports whether a line opens more quotes and lists than anybody reads.
func nestsDeep(text string) bool {
	for line := range strings.Lines(text) {
		markers := 0
		for _, c := range line {
			if strings.ContainsRune(" \t>-*+.)0123456789", c) {
				if strings.ContainsRune(">-*+.)", c) {
					markers++
				}
				continue
			}
			break
		}
		if markers > 80 {
			return true
		}
	}
	return false
}
