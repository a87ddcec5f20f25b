package html

import (
	"html"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	htmlrenderer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// markdownRenderer renders HTML in Markdown as plain text, and pictures, which would be fetched, as links. Goldmark removes dangerous links such as
// javascript:.
var markdownRenderer = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))), // no style attributes, which the page's policy forbids
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(plainNodes{}, 1))),
	)
})

// plainNodes renders the nodes that goldmark would drop or fetch.
type plainNodes struct{}

func (plainNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindImage, imageLink)
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		lines := n.(*ast.RawHTML).Segments
		for i := range lines.Len() {
			seg := lines.At(i)
			w.WriteString(html.EscapeString(string(seg.Value(source))))
		}
	}
	return ast.WalkSkipChildren, nil
}

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block := n.(*ast.HTMLBlock)
	if !entering {
		return ast.WalkContinue, nil
	}
	w.WriteString("<pre><code>")
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		w.WriteString(html.EscapeString(string(line.Value(source))))
	}
	if block.HasClosure() {
		w.WriteString(html.EscapeString(string(block.ClosureLine.Value(source))))
	}
	w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

func imageLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	url := n.(*ast.Image).Destination
	switch {
	case htmlrenderer.IsDangerousURL(url):
	case entering:
		w.WriteString(`<a href="`)
		w.Write(util.EscapeHTML(util.URLEscape(url, true)))
		w.WriteString(`">`)
	default:
		w.WriteString(`</a>`)
	}
	return ast.WalkContinue, nil
}
