package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
)

//go:embed page/page.css
var pageCSS string

//go:embed page/page.js
var pageJS string

// pageHTML is the page with names in double braces where frame puts something.
//
//go:embed page/page.html
var pageHTML string

// escape makes a text safe as the content of an element and as the value of an attribute in double quotes. Every text of a conversation passes it, but
// for what the Markdown renderer made and for the JSON of the tree, in which encoding/json escapes < and >.
//
// html/template would do this for us. But it finds methods by names, so with it the linker keeps every exported method of every type: 5 MB of the command.
var escape = strings.NewReplacer("\x00", "\uFFFD", "&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace

// frame returns what stands before the messages and behind them.
func frame(title, counts string, tree pageTree) (head, foot string, err error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return "", "", err
	}
	fill := strings.NewReplacer("{{policy}}", escape(pagePolicy()), "{{title}}", escape(title), "{{style}}", pageCSS, "{{counts}}", escape(counts),
		"{{branches}}", tree.options(), "{{tree}}", string(data), "{{script}}", pageJS)
	head, foot, _ = strings.Cut(pageHTML, "{{messages}}\n")
	return fill.Replace(head), fill.Replace(foot), nil
}

// pagePolicy returns a policy that allows only the page's own style, script and pictures.
func pagePolicy() string {
	hash := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS) + "; img-src data:; base-uri 'none'; form-action 'none'"
}

// options are the branches to choose from.
func (t pageTree) options() string {
	var b strings.Builder
	for i, branch := range t.Branches {
		b.WriteString(`<option value="` + strconv.Itoa(i) + `"` + when(i == t.Active, " selected") + ">" + escape(branch.Name) + "</option>")
	}
	return b.String()
}

func (m *pageMessage) markup() string {
	var b strings.Builder
	n := strconv.Itoa(m.N)
	b.WriteString(`<article class="message ` + escape(m.Class) + `" id="m` + n + `" data-n="` + n + `" tabindex="-1"` + when(!m.Shown, " hidden") + ">\n")
	b.WriteString(`<header><span class="who">` + escape(m.Speaker) + "</span>")
	if m.Model != "" {
		b.WriteString(` <span class="model">` + escape(m.Model) + "</span>")
	}
	if m.Time != "" {
		b.WriteString(` <time datetime="` + m.Time + `">` + m.When + "</time>")
	}
	b.WriteString("</header>\n")
	for i := range m.Blocks {
		b.WriteString(m.Blocks[i].markup())
	}
	b.WriteString("</article>\n")
	return b.String()
}

// markup is a block's element, "" if nothing is in it.
func (b *pageBlock) markup() string {
	switch {
	case b.Summary != "":
		return `<details class="` + b.Class + `"><summary>` + escape(b.Summary) + "</summary><pre>" + escape(b.Text) + "</pre></details>\n"
	case b.Image != "":
		return `<p class="picture"><img src="` + b.Image + `" alt="` + escape(b.Alt) + `"></p>` + "\n"
	case b.HTML != "":
		return `<div class="text">` + b.HTML + "</div>\n"
	case b.Text != "":
		return `<div class="` + b.Class + `">` + escape(b.Text) + "</div>\n"
	}
	return ""
}

// when returns a text if something is so, else "".
func when(so bool, text string) string {
	if so {
		return text
	}
	return ""
}
