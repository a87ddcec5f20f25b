package page_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// boat opens an empty conversation whose messages go to the models red and blue; the focus is in the field.
func boat(t *testing.T) (*reader, *chatctx.ChatContext) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) { provider(t, s); c = newContext(t, s, "Boat") })
	r.until(`document.querySelector("main h1")?.innerText === "Boat"`)
	r.asks("red", "blue")
	r.keys("w")
	r.on("Message")
	return r, c
}

// path waits until the messages of the branch that is read are these.
func (r *reader) path(texts ...string) {
	r.t.Helper()
	r.until(`JSON.stringify([...document.querySelectorAll("main article[data-id] .body")].map((b) => b.innerText.trim())) === ` + quoted(list(texts)))
}

func list(texts []string) string {
	out := "["
	for i, s := range texts {
		if i > 0 {
			out += ","
		}
		out += quoted(s)
	}
	return out + "]"
}

const complete = `document.querySelectorAll(".answers .foot button").length === 2`

// TestGoOnWithTheSecondAnswer: two models are asked, and the branch goes on with the second answer; the other one is an arrow away. With the keyboard: type, Ctrl-Enter, ↑, 2.
func TestGoOnWithTheSecondAnswer(t *testing.T) {
	for _, by := range []string{"mouse", "keys"} {
		t.Run(by, func(t *testing.T) {
			r, c := boat(t)
			r.keys("What is your name?")
			if by == "mouse" {
				r.click("form", "Send Ctrl ↵")
				r.until(complete)
				r.click(".answers", "Go on with this 2")
			} else {
				r.keys(kb.Enter, chromedp.ModifierCtrl)
				r.until(complete)
				r.on("Message")
				r.keys(kb.ArrowUp)
				r.on("Answers")
				r.keys("2")
			}
			r.path("What is your name?", "My name is blue.")
			r.until(`document.querySelector("#status").innerText.includes("Went on with blue’s answer")`)
			if info, err := c.Branch(t.Context(), "main"); err != nil || info.Messages != 2 {
				t.Errorf("main is %+v, %v", info, err)
			}
			r.click(".strip", "The next branch")
			r.path("What is your name?", "My name is red.")
			r.accessible("an alternative")
		})
	}
}

// TestGoOnWithoutChoosing: who writes on while answers are open goes on from the first complete one, which the line above the field names before; one Undo takes both back.
func TestGoOnWithoutChoosing(t *testing.T) {
	r, _ := boat(t)
	r.keys("What is your name?")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.until(complete)
	r.until(`document.querySelector(".write .to").innerText.replace(/\s+/g, " ").startsWith("Goes on from red ’s answer")`)
	r.asks("plain")
	r.keys("And why?")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.path("What is your name?", "My name is red.", "And why?", "My name is plain.")
	r.said("Went on with red’s answer")
	r.click("#status", "Undo")
	r.path("What is your name?")
	r.until(complete)
}

// TestOpenAnswersAreInTheStore: answers that nobody has chosen stand side by side also after a reload, in another tab, and when another program asked.
func TestOpenAnswersAreInTheStore(t *testing.T) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) { c = newContext(t, s, "Boat", user("Which name?")) })
	r.sees("Which name?")
	r.sees("Not answered yet")
	for _, name := range []string{"one", "two", "three", "four"} { // as ask does in a shell
		commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Fork(name, chatctx.ForkOptions{At: record.Ref("@1"), Stay: true}) })
		commit(t, c.Begin(name), func(b *chatctx.Batch) { b.Append(assistant("It is **" + name + "**.")) })
	}
	shown := `[...document.querySelectorAll(".answers section > .text")].map((e) => e.innerText.trim()).sort().join(" ") === "It is four. It is one. It is three. It is two."`
	r.until(shown)
	for _, fault := range value[[]string](r, `(() => { const all = document.querySelector(".answers"), faults = [], box = (e) => e.getBoundingClientRect();
		const seen = [...all.children].filter((c) => box(c).right <= box(all).right + 1).length;
		if (seen > 3) faults.push(seen + " of four are in view"); if (all.scrollWidth <= all.clientWidth) faults.push("they do not scroll"); if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls"); return faults; })()`) {
		t.Error(fault)
	}
	two := r.beside()
	two.until(shown)
	r.do(chromedp.Reload())
	r.until(shown)
}

// TestAlternativeStaysInPlace: switching to another answer and back leaves the message where it is on the screen, and the focus at the arrow.
func TestAlternativeStaysInPlace(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		var all []*chatctx.Message
		for i := range 40 {
			all = append(all, user(fmt.Sprint("Question ", i)), assistant(fmt.Sprint("Answer ", i, "\n\n- a\n- b")))
		}
		c := newContext(t, s, "Long", all...)
		commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Fork("other", chatctx.ForkOptions{At: "@59", Stay: true}) })
		commit(t, c.Begin("other"), func(b *chatctx.Batch) { b.Append(assistant("Quite another answer."), user("More?")) })
	})
	r.sees("Answer 39")
	value[any](r, `document.querySelector('row-list[aria-label="Messages"]').focusRow(59)`)
	r.on("Answer, message 60")
	top := `document.querySelector("main article[aria-posinset='60']").getBoundingClientRect().top`
	was := value[float64](r, top)
	r.keys(kb.Tab)
	r.on("The branch before")
	r.keys(kb.Enter)
	r.until(`document.querySelector("main article[aria-posinset='60']").innerText.includes("Quite another answer.")`)
	r.on("The branch before")
	if now := value[float64](r, top); now-was > 1 || was-now > 1 {
		t.Errorf("the message moved from %v to %v", was, now)
	}
	r.keys(kb.Enter)
	r.until(`document.querySelector("main article[aria-posinset='60']").innerText.includes("Answer 29")`)
	if now := value[float64](r, top); now-was > 1 || was-now > 1 {
		t.Errorf("the message moved from %v to %v", was, now)
	}
	r.keys("v")
	r.until(complete + ` || document.querySelectorAll(".answers section").length === 2`)
	r.on("Answers")
	r.keys("m")
	r.until(`document.querySelector(".answers mark.differs")`)
	r.accessible("marked differences")
	r.keys(kb.Escape)
	r.on("Answer, message 60")
	r.keys("[")
	r.said("No fork comes before this one.")
}

// TestEditAndAskAgain: an edited question is asked on a branch beside, and Undo takes both away; an answer is asked for again beside the old one.
func TestEditAndAskAgain(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		provider(t, s)
		newContext(t, s, "Boat", user("Which name?"), assistant("Kittiwake."), user("Why?"), assistant("It is short."))
	})
	r.sees("It is short.")
	value[any](r, `document.querySelector('row-list[aria-label="Messages"]').focusRow(0)`)
	r.on("You, message 1")
	r.keys("e")
	r.on("New text")
	r.accessible("an edited question")
	r.keys(" A small boat.")
	r.keys(kb.Escape)
	r.sees("Cancel once more")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.path("Which name? A small boat.", "My name is plain.")
	r.click("#status", "Undo")
	r.path("Which name?", "Kittiwake.", "Why?", "It is short.")
	r.until(`app.conversation.branches.length === 1`)

	for at, want := range map[int]string{2: "Kittiwake.", 4: "It is short."} {
		value[any](r, fmt.Sprintf(`document.querySelector('row-list[aria-label="Messages"]').focusRow(%d)`, at-1))
		r.on(fmt.Sprint("Answer, message ", at))
		r.keys("r")
		r.until(`[...document.querySelectorAll(".answers section > .text")].map((e) => e.innerText.trim()).sort().join(" ") === ` + quoted(map[string]string{"Kittiwake.": "Kittiwake. My name is plain.", "It is short.": "It is short. My name is plain."}[want]))
		r.until(complete + ` || document.querySelectorAll(".answers .foot span").length === 1`)
		r.on("Answers")
		r.keys(kb.Escape)
		r.on(fmt.Sprint("Answer, message ", at))
	}
	r.until(`app.conversation.branches.length === 3`)
}

// TestACallIsDecidedInTheTalk: a call is shown with everything that runs where it stands, and one press approves it, runs it, and lets the model go on; a press as it appears decides nothing.
func TestACallIsDecidedInTheTalk(t *testing.T) {
	for _, by := range []string{"mouse", "keys"} {
		t.Run(by, func(t *testing.T) {
			var c *chatctx.ChatContext
			r := open(t, func(s *chatctx.Store) {
				c = newContext(t, s, "Sea", user("Look"), &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{"at":"sea\u202e","how":"` + strings.Repeat("far ", 6000) + `"}`)}}})
				provider(t, s)
				if _, err := s.PutTool(t.Context(), record.Tool{Name: "look", Command: []string{"echo", "seen:", "{at}"}}); err != nil {
					t.Fatal(err)
				}
			})
			const button = `[...document.querySelectorAll("main .call .main")].find((b) => b.innerText === "Approve, run, go on")`
			r.until(button)
			r.sees("sea⟨U+202E⟩")
			r.until(`[...document.querySelectorAll("main .call pre")].some((p) => p.textContent.length === 24000)`)
			r.until(`[...document.querySelectorAll("main .call .runs pre")].some((p) => p.textContent === "echo seen: \"sea⟨U+202E⟩\"")`)
			r.accessible("a call in the talk")
			value[any](r, `(performance.now = () => 0, app.conversation.list.renew().then(() => 0))`) // no time passes until the press
			r.until(button)
			value[any](r, button+`.click()`)
			r.said("Nothing was decided")
			value[any](r, `(performance.now = () => 1e6, 0)`)
			value[any](r, button+`.click()`)
			r.said("scroll to the end")
			if call, err := r.store.Call(t.Context(), c.ID.String(), "main", "a"); err != nil || call.Status != pool.Pending {
				t.Fatalf("the call is %+v, %v", call, err)
			}
			value[any](r, `(document.querySelector("main .call .what").scrollTop = 1e6)`)
			r.until(button + `.ariaDisabled !== "true"`)
			if by == "mouse" {
				value[any](r, button+`.click()`)
			} else {
				value[any](r, `document.querySelector('row-list[aria-label="Messages"]').focusRow(1)`)
				r.on("Answer, message 2")
				r.keys("a")
			}
			r.sees("My name is plain.")
			r.said("look ran; that cannot be undone")
			r.until(`[...document.querySelectorAll("main .call .good")].some((e) => e.innerText.startsWith("ran"))`)
		})
	}
}
