package page_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

const branchShown = `document.querySelector("main select").value`

// TestKeysActInOrder: keys that are typed before the server answers act in their order, on what each of them is meant for.
func TestKeysActInOrder(t *testing.T) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) {
		messages := make([]*chatctx.Message, 200)
		for i := range messages {
			messages[i] = user(fmt.Sprintf("Stone %d.%s", i+1, strings.Repeat(" Far", i%40)))
		}
		c = newContext(t, s, "Sea", messages...)
		for _, name := range []string{"one", "two"} {
			commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Fork(name, chatctx.ForkOptions{At: "@199", Stay: true}) })
			commit(t, c.Begin(name), func(b *chatctx.Batch) { b.Append(user("On " + name)) })
		}
	})
	r.sees("Stone 200.")
	r.tab("You, message 200")

	// on a row that is not read yet
	free := r.slow("/messages")
	r.keys(kb.Home + "j" + "f")
	free()
	r.until(branchShown + ` === "main.2"`)
	if info, err := c.Branch(t.Context(), "main.2"); err != nil || info.Messages != 2 {
		t.Errorf("Home, j, f forks %+v, %v", info, err)
	}

	// through the ways at a fork
	r.first()
	r.until(branchShown + ` === "main"`)
	value[any](r, `document.querySelector("row-list[aria-label=Messages]").focusRow(199)`)
	r.on("You, message 200")
	r.until(`document.activeElement.querySelector(".ways")`)
	ways := value[[]string](r, `[...document.activeElement.querySelectorAll(".ways [title]")].map((b) => b.title.split(":")[0])`)
	free = r.slow("/contexts/")
	r.keys(kb.ArrowRight + kb.ArrowRight)
	free()
	at := 0
	for i, w := range ways {
		if w == "main" {
			at = i
		}
	}
	r.until(branchShown + ` === ` + quoted(ways[(at+2)%len(ways)]))

	// in the tree, into a branch that is being opened
	r.tab("main 200")
	free = r.slow("/contexts/")
	r.keys(kb.ArrowRight + kb.ArrowDown + kb.ArrowDown + kb.Enter)
	free()
	r.until(branchShown + ` === "main" && location.hash.endsWith("/main/2")`)
	r.on("You, message 2")
}

// TestTypedAheadOfAPlace: search, open and write in one go: the message is on the branch that was asked for last.
func TestTypedAheadOfAPlace(t *testing.T) {
	var sea, land *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) {
		provider(t, s)
		land = newContext(t, s, "Land", user("A harbour is there"))
		sea = newContext(t, s, "Sea", user("Water"))
	})
	r.sees("Water")
	free := r.slow("/search")
	r.keys("/")
	r.on("Search")
	r.keys("harb" + kb.ArrowDown)
	r.keys(kb.Enter)
	free()
	r.until(`document.querySelector("main h1").innerText === "Land"`)

	r.until(`document.activeElement.tagName === "ARTICLE"`)
	r.tab("Search")
	r.keys("a", chromedp.ModifierCtrl)
	r.keys("wat" + kb.ArrowDown)
	r.until(`document.querySelector("#side mark")?.textContent === "Water"`)
	free = r.slow("/contexts/")
	r.keys(kb.Enter + "w")
	r.on("Message")
	r.keys("Is it deep?")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	free()
	r.until(`document.querySelector("main h1").innerText === "Sea"`)
	r.until(`document.querySelectorAll("main article").length === 3`)
	for c, want := range map[*chatctx.ChatContext]int{land: 1, sea: 3} {
		if info, err := c.Branch(t.Context(), "main"); err != nil || info.Messages != want {
			t.Errorf("%s has %+v, %v and not %d messages", c.ID, info, err, want)
		}
	}
}

// twice clicks a button two times at once.
func (r *reader) twice(within, name string) {
	r.t.Helper()
	r.until(fmt.Sprintf(`(() => { const b = [...document.querySelectorAll(%s + " button")].find((b) => b.innerText.startsWith(%s) && !b.disabled && b.checkVisibility()); b?.click(); b?.click(); return Boolean(b); })()`, quoted(within), quoted(name)))
}

// TestPressedTwice: what is pressed twice is done once, and no error comes of it.
func TestPressedTwice(t *testing.T) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) {
		provider(t, s)
		c = newContext(t, s, "Sea", user("Look"), &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{}`)}, {ID: "b", Tool: "look", Arguments: json.RawMessage(`{}`)}}})
	})
	r.sees("Look")
	free := r.slow("/contexts/")
	r.types("form textarea", "A note")
	value[any](r, `(app.conversation.composer.add(), app.conversation.composer.add(), 0)`)
	free()
	r.sees("A note")
	r.until(`document.querySelectorAll("main article").length === 3`)

	r.click("#views", "Approvals 2")
	r.sees("Calls that wait")
	r.until(`[...document.querySelectorAll(".queue .main")].every((b) => b.ariaDisabled !== "true")`)
	r.later()
	free = r.slow("/decide")
	r.twice(".queue", "Approve")
	free()
	r.until(`document.querySelectorAll("[data-state=pending] > *").length === 1 && document.querySelectorAll("[data-state=approved] > *").length === 1`)
	r.later()
	r.click("[data-state=pending]", "Deny…")
	free = r.slow("/decide")
	r.twice("dialog", "Deny")
	free()
	r.sees("No call waits for you.")

	r.click("#side", "New")
	r.fills("Title", "Land")
	free = r.slow("/contexts")
	r.twice("dialog", "Begin")
	free()
	r.until(`document.querySelector("main h1")?.innerText === "Land"`)
	r.types("form textarea", "Who are you?")
	r.twice("form", "Send")
	r.until(`document.querySelectorAll("main article").length === 2`)

	n := 0
	for _, err := range r.store.Contexts(t.Context(), record.ListOptions{}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("there are %d conversations", n)
	}
	if info, err := c.Branch(t.Context(), "main"); err != nil || info.Messages != 4 { // with the result of the denied call
		t.Errorf("the branch is %+v, %v", info, err)
	}
	if notices := value[string](r, `document.querySelector("#status").innerText`); notices != "" {
		t.Errorf("it says %q", notices)
	}
}

// TestViewsThatComeLate: a view that comes when the reader has gone elsewhere does not take the place of what is looked at, and going back leaves dialogs.
func TestViewsThatComeLate(t *testing.T) {
	r := open(t, trip(t))
	r.sees("To Rome.")
	free := r.slow("/cost")
	r.click("#side", "Figures")
	r.until(`document.querySelector("main").innerText.includes("Loading")`)
	r.click("#side", "chatctx")
	r.sees("To Rome.")
	was := value[int](r, `performance.getEntriesByType("resource").filter((e) => e.name.includes("/cost")).length`)
	free()
	r.until(fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/cost")).length >= %d + 3`, was))
	value[any](r, `new Promise((yes) => requestAnimationFrame(() => requestAnimationFrame(yes)))`)
	r.sees("To Rome.")
	r.gone("Tokens and cost")

	r.click("main", "The next branch")
	r.sees("To Paris.")
	r.click("main", "A trip")
	r.sees("Rename the conversation")
	value[any](r, `history.back()`)
	r.sees("To Rome.")
	r.until(`!document.querySelector("dialog")`)
	value[any](r, `history.back()`)
	r.until(`document.querySelector("main").innerText.includes("Tokens and cost")`)
	value[any](r, `history.back()`)
	r.sees("To Rome.")
}

// TestMessageDuringAnAnswer: a message that is sent while an answer is being written waits for it, and is answered then.
func TestMessageDuringAnAnswer(t *testing.T) {
	gate := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		raw, _ := io.ReadAll(q.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Well,"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-gate:
		case <-q.Context().Done():
		}
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":" %d."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", strings.Count(string(raw), `"user"`))
	}))
	t.Cleanup(model.Close)
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) {
		c = newContext(t, s, "Sea")
		if _, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"base_url": json.RawMessage(quoted(model.URL + "/v1")), "model": json.RawMessage(`"plain"`)}); err != nil {
			t.Fatal(err)
		}
	})
	r.until(`document.querySelector("main h1")?.innerText === "Sea"`)
	r.keys("w")
	r.on("Message")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.sees("Write a message first.")
	r.click("#status", "Close")
	r.keys("First")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.until(`document.querySelector(".answers")?.innerText.includes("Well,")`)
	r.until(`document.querySelector("main article")?.innerText.includes("First")`) // the question is to be seen
	r.keys("Second")
	r.keys(kb.Enter, chromedp.ModifierCtrl)
	r.said("The message waits for the answer that is being written.")
	r.sees("1 message waits")
	r.shot("waits")
	close(gate)
	r.until(`document.querySelectorAll("main article").length === 4 && document.querySelectorAll("main article")[3].innerText.includes("Well, 2.")`)
	r.gone("1 message waits")
	if info, err := c.Branch(t.Context(), "main"); err != nil || info.Messages != 4 {
		t.Errorf("the branch is %+v, %v", info, err)
	}
}
