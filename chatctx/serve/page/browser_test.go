package page_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/serve"
	"github.com/chatctx/chatctx/chatctx/serve/page"
	"github.com/chatctx/chatctx/internal/storetest"
)

// axe is axe-core 4.14.1, which finds what keeps people out of a page (MPL-2.0, unchanged; its licence is beside it).
//
//go:embed testdata/axe.min.js
var axe string

// browser starts one browser for all tests of the package.
var browser = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			ctx, _ := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.WSURLReadTimeout(2*time.Minute), chromedp.WindowSize(1280, 800))
			ctx, _ = chromedp.NewContext(ctx)
			return ctx, chromedp.Do(ctx)
		}
	}
	return nil, exec.ErrNotFound
})

func TestMain(m *testing.M) {
	code := m.Run()
	if ctx, err := browser(); err == nil {
		_ = chromedp.Cancel(ctx)
	}
	os.Exit(code)
}

// reader is a person with a page on a store that others use too.
type reader struct {
	t     testing.TB
	ctx   context.Context
	store *chatctx.Store
	url   string
	dir   string // the store's folder; the store is s.db

	server *serve.Server
	web    *httptest.Server
	front  atomic.Pointer[serve.Server] // who answers at url: nil breaks every connection off
	held   atomic.Pointer[hold]         // which answers wait

	mu     sync.Mutex
	errors []string         // in the console
	away   bool             // errors of the API are no faults, since a test takes the server away
	found  []exchange.Place // what tools of this machine keep
}

// open serves a store in a file and opens the page in its own tab.
func open(t testing.TB, fill func(*chatctx.Store)) *reader {
	t.Helper()
	parent, err := browser()
	if err != nil {
		t.Skipf("no browser to look at the page with: %v", err)
	}
	dir := t.TempDir()
	store, err := chatctx.Open(filepath.Join(dir, "s.db"), chatctx.Options{Create: true, Program: "test", By: "ann", Judge: approval.Rules{}})
	if err != nil {
		t.Fatal(err)
	}
	if fill != nil {
		fill(store)
	}
	r := &reader{t: t, store: store, dir: dir}
	server := serve.New(store, serve.Options{Page: page.Files, Places: r.places})
	r.server = server
	r.front.Store(server)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		front := r.front.Load()
		if front == nil {
			panic(http.ErrAbortHandler)
		}
		if h := r.held.Load(); h != nil && strings.Contains(q.URL.Path, h.path) && !strings.HasSuffix(q.URL.Path, "/changes") {
			select {
			case <-h.free:
			case <-q.Context().Done():
			}
		}
		front.ServeHTTP(w, q)
	}))
	r.web = web
	ctx, stop := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	ctx, late := context.WithTimeout(ctx, 5*time.Minute) // a browser that does not answer fails the test
	r.ctx, r.url = ctx, web.URL
	t.Cleanup(func() {
		late()
		stop()
		server.Close()
		web.Close()
		r.check()
		store.Close()
	})
	r.listen()
	r.do(chromedp.Navigate(web.URL + server.Opening()))
	return r
}

// beside opens the page in another tab of the same person.
func (r *reader) beside() *reader {
	r.t.Helper()
	ctx, stop := chromedp.NewContext(r.ctx)
	two := &reader{t: r.t, ctx: ctx, store: r.store, url: r.url, dir: r.dir}
	r.t.Cleanup(func() { stop(); two.check() })
	two.listen()
	two.do(chromedp.Navigate(r.url))
	return two
}

// hold makes requests wait.
type hold struct {
	path string // a part of their path
	free chan struct{}
}

// slow makes the answers of paths wait until the returned function is called: what is pressed meanwhile is typed ahead of the page.
func (r *reader) slow(path string) (free func()) {
	h := &hold{path, make(chan struct{})}
	r.held.Store(h)
	return func() { r.held.Store(nil); close(h.free) }
}

func (r *reader) places() []exchange.Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// listen collects the errors of the page.
func (r *reader) listen() {
	r.do()
	go func() {
		for e, err := range chromedp.Events(r.ctx, runtime.ExceptionThrown) {
			if err != nil {
				return
			}
			r.keep(fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		}
	}()
	entries := chromedp.Events(r.ctx, log.EntryAdded)
	go func() {
		for e, err := range entries {
			if err != nil {
				return
			}
			// A requested object may just have disappeared, like a branch that an undo took away: the browser reports it by itself, and the page goes
			// elsewhere.
			gone := strings.Contains(e.Entry.URL, "/api/") && strings.Contains(e.Entry.Text, "status of 404")
			r.mu.Lock()
			gone = gone || r.away && strings.HasPrefix(e.Entry.URL, r.url)
			r.mu.Unlock()
			if e.Entry.Level == log.EntryLevelError && !gone {
				r.keep(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	}()
}

func (r *reader) keep(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, text)
}

// met waits for an error in the console that a test provokes, and removes it.
func (r *reader) met(text string) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); r.do() {
		r.mu.Lock()
		i := slices.IndexFunc(r.errors, func(e string) bool { return strings.Contains(e, text) })
		if i >= 0 {
			r.errors = slices.Delete(r.errors, i, i+1)
		}
		r.mu.Unlock()
		if i >= 0 {
			return
		}
	}
	r.t.Errorf("the console never says %q", text)
}

// check fails if the page had an error or the store breaks an invariant.
func (r *reader) check() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.errors {
		r.t.Errorf("the console says: %s", e)
	}
	storetest.Check(r.t, r.store)
}

func (r *reader) do(steps ...chromedp.Action[chromedp.Void]) {
	r.t.Helper()
	if err := chromedp.Do(r.ctx, steps...); err != nil {
		r.t.Fatal(err)
	}
}

// value returns the awaited value of an expression in the page.
func value[T any](r *reader, expression string) T {
	r.t.Helper()
	v, err := chromedp.Run(r.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		r.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true. The expression may fail while the page is drawn. If it never is true, until reports what the page shows.
func (r *reader) until(expression string) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.ctx, 70*time.Second)
	defer stop()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool]("(() => { try { return Boolean("+expression+"); } catch { return false; } })()", chromedp.WithPollingTimeout(60*time.Second))); err != nil {
		r.shot("failed")
		r.t.Fatalf("never true: %s (%v); the focus is at %s; the page shows:\n%s", expression, err, value[string](r, "document.activeElement.outerHTML.slice(0, 200)"), value[string](r, "document.body.innerText.slice(0, 1200)"))
	}
}

// sees waits for a text to be shown.
func (r *reader) sees(text string) {
	r.t.Helper()
	r.until("document.body.innerText.includes(" + quoted(text) + ")")
}

// gone waits until a text is no longer shown.
func (r *reader) gone(text string) {
	r.t.Helper()
	r.until("!document.body.innerText.includes(" + quoted(text) + ")")
}

// click clicks the button or link with a name, inside an element of a selector, as soon as it exists. One script finds and clicks it, because the page may
// redraw it in between.
func (r *reader) click(within, name string) {
	r.t.Helper()
	r.until(fmt.Sprintf(`(() => { const all = [...document.querySelectorAll(%s)].flatMap((e) => [...e.querySelectorAll("button, a, [role=treeitem], .conversation-row")]);
		const one = all.find((b) => (b.getAttribute("aria-label") ?? b.innerText).trim().replace(/\s+/g, " ") === %s && b.checkVisibility() && !b.disabled);
		one?.click(); return Boolean(one); })()`, quoted(within), quoted(name)))
}

// later lets the page believe that a second has passed: a press is not taken as one for what stood there before.
func (r *reader) later() {
	r.t.Helper()
	value[any](r, `(() => { const real = Performance.prototype.now; window.skipped = (window.skipped ?? 0) + 1000; performance.now = () => real.call(performance) + window.skipped; })()`)
}

// decides presses a button of a call once it is live.
func (r *reader) decides(within, name string) {
	r.t.Helper()
	r.until(fmt.Sprintf(`[...document.querySelectorAll(%s)].flatMap((e) => [...e.querySelectorAll(".call button")]).some((b) => b.innerText.trim() === %s && b.ariaDisabled !== "true" && b.checkVisibility())`, quoted(within), quoted(name)))
	r.later()
	r.click(within, name)
}

// first opens the first conversation of the list.
func (r *reader) first() {
	r.t.Helper()
	r.until(`(() => { const c = document.querySelector("#side .conversation-row"); c?.click(); return Boolean(c); })()`)
}

// types types text into the field of a selector.
func (r *reader) types(selector, text string) {
	r.t.Helper()
	value[any](r, fmt.Sprintf(`(() => { const f = document.querySelector(%s); f.focus(); f.value = ""; f.dispatchEvent(new Event("input")); })()`, quoted(selector)))
	r.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// asks chooses the models that are asked.
func (r *reader) asks(models ...string) {
	r.t.Helper()
	value[any](r, "app.conversation.composer.chips.set("+quoted(strings.Join(models, " "))+".split(' '))")
}

// fills sets a field of the open dialog, by its label.
func (r *reader) fills(label, text string) {
	r.t.Helper()
	r.until(fmt.Sprintf(`(() => { const l = [...document.querySelectorAll("dialog label")].find((l) => l.innerText.startsWith(%s)); if (!l) return false;
		const i = l.querySelector("input, textarea, select"); i.value = %s; i.dispatchEvent(new Event("change")); return true; })()`, quoted(label), quoted(text)))
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// accessible fails for every serious fault that axe finds on the screen.
func (r *reader) accessible(view string) {
	r.t.Helper()
	value[any](r, axe+"; 1")
	found := value[[]string](r, `axe.run(document, {resultTypes: ["violations"]}).then((a) => a.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id + ": " + v.help + " " + v.nodes.map((n) => n.target + " " + n.failureSummary).slice(0, 3).join(" | ")))`)
	for _, f := range found {
		r.t.Errorf("%s: %s", view, f)
	}
}

// shot saves a picture of the page if CHATCTX_SHOTS names a folder.
func (r *reader) shot(name string) {
	dir := os.Getenv("CHATCTX_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(r.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(r.t.Name(), "/", "-")+"-"+name+".png"), picture, 0o644)
	}
	if err != nil {
		r.t.Log(err)
	}
}

// size sets the page's width and height.
func (r *reader) size(width, height int64) {
	r.t.Helper()
	r.do(chromedp.EmulateViewport(width, height))
}
