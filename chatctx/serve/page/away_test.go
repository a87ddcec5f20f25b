package page_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/chatctx/chatctx/chatctx/serve"
	"github.com/chatctx/chatctx/chatctx/serve/page"
)

// answers has another server answer, or with nil none, and breaks off what runs.
func (r *reader) answers(by *serve.Server) {
	r.front.Store(by)
	r.web.CloseClientConnections()
}

// TestServerGoesAndComesBack: the page says at once that its server has ended or admits it no more, and asks again after growing pauses; once the server answers, the page shows what was done meanwhile.
func TestServerGoesAndComesBack(t *testing.T) {
	r := open(t, trip(t))
	r.mu.Lock()
	r.away = true
	r.mu.Unlock()
	r.sees("To Rome.")
	value[any](r, `(() => { const real = setTimeout; window.pauses = []; window.setTimeout = (f, ms) => (pauses.push(ms), real(f, ms >= 1000 && ms <= 30000 ? 10 : ms)); })()`)
	notices := `[...document.querySelectorAll("#status.stays .words")].filter((n) => n.checkVisibility()).map((n) => n.innerText).join("|")`

	r.answers(nil)
	r.until(notices + `.startsWith("The program that serves this page has ended.")`)
	r.said("The program that serves this page has ended.")
	r.until(`[500, 1000, 2000, 4000, 8000, 16000].every((ms) => pauses.includes(ms))`)
	r.click("#views", "Approvals")
	r.sees("This cannot be shown now")
	r.gone("To Rome.")
	if shown := value[string](r, "document.body.innerText"); strings.Contains(shown, "No call waits") {
		t.Errorf("nobody knows which calls wait, and the page shows\n%s", shown)
	}
	r.shot("gone")
	r.accessible("without a server")
	newContext(t, r.store, "Meanwhile", user("Hello"))
	r.answers(r.server)
	r.until(notices + ` === ""`)
	r.sees("No call waits for you.")
	r.until(`document.querySelector("#side").innerText.includes("Meanwhile")`)

	other := serve.New(r.store, serve.Options{Page: page.Files})
	defer other.Close()
	r.answers(other)
	r.until(notices + `.startsWith("This page may no longer read the store.")`)
	r.said("This page may no longer read the store.")
	r.shot("stranger")
	value[any](r, `fetch(`+quoted(other.Opening())+`).then((r) => r.text())`) // the new address, in another tab
	r.until(notices + ` === ""`)

	third := serve.New(r.store, serve.Options{Page: page.Files})
	defer third.Close()
	r.answers(third)
	r.do(chromedp.Navigate(r.url + "/"))
	r.until(notices + `.startsWith("This page may no longer read the store.")`)
	r.sees("This cannot be shown now")
	value[any](r, `fetch(`+quoted(third.Opening())+`).then((r) => r.text())`)
	r.until(notices + ` === ""`)
	r.sees("Hello")
	r.until(`document.querySelector("#side").innerText.includes("Meanwhile")`)
	r.answers(nil) // what runs ends before the servers do
}

// TestNothingIsThere: an address of nothing shows that alone.
func TestNothingIsThere(t *testing.T) {
	r := open(t, trip(t))
	r.sees("To Rome.")
	value[any](r, `location.hash = "#/c/nope"`)
	r.sees("This is not there")
	r.gone("To Rome.")
	if n := value[int](r, `document.querySelectorAll("main textarea, main article").length`); n != 0 {
		t.Errorf("%d parts of the old conversation are in the view", n)
	}
	r.accessible("nothing")
	value[any](r, `location.hash = "#/c/%zz"`) // no encoding of anything
	r.until(`app.rest[0] === "%zz" && document.querySelector("main h1")?.innerText === "This is not there"`)
	r.first()
	r.sees("To Rome.")
}
