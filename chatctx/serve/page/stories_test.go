package page_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	_ "github.com/chatctx/chatctx/chatctx/exchange/all"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func commit(t *testing.T, b *chatctx.Batch, fill func(*chatctx.Batch)) *record.Committed {
	t.Helper()
	fill(b)
	done, err := b.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func newContext(t *testing.T, s *chatctx.Store, title string, messages ...*chatctx.Message) *chatctx.ChatContext {
	t.Helper()
	c, err := s.New(t.Context(), record.NewContext{Title: title, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func user(text string) *chatctx.Message      { return pool.NewText(pool.User, text) }
func assistant(text string) *chatctx.Message { return pool.NewText(pool.Assistant, text) }

// trip is a conversation with two branches.
func trip(t *testing.T) func(*chatctx.Store) {
	return func(s *chatctx.Store) {
		t.Helper()
		c := newContext(t, s, "A trip", user("Where do we go?"), assistant("To **Rome**.\n\n| day | place |\n| --- | ---: |\n| 1 | Forum |\n\n```go\nfunc main() {}\n```\n<script>alert(1)</script>"))
		commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Fork("paris", chatctx.ForkOptions{At: "@1", Stay: true}) })
		commit(t, c.Begin("paris"), func(b *chatctx.Batch) { b.Append(assistant("To Paris.")) })
	}
}

// provider starts a server that speaks Chat Completions, and answers which model it is.
func provider(t *testing.T, s *chatctx.Store) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model string }
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		w.Header().Set("Content-Type", "text/event-stream")
		if bytes.Contains(raw, []byte("Please look")) {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":\"sea\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
			return
		}
		for _, word := range []string{"My", " name", " is ", body.Model, "."} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(web.Close)
	address, _ := json.Marshal(web.URL + "/v1")
	if _, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"base_url": address, "model": json.RawMessage(`"plain"`), "prices": json.RawMessage(`{"red": {"input": 1, "output": 2}}`)}); err != nil {
		t.Fatal(err)
	}
}

func TestAConversationIsShown(t *testing.T) {
	r := open(t, trip(t))
	r.sees("To Rome.")
	r.sees("<script>alert(1)</script>")
	r.sees("paris  +1")
	r.until(`document.querySelector(".write .tokens")?.innerText.endsWith("tokens")`)
	r.click(".write", value[string](r, `document.querySelector(".write .tokens").innerText`))
	r.sees("This conversation cost nothing so far")
	r.accessible("the window")
	r.click("dialog", "Close")
	r.shot("wide")
	r.accessible("a conversation")
	r.click("main", "The next branch")
	r.sees("To Paris.")
	r.gone("To Rome.")
	for _, width := range []int64{360, 2560} {
		r.size(width, 800)
		r.sees("To Paris.")
		if wider := value[int](r, "document.documentElement.scrollWidth - innerWidth"); wider > 0 {
			t.Errorf("at a width of %d the page is %d pixels wider", width, wider)
		}
		r.shot(fmt.Sprint(width))
		r.accessible(fmt.Sprint("at ", width))
	}
}

// TestExploring: import, find, fork, ask two models, compare, take, undo.
func TestExploring(t *testing.T) {
	r := open(t, func(s *chatctx.Store) { provider(t, s) })
	r.sees("This store is empty")
	r.accessible("an empty store")
	r.drop(chatGPT(t))
	r.click("dialog", "Open")
	r.sees("The answer is in the harbour")

	r.types("input[type=search]", "harb") // a beginning is enough
	r.until(`document.querySelector("#side mark")?.textContent === "harbour"`)
	r.types("input[type=search]", "")

	r.click("main", "Branch here")
	r.until(`document.querySelector("main select").value === "main.2"`)

	r.types("form textarea", "What is your name?")
	r.asks("red", "blue")
	r.until(`/^sending costs about 0\.\d+ USD, /.test(document.querySelector(".price").title)`)
	r.click("form", "Send Ctrl ↵")
	r.until(`document.querySelectorAll(".answers section").length === 2 && document.querySelector(".answers").innerText.includes("My name is red.") && document.querySelector(".answers").innerText.includes("My name is blue.")`)
	r.until(`document.querySelectorAll(".answers .foot button").length === 2`)
	r.accessible("two answers")
	r.shot("answers")
	for _, fault := range value[[]string](r, `(() => { const all = document.querySelector(".answers"), box = (e) => e.getBoundingClientRect(), faults = [], [one, two] = all.querySelectorAll("section");
		if (all.scrollWidth > all.clientWidth) faults.push("they scroll sideways");
		if (box(all.previousSibling).bottom > box(one).top) faults.push("the controls are not above them");
		if (box(one).top !== box(two).top || Math.abs(box(one).width - box(two).width) > 1 || box(two).right > box(all).right) faults.push("they do not share the width");
		return faults; })()`) {
		t.Errorf("two answers: %s", fault)
	}
	value[any](r, `app.go({view: "compare", context: app.conversation.context, refs: ["red", "blue"]})`)
	r.until(`document.querySelector("td ins.added")?.textContent === "blue" && document.querySelector("td del.removed")?.textContent === "red"`)
	r.shot("compare")
	r.accessible("compare")

	r.click("main thead th:last-child", "Take this answer")
	r.sees("has this answer now")
	r.until(`document.querySelector("main select").value === "red"`)
	r.until(`[...document.querySelectorAll("main article")].some((a) => a.innerText.includes("My name is blue."))`)
	r.click("#status", "Undo")
	r.until(`[...document.querySelectorAll("main article")].some((a) => a.innerText.includes("My name is red."))`)
}

// chatGPT makes an export of ChatGPT with one conversation.
func chatGPT(t *testing.T) string {
	t.Helper()
	node := func(parent, role, text, child string) map[string]any {
		n := map[string]any{"parent": parent, "children": []string{child}, "message": map[string]any{"id": text, "author": map[string]any{"role": role}, "create_time": 1700000000.0, "content": map[string]any{"content_type": "text", "parts": []string{text}}, "metadata": map[string]any{}}}
		if child == "" {
			n["children"] = []string{}
		}
		return n
	}
	conversations := []any{map[string]any{"id": "c1", "conversation_id": "c1", "title": "Boats", "create_time": 1700000000.0, "update_time": 1700000100.0, "current_node": "b",
		"mapping": map[string]any{"root": map[string]any{"id": "root", "parent": nil, "children": []string{"a"}, "message": nil}, "a": node("root", "user", "Where is the boat?", "b"), "b": node("a", "assistant", "The answer is in the harbour.", "")}}}
	path := filepath.Join(t.TempDir(), "export.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	w, err := z.Create("conversations.json")
	if err == nil {
		err = json.NewEncoder(w).Encode(conversations)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// drop drops a file on the page.
func (r *reader) drop(path string) {
	r.t.Helper()
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: []string{path}, DragOperationsMask: 1}
	for _, step := range []input.DispatchDragEventType{"dragEnter", "dragOver", "drop"} {
		r.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, input.DispatchDragEvent, input.DispatchDragEventParams{Type: step, X: 700, Y: 400, Data: data})
			return err
		}))
	}
}

// TestBeginning: an empty store looks for conversations of other tools and imports them; the store's operations are undone and redone.
func TestBeginning(t *testing.T) {
	r := open(t, func(*chatctx.Store) {})
	r.sees("This store is empty")
	file := chatGPT(t)
	r.mu.Lock()
	r.found = []exchange.Place{{Tool: "chatgpt", Path: file, Files: 1, Bytes: 1000}}
	r.mu.Unlock()
	r.click("main", "Find conversations of other tools on this machine")
	r.accessible("what tools keep")
	r.click("dialog", "Import")
	r.click("dialog", "Open")
	r.sees("The answer is in the harbour")
	value[any](r, `location.hash = "history"`)
	r.sees("What was done in the store")
	r.click("main", "Undo")
	r.click("main", "Redo")
	r.until(`document.querySelectorAll("main tbody tr").length === 3`)
}

// TestACallWaits: a call waits, is looked at, changed, approved, run.
func TestACallWaits(t *testing.T) {
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
		b.Append(&chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{"at":"sea\u202e","how":"` + strings.Repeat("far ", 6000) + `"}`)}}})
	})
	r.until(`document.querySelector("#views .badge").textContent === "1" && document.querySelector("#views .badge").checkVisibility()`)
	r.click("#views", "Approvals 1")
	r.sees("No rule decides this call.")
	r.sees("sea⟨U+202E⟩")
	r.until(`[...document.querySelectorAll(".queue pre")].some((p) => p.textContent.length === 24000)`)
	r.shot("approvals")
	r.accessible("approvals")
	r.until(`[...document.querySelectorAll(".queue button")].find((b) => b.innerText === "Approve, run, go on").ariaDisabled === "true"`) // its end was not on the screen
	r.later()
	r.click(".queue", "Change…")
	r.types(".queue textarea", `{"at":"land`)
	r.sees("This is not JSON")
	r.types(".queue textarea", `{"at":"land"}`)
	r.until(`[...document.querySelectorAll(".queue .runs pre")].some((p) => p.textContent === "echo seen: land")`)
	changed := func(within, by string) { // what runs, and what the model asked for beside it, with who changed it
		r.until(`[...document.querySelectorAll("` + within + ` pre")].some((p) => p.textContent.includes("land") && !p.closest("details"))`)
		r.until(`[...document.querySelectorAll("` + within + ` details.changed")].some((d) => d.querySelector("summary").textContent.startsWith("Changed by ` + by + `") && d.textContent.includes("sea"))`)
	}
	changed(".queue", "you")
	r.accessible("a changed call")
	r.decides(".queue", "Approve, run, go on")
	r.sees("No call waits for you.")
	r.sees("look ran; that cannot be undone")
	call, err := r.store.Call(t.Context(), c.ID.String(), "main", "a")
	if err != nil {
		t.Fatal(err)
	}
	if string(call.RunArguments()) != `{"at":"land"}` || call.Status != pool.Approved {
		t.Errorf("the call runs with %s and is %s", call.RunArguments(), call.Status)
	}
	r.click("#status", "Look at it")
	r.until(`[...document.querySelectorAll("main article details")].some((d) => d.textContent.includes("seen: land"))`)
	changed("main article .call", "person ann")
	r.sees("My name is plain.")
}

// TestManyCallsWait: of however many calls wait, the first are shown at once, without waiting for their number, and each can be scrolled to.
func TestManyCallsWait(t *testing.T) {
	calls := make([]pool.Call, 130)
	for i := range calls {
		calls[i] = pool.Call{ID: fmt.Sprint("c", i), Tool: "look", Arguments: json.RawMessage(fmt.Sprintf(`{"at":"place-%d"}`, i))}
	}
	r := open(t, func(s *chatctx.Store) {
		newContext(t, s, "Sea", user("Look"), &chatctx.Message{Role: pool.Assistant, Calls: calls})
	})
	r.until(`document.querySelector("#views .badge").textContent === "130"`)
	value[any](r, `(() => { const real = window.fetch, holds = (which) => new Promise((yes) => (window[which] = yes)), [all, first] = [holds("letAll"), holds("letFirst")];
		window.fetch = async (...a) => { if (a[0].includes("/calls?")) await (a[0].includes("limit=1000") ? all : first); return real(...a); }; })()`)
	r.click("#views", "Approvals 130")
	r.until(`!document.querySelector("main").innerText.includes("Look") && !document.querySelector("main textarea")`)
	value[any](r, "letFirst()")
	r.until(`document.querySelectorAll(".queue > *").length === 20`)
	r.accessible("many calls")
	value[any](r, "letAll()")
	for shown := 40; shown <= 120; shown += 20 {
		r.until(fmt.Sprintf(`(document.querySelector(".view").scrollTop = 1e6, document.querySelectorAll(".queue > *").length >= %d)`, shown))
	}
	r.until(`document.querySelectorAll(".queue > *").length === 130 && !document.querySelector("main").innerText.includes("Show more")`)
	if n := value[int](r, `new Set([...document.querySelectorAll(".queue > *")].map((e) => e.dataset.key)).size`); n != 130 {
		t.Errorf("%d of 130 calls are shown", n)
	}
	value[any](r, `document.querySelector(".queue > :last-child .end").scrollIntoView()`)
	r.decides(".queue > :last-child", "Approve")
	r.until(`document.querySelector("#views .badge").textContent === "129"`)
}

// TestNoticeOfACallGoes: a notice that a call waits goes when the call was decided.
func TestNoticeOfACallGoes(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		newContext(t, s, "Sea", user("Hello"))
		provider(t, s)
		if _, err := s.PutTool(t.Context(), record.Tool{Name: "look", Command: []string{"echo", "{at}"}}); err != nil {
			t.Fatal(err)
		}
	})
	r.sees("Hello")
	r.types("form textarea", "Please look")
	r.click("form", "Send Ctrl ↵")
	r.until(`document.querySelector("#status").innerText.includes("A call waits for you.")`)
	r.click("#views", "Approvals 1")
	r.decides(".queue", "Approve, run, go on")
	r.until(`!document.querySelector("#status").innerText.includes("A call waits for you.")`)
}

// TestTwoTabs: what is done in one tab is seen in another: a message, and a decision, which takes a call away there and says so.
func TestTwoTabs(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		c := newContext(t, s, "Sea", user("Hello"))
		commit(t, c.Begin(""), func(b *chatctx.Batch) {
			b.Append(&chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{}`)}, {ID: "b", Tool: "listen", Arguments: json.RawMessage(`{}`)}}})
		})
		provider(t, s)
	})
	two := r.beside()
	for _, tab := range []*reader{r, two} {
		tab.sees("Hello")
		value[any](tab, `location.hash = "#/calls"`)
		tab.until(`document.querySelectorAll(".queue > *").length === 2`)
	}
	r.decides(".queue", "Approve")
	for _, tab := range []*reader{r, two} {
		tab.until(`document.querySelectorAll('.queue[data-state="pending"] > *').length === 1 && document.querySelector("#views .badge").textContent === "1"`)
	}
	two.until(`document.querySelector("#status").innerText.includes("A call that was here waits no more.") && document.querySelector("#said").innerText.includes("waits no more")`)
	if said := value[string](r, `document.querySelector("#status").innerText`); strings.Contains(said, "waits no more") {
		t.Errorf("who decides is told of it: %s", said)
	}
	for _, tab := range []*reader{r, two} {
		tab.first()
		tab.sees("Hello")
	}
	r.types("form textarea", "From one tab")
	r.click("form", "More ways to send")
	r.click("body", "Add without sending")
	two.sees("From one tab")
}

// TestFocusElsewhere: a decision that ends after the person has gone to another view leaves the focus there.
func TestFocusElsewhere(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		c := newContext(t, s, "Sea", user("Hello"))
		commit(t, c.Begin(""), func(b *chatctx.Batch) {
			b.Append(&chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{}`)}}})
		})
	})
	r.sees("Hello")
	value[any](r, `location.hash = "#/calls"`)
	r.until(`document.querySelectorAll(".queue > *").length === 1`)
	free := r.slow("/decide")
	r.decides(".queue", "Approve")
	value[any](r, `location.hash = "#/history"`)
	r.sees("What was done")
	value[any](r, `document.querySelector("#side input").focus()`)
	free()
	r.until(`document.querySelector("#views .badge").hidden`)
	if at := value[string](r, `new Promise((done) => setTimeout(() => done(document.activeElement.closest("#side")?.id ?? document.activeElement.outerHTML), 100))`); at != "side" {
		t.Errorf("the focus went to %s", at)
	}
}

// TestOthersAdd: another program adds messages while the person looks.
func TestOthersAdd(t *testing.T) {
	r := open(t, trip(t))
	r.sees("To Rome.")
	others, err := chatctx.Open(filepath.Join(r.dir, "s.db"), chatctx.Options{Program: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	c, err := others.Context(t.Context(), "A trip")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	commit(t, c.Begin("main"), func(b *chatctx.Batch) { b.Append(user("And when?")) })
	r.sees("And when?")
	t.Logf("it was seen after %v", time.Since(begun).Round(time.Millisecond))
	newContext(t, others, "Another", user("Hello"))
	r.until(`document.querySelector("#side").innerText.includes("Another")`)
}

// TestLabels: pinned conversations come first, archived ones only under their label.
func TestLabels(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		for _, title := range []string{"old", "kept", "middle", "newest"} {
			c := newContext(t, s, title, user("Hello"))
			if label := map[string]string{"old": "pinned", "kept": "archived"}[title]; label != "" {
				commit(t, c.Begin(""), func(b *chatctx.Batch) { b.Label(label) })
			}
		}
	})
	titles := `[...document.querySelectorAll("#side .title")].map((e) => e.textContent).join(" ")`
	r.until(titles + ` === "old newest middle"`)
	r.click("#side .labels", "archived")
	r.until(titles + ` === "kept"`)
	r.click("#side .labels", "archived")
	r.until(titles + ` === "old newest middle"`)
}

// TestLabelsAfterAnError: labels are taken away one by one; after an error the dialog goes on with those that are left.
func TestLabelsAfterAnError(t *testing.T) {
	var c *chatctx.ChatContext
	r := open(t, func(s *chatctx.Store) {
		c = newContext(t, s, "Sea", user("Water"))
		commit(t, c.Begin(""), func(b *chatctx.Batch) { b.Label("one") })
		commit(t, c.Begin(""), func(b *chatctx.Batch) { b.Label("two") })
	})
	r.sees("Water")
	r.click("main", "Conversation")
	r.click("body", "Labels")
	value[any](r, `(window.real = window.fetch, window.fetch = (p, o) => String(p).includes("/labels/two/remove") ? Promise.reject(new TypeError("gone")) : real(p, o), null)`)
	value[any](r, `(document.querySelector("dialog input").value = "", null)`)
	r.click("dialog", "Save")
	r.until(`document.querySelector("dialog [role=alert]")?.innerText.includes("does not answer")`)
	value[any](r, `(window.fetch = real, null)`)
	r.click("dialog", "Save")
	r.until(`!document.querySelector("dialog")`)
	if info, err := c.Info(t.Context()); err != nil || len(info.Labels) != 0 {
		t.Errorf("it has the labels %q, %v", info.Labels, err)
	}
}

func TestViewsAreAccessible(t *testing.T) {
	r := open(t, trip(t))
	for name, shows := range map[string]string{"History": "What was done", "Figures": "Tokens and cost", "Trash": "The trash is empty."} {
		r.click("#side", name)
		r.sees(shows)
		r.accessible(name)
		r.shot(name)
	}
	r.click("#side", "New")
	r.accessible("a dialog")
	r.fills("Title", "Mine")
	r.click("dialog", "Begin")
	r.until(`document.querySelector("main h1").innerText === "Mine"`)
}

// TestHostileText: text of models and files controls nothing.
func TestHostileText(t *testing.T) {
	evil := `<img src=x onerror="document.title='owned'"> [click](javascript:document.title='owned') ![i](https://example.org/spy.png) <iframe src="//example.org"></iframe>`
	r := open(t, func(s *chatctx.Store) {
		newContext(t, s, "<b>title</b> \u202egnp", user(evil), assistant(evil+"\n\n<details open ontoggle=alert(1)>"))
	})
	r.sees("<b>title</b> ⟨U+202E⟩gnp")
	r.sees(`onerror=`)
	r.sees("[i: https://example.org/spy.png]")
	if n := value[int](r, `document.querySelectorAll("main img, main iframe, main a[href^=javascript], main details[ontoggle]").length`); n != 0 {
		t.Errorf("%d elements came from text", n)
	}
	if title := value[string](r, "document.title"); strings.Contains(title, "owned") {
		t.Error("text ran")
	}
}

// TestLongBranch: of ten thousand messages the page contains only the visible ones, and requests little more.
func TestLongBranch(t *testing.T) {
	r := open(t, func(s *chatctx.Store) {
		messages := make([]*chatctx.Message, 10_000)
		for i := range messages {
			messages[i] = user(fmt.Sprintf("Message %d. %s", i+1, strings.Repeat("word ", i%90)))
		}
		newContext(t, s, "Long", messages...)
	})
	r.sees("Message 10000.")
	if n := value[int](r, `document.querySelectorAll("main article").length`); n > 60 {
		t.Errorf("%d messages are in the page", n)
	}
	if n := value[int](r, `performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/")).reduce((n, e) => n + e.decodedBodySize, 0)`); n > 400_000 {
		t.Errorf("%d bytes came for the first view", n)
	}
	value[any](r, `document.querySelector('row-list[aria-label="Messages"]').focusRow(0)`)
	r.sees("Message 1.")
	value[any](r, `document.querySelector('row-list[aria-label="Messages"]').focusRow(9999)`)
	r.until(`(() => { const l = document.querySelector('row-list[aria-label="Messages"]').getBoundingClientRect(), m = document.activeElement.getBoundingClientRect(); return document.activeElement.innerText.includes("Message 10000.") && m.bottom <= l.bottom + 1 && m.bottom > l.top; })()`)
}
