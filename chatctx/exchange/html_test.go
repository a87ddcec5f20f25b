package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// hostile is text that would be a script, or reach the network, where it is not escaped.
const hostile = `</script><script>document.title='owned'</script><img src=x onerror="document.title='owned'"> --> <!-- ]]> &lt; "' ` + "\u2028"

// onePixel is a PNG of one pixel.
const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

func memoryStore(t testing.TB) *chatctx.Store {
	t.Helper()
	s, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// hostileStore holds one context with hostile text in every place that a page shows.
func hostileStore(t testing.TB) *chatctx.Store {
	t.Helper()
	ctx := context.Background()
	s := memoryStore(t)
	assistant := chatctx.Message{Role: pool.Assistant, Meta: pool.Metadata{Model: hostile[:40]}, Content: []pool.Part{
		{Type: pool.TextPart, Text: "Some **bold** text.\n\n" + hostile + "\n\n![pixel](https://example.invalid/p.png) [go](javascript:alert(1)) <b>raw</b>\n\n<div onclick=x>\nblock\n</div>\n"},
		{Type: pool.ThinkingPart, Text: hostile},
		{Type: pool.ImagePart, Name: hostile, Data: []byte(onePixel)},
		{Type: "odd" + hostile, Raw: json.RawMessage(`{"type":"odd","x":"</script>"}`)},
	}, Calls: []pool.Call{{ID: "c1", Tool: hostile, Arguments: json.RawMessage(`{"a":"</script><img src=x onerror=1>"}`)}}}
	tool := chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Tool: hostile, Text: hostile}}
	title := strings.Map(func(r rune) rune {
		if r == '\u2028' {
			return -1
		}
		return r
	}, hostile)
	c, err := s.New(ctx, chatctx.NewContext{Title: title, Messages: []*chatctx.Message{pool.NewText(pool.User, hostile), &assistant, &tool}})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.Fork(title, "@1", true)
	if _, err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(ctx, title, pool.NewText(pool.Assistant, "the other way")); err != nil {
		t.Fatal(err)
	}
	return s
}

func exported(t testing.TB, s *chatctx.Store, o ExportOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Export(context.Background(), s, o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPageEscapesEverything(t *testing.T) {
	page := string(exported(t, hostileStore(t), ExportOptions{Format: "html"}))
	for _, bad := range []string{"<img src=x", "<script>document.title", `href="javascript:`, "<div onclick", "<b>raw", "https://example.invalid/p.png\" alt"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want the tree and the program", n)
	}
	if n := strings.Count(page, "</script"); n != 2 {
		t.Errorf("%d scripts end", n)
	}
	for _, good := range []string{"<strong>bold</strong>", `<img src="data:image/png;base64,`, `href="https://example.invalid/p.png">pixel</a>`, "&lt;b&gt;raw"} {
		if !strings.Contains(page, good) {
			t.Errorf("the page does not hold %q", good)
		}
	}
}

// TestPagePolicy holds the policy to what it allows: exactly the style and the script that are in the page.
func TestPagePolicy(t *testing.T) {
	page := string(exported(t, hostileStore(t), ExportOptions{Format: "html"}))
	for _, part := range []string{"default-src &#39;none&#39;", "img-src data:"} {
		if !strings.Contains(page, part) {
			t.Errorf("the policy has no %q", part)
		}
	}
	if style := between(page, "<style>", "</style>"); style != pageCSS {
		t.Error("the style is not byte for byte what its hash is of")
	}
	if script := between(page[strings.LastIndex(page, "<script>"):], "<script>", "</script>"); script != pageJS {
		t.Error("the script is not byte for byte what its hash is of")
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]{0,40})`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "data:image/png") && m[1] != "" && !strings.HasPrefix(m[1], "https://example.invalid/p.png") {
			t.Errorf("the page refers to %q", m[1])
		}
	}
}

func between(s, begin, end string) string {
	_, s, _ = strings.Cut(s, begin)
	s, _, _ = strings.Cut(s, end)
	return s
}

func TestMarkdownRenderingEndsOnHostileText(t *testing.T) {
	for name, text := range map[string]string{
		"quotes":    strings.Repeat(">", 60_000),
		"lists":     strings.Repeat("- ", 30_000),
		"brackets":  strings.Repeat("[", 60_000),
		"stars":     strings.Repeat("*a", 30_000),
		"backticks": strings.Repeat("`a", 30_000),
		"links":     strings.Repeat("[a](", 16_000),
		"tables":    "|a|\n|-|\n" + strings.Repeat("|", 60_000),
		"stairs":    strings.Repeat(strings.Repeat(">", 70)+"\n", 900),
		"urls":      strings.Repeat("http://a.", 7_000),
		"entities":  strings.Repeat("&#", 30_000),
	} {
		start := time.Now()
		renderMarkdown(text)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

// TestPageInChromium walks the branches of a page in a browser, CHATCTX_CHROMIUM: the page is loaded with a branch in its address, and what is
// shown is read off the document that comes of it.
func TestPageInChromium(t *testing.T) {
	browser := os.Getenv("CHATCTX_CHROMIUM")
	if browser == "" {
		t.Skip("set CHATCTX_CHROMIUM to a Chromium to look at pages in it")
	}
	s := memoryStore(t)
	if _, err := Import(context.Background(), s, []string{filepath.Join("..", "..", "testdata", "chatgpt-export.json")}, Options{}); err != nil {
		t.Fatal(err)
	}
	info := onlyContext(t, s)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, exported(t, s, ExportOptions{Format: "html", Context: info.ID.String()}), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string][]string{
		"":                           {"timetable", "2/2", "End of branch main"},
		"#branch=edit%201%20of%20u2": {"How much flour", "End of branch edit 1 of u2"},
	} {
		dom := dumpDOM(t, browser, "file://"+path+address)
		shown := regexp.MustCompile(`(?s)<article[^>]* hidden="".*?</article>`).ReplaceAllString(dom, "")
		for _, w := range want {
			if !strings.Contains(shown, w) {
				t.Errorf("%q: the page does not show %q", address, w)
			}
		}
	}
}

func onlyContext(t testing.TB, s *chatctx.Store) *chatctx.ContextInfo {
	t.Helper()
	var found *chatctx.ContextInfo
	for info, err := range s.Contexts(context.Background(), chatctx.ListOptions{}) {
		if err != nil || found != nil {
			t.Fatal("more than one context, or", err)
		}
		found = info
	}
	return found
}

func dumpDOM(t *testing.T, browser, url string) string {
	t.Helper()
	out, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--dump-dom", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
