package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// focused returns the name of the element with the focus, "" for none, and its fault for a person who only has the keyboard.
const focused = `(() => { const e = document.activeElement; if (!e || e === document.body) return {name: "", fault: "nothing has the focus"};
	const name = (e.getAttribute("aria-label") ?? e.closest("label")?.firstChild.textContent ?? e.innerText).trim().replace(/\s+/g, " "), box = e.getBoundingClientRect();
	const seen = e.checkVisibility() && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
	return {name, fault: !seen ? "it is not in the view" : !e.matches(":focus-visible") || getComputedStyle(e).outlineStyle === "none" ? "nothing shows the focus" : ""}; })()`

type focus struct{ Name, Fault string }

// keys presses keys as a person does: a key writes its letter unless the page takes it for something else.
func (r *reader) keys(keys string, with ...chromedp.Modifier) {
	r.t.Helper()
	r.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, one := range keys {
			all := kb.Encode(one)
			down, up := all[0], all[len(all)-1]
			if len(all) == 3 && len(with) == 0 {
				down.Text, down.UnmodifiedText = all[1].Text, all[1].UnmodifiedText
			}
			for _, e := range []*input.DispatchKeyEventParams{down, up} {
				chromedp.KeyModifiers(with...)(e)
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// tab presses Tab until the element of a name has the focus. Every element on the way has to show its focus.
func (r *reader) tab(name string) {
	r.t.Helper()
	var way []string
	for range 150 {
		r.keys(kb.Tab)
		f := value[focus](r, focused)
		if f.Name != "" && f.Fault != "" {
			r.t.Errorf("%q has the focus: %s", f.Name, f.Fault)
		}
		if f.Name == name {
			return
		}
		way = append(way, f.Name)
	}
	r.t.Fatalf("Tab does not come to %q but to %q", name, way)
}

// enter goes to the element of a name and presses Enter.
func (r *reader) enter(name string) {
	r.t.Helper()
	r.tab(name)
	r.keys(kb.Enter)
}

// keeps waits until an expression is true, and then until an element has the focus and shows it.
func (r *reader) keeps(expression string) {
	r.t.Helper()
	r.until(expression)
	r.until(focused + `.fault === ""`)
}

// on waits until the element of a name has the focus.
func (r *reader) on(name string) {
	r.t.Helper()
	r.keeps(fmt.Sprintf("%s.name === %s", focused, quoted(name)))
}

// said waits until a screen reader is told a text.
func (r *reader) said(text string) {
	r.t.Helper()
	r.until(`document.querySelector("[aria-live=polite]").textContent.includes(` + quoted(text) + `)`)
}

// chooses answers the next file dialog with a path.
func (r *reader) chooses(path string) (done func()) {
	r.t.Helper()
	call := func(what func(context.Context, *chromedp.Target) error) { r.t.Helper(); r.do(chromedp.Func(what)) }
	call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true})
		return err
	})
	opened := chromedp.Events(r.ctx, page.FileChooserOpened)
	return func() {
		r.t.Helper()
		for e, err := range opened {
			if err != nil {
				r.t.Fatal(err)
			}
			call(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, BackendNodeID: e.BackendNodeID})
				return err
			})
			return
		}
	}
}

// TestExploringByKeyboard: import, find, fork, ask two models, compare, take, undo, with the keyboard alone.
func TestExploringByKeyboard(t *testing.T) {
	r := open(t, func(s *chatctx.Store) { provider(t, s) })
	r.sees("This store is empty")
	chosen := r.chooses(chatGPT(t))
	r.enter("Import files")
	chosen()
	r.sees("1 conversation: 2 new messages")
	r.enter("Open")
	r.keeps(`document.querySelector("main").innerText.includes("The answer is in the harbour")`)

	r.keys("/")
	r.on("Search")
	r.keys("harb")
	r.until(`document.querySelector("#side mark")?.textContent === "harbour"`)
	r.keys(kb.ArrowDown + kb.Enter)
	r.on("Answer, message 2")

	r.keys("k")
	r.on("You, message 1")
	r.keys("j" + kb.Tab)
	r.on("Copy")
	r.tab("More")
	r.keys(kb.Enter)
	r.on("Ask again with…")
	r.keys(kb.ArrowDown)
	r.on("Go back to here")
	r.keys(kb.Escape)
	r.on("More") // where it was
	r.keys("f")
	r.keeps(`document.querySelector("main select").value === "main.2"`)

	r.keys("w")
	r.on("Message")
	r.keys("What is your name?")
	for _, model := range []string{"red", "blue"} {
		r.keys("m", chromedp.ModifierAlt)
		r.on("Another model")
		r.keys(model + kb.Enter)
		r.until(`document.querySelector("form.write").innerText.includes(` + quoted(model) + `)`)
	}
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.keeps(`document.querySelectorAll(".answers section").length === 2 && document.querySelectorAll(".answers .main").length === 1`)
	r.said("The answer on red is complete")
	r.said("The answer on blue is complete")
	r.on("Message")
	r.keys(kb.ArrowUp)
	r.on("Answers")
	r.keys("m")
	r.until(`document.querySelectorAll(".answers mark.differs").length === 2`)
	r.said("1 place differs")
	r.keys("2")
	r.keeps(`[...document.querySelectorAll("main article")].some((a) => a.innerText.includes("My name is blue.") && !a.querySelector(".answers"))`)
	r.said("Went on with blue’s answer")
	r.keys("n")
	r.on("Undo")
	r.keys(kb.Enter)
	r.keeps(`document.querySelectorAll(".answers section").length === 2`)
	r.said("Undone")
	r.keys("n" + kb.Enter)
	r.keeps(`!document.querySelector("#status").contains(document.activeElement)`)
}

// TestACallWaitsByKeyboard: a call waits, is looked at, changed, approved, run, with the keyboard alone.
func TestACallWaitsByKeyboard(t *testing.T) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) {
		c = newContext(t, s, "Sea", user("Look"))
		provider(t, s)
		if _, err := s.PutTool(t.Context(), record.Tool{Name: "look", Command: []string{"echo", "seen:", "{at}"}}); err != nil {
			t.Fatal(err)
		}
	})
	r.sees("Look")
	commit(t, c.Begin("main"), func(b *chatctx.Batch) {
		b.Append(&chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{"at":"sea"}`)}, {ID: "b", Tool: "look", Arguments: json.RawMessage(`{"at":"sky"}`)}}})
	})
	r.said("A call waits for you: look")
	r.enter("Approvals 2")
	r.sees("No rule decides this call.")
	r.sees("Sea · main")
	r.later()
	r.enter("Deny…")
	r.on("Reason (the model gets it)")
	r.keys("too high" + kb.Enter)
	r.on("Call of look")
	if at := value[string](r, `document.activeElement.innerText`); !strings.Contains(at, "sky") {
		t.Errorf("the focus is on %s", at)
	}
	r.later()
	r.keys("e")
	r.on("Arguments, as JSON")
	r.keys("a", chromedp.ModifierCtrl)
	r.keys(`{"at":"land"}`)
	r.sees("echo seen: land")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.on("Call of look")
	r.until(`document.querySelector(".queue .main").ariaDisabled !== "true"`)
	r.later()
	r.keys("a")
	r.on("Calls that wait")
	r.sees("No call waits for you.")
	call, err := r.store.Call(t.Context(), c.ID.String(), "main", "b")
	if err != nil {
		t.Fatal(err)
	}
	if string(call.RunArguments()) != `{"at":"land"}` || call.Status != pool.Approved {
		t.Errorf("the call runs with %s and is %s", call.RunArguments(), call.Status)
	}
	r.said("look ran; that cannot be undone")
	r.keys("n" + kb.Enter)
	r.keeps(`document.querySelector("main").innerText.includes("My name is plain.")`)
}

// TestWalkingByKeyboard, with the keyboard alone: walk through the tree, compare two places, look at the window; the focus stays, whatever others write
// meanwhile.
func TestWalkingByKeyboard(t *testing.T) {
	r := open(t, trip(t))
	r.sees("To Rome.")
	c, err := r.store.Context(t.Context(), "A trip")
	if err != nil {
		t.Fatal(err)
	}
	r.tab("Answer, message 2")
	r.keys(kb.Tab)
	r.on("The branch before")
	r.tab("Copy")
	commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Append(user("And when?")) })
	r.until(`document.querySelectorAll("main article").length === 3`)
	r.said("1 new message")
	r.on("Copy")
	if at := value[string](r, `document.activeElement.closest("article").innerText`); !strings.Contains(at, "To Rome.") {
		t.Errorf("the focus is in %q", at)
	}
	r.keys("t")
	r.on("Name")
	commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Rewind("@1") }) // the row goes while its dialog is open
	r.until(`document.querySelectorAll("main article[data-id]").length === 1`)
	r.keys(kb.Escape)
	r.on("Answers") // of the other branch: the question is open now
	commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Append(assistant("To Rome."), user("And when?")) })
	r.until(`document.querySelectorAll("main article").length === 3`)
	r.keys(kb.End)
	r.on("You, message 3")
	commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Rewind("@2") })
	r.on("Answer, message 2")

	r.tab("main 2")
	r.keys(" " + kb.ArrowDown)
	r.on("paris +1")
	r.keys(" ")
	r.until(`document.querySelectorAll("[role=treeitem][aria-selected=true]").length === 2`)
	r.keys(kb.ArrowRight + kb.ArrowDown)
	r.on("2 assistant: To Paris.")
	r.keys(kb.ArrowLeft)
	r.on("paris +1")
	r.keys("+")
	r.on("paris +1")
	r.keys(kb.Enter)
	r.keeps(`document.querySelector("main select").value === "paris"`)
	r.enter("Compare")
	r.keeps(`document.querySelector("main").innerText.includes("Side by side: main@2, paris@2")`)

	value[any](r, `history.back()`)
	r.until(`document.querySelector("main select")?.value === "paris"`)
	r.keys("h")
	r.until(`document.querySelector(".panel [aria-selected=true]").innerText === "History"`)
	r.enter("Undo the last operation")
	r.sees("undo: To Paris.") // the button has had the focus before
	r.on("Undo the last operation")
	r.enter("Redo")
	r.sees("redo: To Paris.")
	r.on("Redo")

	r.until(`document.querySelector(".write .tokens")?.innerText.endsWith("tokens")`)
	r.enter(value[string](r, `document.querySelector(".write .tokens").innerText`))
	r.sees("What the next request takes")
	r.until(`document.querySelector("dialog row-list [role=listitem]")?.innerText.startsWith("1 user: in, ")`)
	r.accessible("what becomes of messages")
	r.tab(value[string](r, `document.querySelector("dialog row-list [role=listitem]").innerText.replace(/\s+/g, " ")`))
	r.keys(kb.ArrowDown)
	r.keeps(`document.activeElement.innerText.startsWith("2 assistant: in, ")`)
	r.keys(kb.Escape)
	r.keeps(`!document.querySelector("dialog") && document.activeElement.title.endsWith("what becomes of each message")`)
}

// TestSmallScreenByKeyboard: on a small screen the list of conversations opens over the rest and closes again, and the focus goes with it.
func TestSmallScreenByKeyboard(t *testing.T) {
	r := open(t, trip(t))
	r.size(360, 800)
	r.sees("To Rome.")
	r.tab("Conversations")
	r.keys(kb.Enter)
	r.until(`document.querySelector("#side").checkVisibility() && document.querySelector("#menu").getAttribute("aria-expanded") === "true"`)
	r.tab("Search")
	r.keys(kb.Escape)
	r.keeps(`!document.querySelector("#side").checkVisibility() && document.querySelector("#menu").getAttribute("aria-expanded") === "false"`)
	r.keys("/")
	r.on("Search")
	r.keys(kb.ArrowDown + kb.Enter)
	r.keeps(`!document.querySelector("#side").checkVisibility() && document.querySelector("main").innerText.includes("To Rome.")`)
	r.enter("Tree")
	r.until(`document.querySelector(".panel").checkVisibility()`)
	r.tab("main 2")
	r.keys(kb.ArrowDown + kb.Enter)
	r.keeps(`document.querySelector("main select").value === "paris"`)
}

// TestFocusComesIntoView: the page itself brings the control that gets the focus into view, whole, on lines that scroll sideways too; browsers differ in whether and when they do.
func TestFocusComesIntoView(t *testing.T) {
	r := open(t, trip(t))
	r.size(360, 800)
	r.sees("To Rome.")
	r.keys(kb.Tab) // from here on the focus shows
	outside := value[[]string](r, `[...document.querySelectorAll(".bar a, .bar button, .bar select")].filter((e) => e.checkVisibility() && !e.disabled).flatMap((e) => {
		for (const line of document.querySelectorAll("header, .bar")) line.scrollLeft = 0;
		document.activeElement.blur();
		e.focus({preventScroll: true, focusVisible: true});
		const box = e.getBoundingClientRect();
		return box.left >= 0 && box.right <= innerWidth + 1 || box.width > innerWidth ? [] : [e.innerText + " from " + box.left + " to " + box.right]; })`)
	if len(outside) > 0 {
		t.Errorf("these have the focus and are not in view: %q", outside)
	}
	if n := value[float64](r, `document.querySelector(".bar").scrollWidth`); n > 360 {
		t.Errorf("the bar is %v wide and not one line that fits", n)
	}
}

// TestErrorsAreSaid: a screen reader is told of errors, and the focus is where something can be done about them.
func TestErrorsAreSaid(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		newContext(t, s, "Sea", user("Look"))
		if _, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"base_url": json.RawMessage(`"http://127.0.0.1:1/v1"`), "model": json.RawMessage(`"plain"`), "retries": json.RawMessage(`0`)}); err != nil {
			t.Fatal(err)
		}
	})
	r.sees("Look")
	r.keys("w")
	r.on("Message")
	r.keys("Hello")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.said("connection refused")
	r.on("Message")
	r.enter("Ask") // the question is stored: it is not written again
	r.until(`[...document.querySelectorAll("#said p")].filter((p) => p.innerText.includes("connection refused")).length === 2`)
	if n := value[int](r, `document.querySelectorAll("main article[data-id]").length`); n != 2 {
		t.Errorf("a question that was asked again makes %d messages", n)
	}
	r.tab("Message")
	r.keys("Once more")
	r.asks("red", "blue")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.said("No answer on red: ")
	r.said("No answer on blue: ")
	r.until(`![...document.querySelectorAll("form button")].find((b) => b.innerText === "Stop").checkVisibility()`)
	r.until(`document.querySelectorAll(".answers .foot p.bad").length === 2`)
	r.accessible("failed answers")
	r.enter("Conversation")
	r.tab("Settings")
	r.keys(kb.Enter)
	r.on("One KEY=VALUE on each line; to remove a setting, remove its line")
	r.keys("nonsense=1\n")
	r.enter("Save")
	r.until(`document.querySelector("dialog [role=alert]")?.innerText.includes("nonsense")`)
	r.on("One KEY=VALUE on each line; to remove a setting, remove its line") // with what was written
	r.keys(kb.Escape)
	r.on("Conversation")
	r.met("status of 400")
}
