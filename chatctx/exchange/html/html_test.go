package html

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

func exported(t testing.TB, s *chatctx.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := exchange.Export(context.Background(), s, exchange.ExportOptions{Format: "html"}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPageEscapesEverything(t *testing.T) {
	page := string(exported(t, exchangetest.HostileStore(t)))
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

// TestMarkupEscapesEachText puts a text that would break out of an element or an attribute where a page has texts.
func TestMarkupEscapesEachText(t *testing.T) {
	const hostile, safe = "\x00\"'><script>&", "\uFFFD&#34;&#39;&gt;&lt;script&gt;&amp;"
	head, foot, err := frame(hostile, hostile, pageTree{Parents: []int{-1}, Branches: []pageBranch{{Name: hostile}, {Name: "{{script}}{{messages}}"}}})
	if err != nil {
		t.Fatal(err)
	}
	m := pageMessage{Class: hostile, Speaker: hostile, Model: hostile, Blocks: []pageBlock{
		{Class: "call", Summary: hostile, Text: hostile}, {Class: "picture", Image: "data:", Alt: hostile}, {Class: "text", HTML: "<p>fine</p>"}, {Class: "plain", Text: hostile}}}
	page := head + m.markup() + foot
	if n := strings.Count(page, "<script>"); n != 1 || strings.Contains(page, "\x00") || strings.Contains(page, hostile[1:]) {
		t.Errorf("%d scripts in the page:\n%s", n, page)
	}
	if n := strings.Count(page, safe); n != 11 {
		t.Errorf("the text is there %d times, want two titles, the counts, a branch and seven in the message:\n%s", n, page)
	}
	if !strings.Contains(page, "<option value=\"1\">{{script}}{{messages}}</option>") {
		t.Error("a branch's name is read as a place to fill")
	}
}

// TestPagePolicy checks that the policy allows exactly the style and the script in the page.
func TestPagePolicy(t *testing.T) {
	page := string(exported(t, exchangetest.HostileStore(t)))
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
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: %v", name, took)
		}
	}
}

// TestPageInChromium walks through the branches of a page in a browser: it loads the page with a branch in its address, and looks at the resulting document.
func TestPageInChromium(t *testing.T) {
	browser := testkit.Program(t, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
	s := exchangetest.MemoryStore(t)
	if _, err := exchange.Import(context.Background(), s, []string{filepath.Join("..", "..", "..", "testdata", "chatgpt-export.json")}, exchange.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Use(context.Background(), "Bread for eight"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, exported(t, s), 0o600); err != nil {
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

func dumpDOM(t *testing.T, browser, url string) string {
	t.Helper()
	out, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--dump-dom", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
