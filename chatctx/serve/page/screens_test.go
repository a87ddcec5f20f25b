package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// misplaced returns the elements that a screen of this size does not show completely, and lines that are too long to read.
const misplaced = `(() => { const faults = [], w = innerWidth, h = innerHeight, page = document.documentElement;
	if (page.scrollWidth > w || page.scrollHeight > h) faults.push("the page has " + page.scrollWidth + " by " + page.scrollHeight);
	const scrolls = (e, way) => { for (; e && e !== document.body; e = e.parentElement) if (way !== "X" || !e.matches(".view")) if (/auto|scroll/.test(getComputedStyle(e)["overflow" + way])) return true; return false; };
	for (const e of document.querySelectorAll("button, a, input, select, textarea, summary, h1, h2")) {
		const box = e.getBoundingClientRect();
		if (!e.checkVisibility({visibilityProperty: true}) || !box.width || e.closest(".unseen, .skip")) continue;
		if ((box.left < -1 || box.right > w + 1) && !scrolls(e.parentElement, "X")) faults.push("left or right of the view: " + (e.ariaLabel ?? e.innerText));
		if ((box.top < -1 || box.bottom > h + 1) && !scrolls(e.parentElement, "Y")) faults.push("above or below the view: " + (e.ariaLabel ?? e.innerText));
	}
	const breaks = (node) => [...node.data.matchAll(/[\p{L}\p{N}]+/gu)].some((w) => { const r = document.createRange(); r.setStart(node, w.index); r.setEnd(node, w.index + w[0].length); return new Set([...r.getClientRects()].map((b) => Math.round(b.top))).size > 1; });
	for (const e of document.querySelectorAll("button, th, td[title], .chart span")) {
		if (!e.checkVisibility() || e.closest(".unseen, .labels")) continue;
		for (const node of e.childNodes) if (node.nodeType === 3 && breaks(node)) faults.push("a word is broken: " + e.innerText);
	}
	for (const e of document.querySelectorAll(".chart")) if (e.scrollWidth > e.clientWidth) faults.push("a chart is cut off");
	const size = (e) => parseFloat(getComputedStyle(e).fontSize), title = document.querySelector("main h1");
	for (const e of document.querySelectorAll("main :is(h1, h2, h3)")) if (title && size(e) > size(title)) faults.push("larger than the title: " + e.innerText);
	for (const e of document.querySelectorAll(".body .text p, .text li, p.text, .begin li, dialog p, .queue p")) {
		const line = e.getBoundingClientRect().width / parseFloat(getComputedStyle(e).fontSize) * 2; // about two letters of a text to its size
		if (line > 130) faults.push("a line has " + Math.round(line) + " letters: " + e.innerText.slice(0, 30));
	}
	return faults; })()`

// covered returns the buttons that a notice lies over.
const covered = `(() => { const n = document.querySelector("#status").getBoundingClientRect();
	return [...document.querySelectorAll("main button, #side button, #side a")].filter((b) => { const o = b.getBoundingClientRect(); return o.width && b.checkVisibility() && !b.closest("#status") && !(b.closest("row-list")?.getBoundingClientRect().bottom < o.bottom) && o.left < n.right && n.left < o.right && o.top < n.bottom && n.top < o.bottom; }).map((b) => b.ariaLabel ?? b.innerText); })()`

// TestScreens: every view fits every screen: nothing is outside, and no line is too long to read.
func TestScreens(t *testing.T) {
	long := strings.Repeat("Words that go on and on to the end of the line. ", 30)
	r := open(t, func(s *chatctx.Store) {
		provider(t, s)
		for i, model := range []string{"", "a-model-with-a-name-that-goes-on-and-on"} {
			m, in, out := assistant("So it is."), int64(123_456*i+1000), int64(789_012)
			m.Meta = pool.Metadata{Model: model, InputTokens: &in, OutputTokens: &out}
			newContext(t, s, "Figures", user("How much?"), m)
		}
		c := newContext(t, s, "A title that is rather long for what it says of a trip to the sea", user("Where do we go? "+long), assistant(long+"\n\n- "+long+"\n\n```\n"+strings.Repeat("code ", 90)+"\n```\n\n| a | b |\n|---|---|\n| "+strings.Repeat("wide", 90)+" | 2 |"))
		commit(t, c.Begin("main"), func(b *chatctx.Batch) {
			b.Fork("a-name-of-a-branch-that-is-long-too", chatctx.ForkOptions{At: "@1", Stay: true})
		})
		commit(t, c.Begin("a-name-of-a-branch-that-is-long-too"), func(b *chatctx.Batch) {
			b.Append(&chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{"at":"` + strings.Repeat("sea", 300) + `"}`)}}})
		})
		gone := newContext(t, s, "Gone", user("Hello"))
		if _, err := s.Trash(t.Context(), gone.ID.String()); err != nil {
			t.Fatal(err)
		}
	})
	r.sees("Words that go on")
	c, err := r.store.Context(t.Context(), "A title that is rather long for what it says of a trip to the sea")
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("#/compare/%s/main/a-name-of-a-branch-that-is-long-too", c.ID)
	views := []struct{ name, address, shows string }{
		{"conversation", "#/c/" + c.ID.String() + "/main", "Words that go on"}, {"compare", at, "Side by side"}, {"approvals", "#/calls", "No rule decides this call."},
		{"history", "#/history", "What was done"}, {"figures", "#/figures", "Tokens and cost"}, {"trash", "#/trash", "Gone"},
	}
	for _, width := range []int64{360, 1280, 2560} {
		r.size(width, 800)
		for _, v := range views {
			value[any](r, "location.hash = "+quoted(v.address))
			r.until(`document.querySelector("main").innerText.includes(` + quoted(v.shows) + `)`)
			r.fits(v.name, width)
			r.accessible(fmt.Sprint(v.name, " at ", width))
		}
		value[any](r, "location.hash = "+quoted(views[0].address))
		r.click("main", "More")
		r.click("body", "As JSON")
		r.fits("dialog", width)
		r.click("dialog", "Close")
		if part := value[float64](r, `document.querySelector("main .bar").offsetHeight / innerHeight`); part > 0.25 {
			t.Errorf("at %d head and bar take %.0f %% of the height", width, 100*part)
		}
		value[any](r, `app.did("What was done has a notice of some words", {operation: "none"})`)
		r.fits("notice", width)
		if covered := value[[]string](r, covered); len(covered) > 0 {
			t.Errorf("at %d a notice covers %v", width, covered)
		}
		r.click("#status", "Close")
		value[any](r, `document.querySelector("#places button[title=Keys]").click()`)
		r.fits("keys", width)
		r.click("dialog", "Close")
	}
}

// fits fails if a screen does not show a view correctly.
func (r *reader) fits(view string, width int64) {
	r.t.Helper()
	r.shot(fmt.Sprint(view, "-", width))
	for _, fault := range value[[]string](r, misplaced) {
		r.t.Errorf("%s at %d: %s", view, width, fault)
	}
}

// TestFolderIsDropped: a dropped folder is imported with the folders in it.
func TestFolderIsDropped(t *testing.T) {
	r := open(t, func(*chatctx.Store) {})
	r.sees("This store is empty")
	dir := filepath.Join(t.TempDir(), "exports")
	for name, from := range map[string]string{"one.zip": chatGPT(t), "deep/er/two.json": "testdata"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		raw := []byte(`{"messages":[{"role":"user","content":"Is it deep?"},{"role":"assistant","content":"Deeper than that."}]}`)
		if from != "testdata" {
			var err error
			if raw, err = os.ReadFile(from); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.drop(dir)
	r.sees("2 conversations: 4 new messages")
	r.click("dialog", "Close")
	r.types("input[type=search]", "deeper")
	r.until(`document.querySelector("#side mark")?.textContent === "Deeper"`)
}

// TestPurgedIsBroughtOnDemand: an import leaves away what was purged here, says so, and brings it if somebody asks.
func TestPurgedIsBroughtOnDemand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.json")
	raw := []byte(`{"messages":[{"role":"user","content":"Where is the harbour, and who keeps the key of the boat house there?"},{"role":"assistant","content":"Behind the mill."}]}`)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, func(s *chatctx.Store) {
		rep, err := exchange.Import(t.Context(), s, []string{file}, exchange.Options{})
		if err == nil {
			_, err = s.Maintenance().PurgeMessages(t.Context(), rep.Imported[0].Context, "", []record.Ref{"@1"}, chatctx.PurgeOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	r.sees("Behind the mill")
	r.drop(file)
	r.sees("1 message purged here before: not brought back.")
	r.accessible("an import after a purge")
	r.click("dialog", "Bring what was purged")
	r.sees("again what was purged")
	r.click("dialog", "Close")
	r.types("input[type=search]", "boat")
	r.until(`document.querySelector("#side mark")?.textContent === "boat"`)
}

// TestNotification: a person who allowed it is notified of a call, also by a page in the background; of several such pages one does it.
func TestNotification(t *testing.T) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) { c = newContext(t, s, "Sea", user("Look")) })
	r.sees("Look")
	r.click("#views", "Approvals")
	_, err := chromedp.CallBrowser(r.ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted, Origin: r.url, BrowserContextID: chromedp.FromContext(r.ctx).BrowserContextID})
	if err != nil {
		t.Fatal(err)
	}
	// A browser without a screen grants the permission, goes on saying "denied", and shows no notification.
	value[any](r, `(async () => { const permission = await Notification.requestPermission(); window.told = [];
		window.Notification = class { static permission = permission; constructor(title, {body}) { told.push(title + ": " + body); } };
		Object.defineProperty(document, "hidden", {get: () => true, configurable: true}); document.hasFocus = () => false; document.dispatchEvent(new Event("visibilitychange")); })()`)
	ask := func(id string) {
		commit(t, c.Begin("main"), func(b *chatctx.Batch) {
			b.Append(&chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: id, Tool: "look", Arguments: json.RawMessage(`{}`)}}})
		})
	}
	ask("a")
	r.until(`told.length === 1 && told[0] === "A call waits: look"`)
	r.said("A call waits for you: look")
	value[any](r, `navigator.locks.query().then((all) => { if (all.held.length !== 1) throw new Error("no page has the turn to listen"); })`)
	value[any](r, `delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`)
	r.until(`navigator.locks.query().then((all) => all.held.length === 0)`)
	ask("b")
	r.until(`told.length === 2 && document.querySelector("#views .badge").textContent === "2"`)
}
