package ui

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// hasty runs a model whose commands take any time: their results may be old when they come, may come in another order, and keys come in between.
type hasty struct {
	t *testing.T
	*model
	r       *rand.Rand
	waiting []tea.Cmd
	come    []tea.Msg
}

// some removes a random element from a list.
func some[T any](r *rand.Rand, list *[]T) T {
	i := r.IntN(len(*list))
	x := (*list)[i]
	*list = append((*list)[:i], (*list)[i+1:]...)
	return x
}

// step runs one command, or takes the result of one; false if there is none.
func (h *hasty) step() bool {
	switch n := len(h.waiting) + len(h.come); {
	case n == 0:
		return false
	case h.r.IntN(n) < len(h.waiting):
		switch msg := some(h.r, &h.waiting)().(type) {
		case nil, tea.QuitMsg:
		case tea.BatchMsg:
			h.waiting = append(h.waiting, msg...)
		default:
			h.come = append(h.come, msg)
		}
	default:
		h.take(some(h.r, &h.come))
	}
	return true
}

func (h *hasty) take(msg tea.Msg) {
	if _, cmd := h.Update(msg); cmd != nil {
		h.waiting = append(h.waiting, cmd)
	}
}

// rest runs until nothing waits any more. That has to end.
func (h *hasty) rest() {
	for range 20_000 {
		if !h.step() {
			return
		}
	}
	h.t.Fatal("the program reads on and on")
}

// told tells the program of changes as the watch does: some time after they were made, and perhaps with others.
func (h *hasty) told() {
	if h.conv != nil {
		h.come = append(h.come, changesMsg{[]record.Change{{Context: h.conv.c.ID}}})
	}
}

var wholeID = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f-]{27}\b`)

// plain returns a screen without styles and without what differs from run to run.
func plain(m *model) string {
	return aTime.ReplaceAllString(anID.ReplaceAllString(wholeID.ReplaceAllString(ansi.Strip(m.View().Content), "xxxxxxxx"), "xxxxxxxx"), "yyyy-mm-dd hh:mm")
}

// typing returns a random walk of keys that change and look.
func typing(r *rand.Rand, n int) []string {
	words := [][]string{{"up"}, {"down"}, {"down"}, {"k"}, {"j"}, {"g"}, {"G"}, {"["}, {"]"}, {"h"}, {"l"}, {"@"}, {"s"}, {"s"}, {"u"}, {"u"}, {"U"}, {"U"}, {"d"}, {"p"}, {"t"}, {"M"}, {"R"}, {"D"}, {"m"}, {"c", "j", "q"},
		{"J", "j", "u", "q"}, {"J", "q"}, {"J", "down", "enter"}, {"a", "esc"}, {"?", "q"}, {"v"}, {"enter", "j", "esc"}, {"tab", "tab", "enter"}, {"esc", "enter"}, {"n"}}
	var keys []string
	for i := range n {
		name := fmt.Sprint("n", i)
		switch k := r.IntN(len(words) + 6); {
		case k < len(words):
			keys = append(keys, words[k]...)
		default:
			keys = append(keys, [][]string{{"f", name, "enter"}, {"f", name, "enter"}, {"e", name, "enter"}, {"T", name, "enter"}, {"b", "ctrl+u", name, "enter"}, {"/", "ctrl+u", "flour", "enter", "down", "enter"}}[k-len(words)]...)
		}
	}
	return keys
}

// messages returns the keys as messages; a word is pasted.
func messages(keys []string) []tea.Msg {
	var out []tea.Msg
	for _, k := range keys {
		if k[0] == 'n' && len(k) > 1 || k == "flour" {
			out = append(out, tea.PasteMsg{Content: k})
			continue
		}
		out = append(out, keyOf(k))
	}
	return out
}

// TestTypingFast types the same keys into two programs: into one when everything before is done, and into the other at any time. Both have to reach the same
// screen.
func TestTypingFast(t *testing.T) {
	for seed := range testkit.Seeds(t, 25) {
		r := rand.New(rand.NewPCG(seed, 7))
		keys := typing(r, 25)
		size := [][2]int{{80, 24}, {40, 12}, {200, 50}}[seed%3]
		w, h := size[0], size[1]
		slow := drive(t, Options{Store: bread(t)}, w, h)
		fast := &hasty{t: t, model: newModel(t.Context(), Options{Store: bread(t)}), r: r}
		fast.watching = true
		fast.waiting = append(fast.waiting, fast.Init())
		fast.take(tea.WindowSizeMsg{Width: w, Height: h})
		for _, msg := range messages(keys) {
			if slow.take(msg); slow.leaving { // when nothing was open over the panes that q would have closed
				slow.leaving = false
				continue
			}
			for range r.IntN(6) {
				fast.step()
			}
			if r.IntN(3) == 0 {
				fast.told()
			}
			fast.take(msg)
		}
		fast.rest()
		fast.told()
		fast.rest()
		slow.take(changesMsg{[]record.Change{{Context: slow.conv.c.ID}}})
		if want, got := plain(slow.model), plain(fast.model); got != want {
			t.Fatalf("seed %d: after %q the screen is\n%s\nand for who types slowly\n%s", seed, keys, got, want)
		}
	}
}

// TestOthersAtAnyTime lets another program change the conversation while this one reads: once told, it shows the same as a program that starts then.
func TestOthersAtAnyTime(t *testing.T) {
	for seed := range testkit.Seeds(t, 15) {
		r := rand.New(rand.NewPCG(seed, 8))
		st := bread(t)
		c, err := st.Context(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		h := &hasty{t: t, model: newModel(t.Context(), Options{Store: st}), r: r}
		h.watching = true
		h.waiting = append(h.waiting, h.Init())
		h.take(tea.WindowSizeMsg{Width: 200, Height: 50})
		for i := range 30 {
			for range r.IntN(8) {
				h.step()
			}
			b := c.Begin("")
			name := fmt.Sprint("other ", i)
			switch r.IntN(5) {
			case 0:
				b.Fork(name, chatctx.ForkOptions{At: "@3"})
			case 1:
				b.Append(pool.NewText(pool.User, name))
			case 2:
				b.SetTitle(name)
			case 3:
				b.RenameBranch("main", "main.") // refused unless it exists
			default:
				_, _ = st.Undo(t.Context(), c.ID.String(), "", "")
				h.told()
				continue
			}
			_, _ = b.Commit(t.Context())
			h.told()
		}
		h.rest()
		h.told()
		h.rest()
		h.conv.folds = screen.Folds{} // opens what the cursor was on
		h.conv.lay()
		h.press("g", "@")
		fresh := drive(t, Options{Store: st}, 200, 50)
		fresh.press("g", "@")
		if got, want := plain(h.model), plain(fresh.model); got != want {
			t.Fatalf("seed %d: the screen is\n%s\nnot\n%s", seed, got, want)
		}
	}
}

func (h *hasty) press(keys ...string) {
	for _, k := range keys {
		h.take(keyOf(k))
		h.rest()
	}
}
