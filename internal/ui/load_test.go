package ui

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// driver runs a model without a terminal: results of commands come back at once, and there is no watch.
type driver struct {
	t testing.TB
	*model
}

func drive(t testing.TB, o Options, w, h int) *driver {
	d := &driver{t, newModel(t.Context(), o)}
	d.watching = true
	d.do(d.Init())
	d.take(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

func (d *driver) take(msg tea.Msg) {
	_, cmd := d.Update(msg)
	d.do(cmd)
}

// do runs a command and everything that follows from it.
func (d *driver) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil, tea.QuitMsg:
	case tea.BatchMsg:
		for _, c := range msg {
			d.do(c)
		}
	default:
		if fmt.Sprintf("%T", msg) == "tea.sequenceMsg" {
			return // its content is tested in the virtual terminal
		}
		d.take(msg)
	}
}

func (d *driver) press(keys ...string) {
	for _, k := range keys {
		d.take(keyOf(k))
	}
}

// keyOf returns the message of a key by its name.
func keyOf(name string) tea.KeyPressMsg {
	codes := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab,
		"backspace": tea.KeyBackspace, "home": tea.KeyHome, "end": tea.KeyEnd}
	if c, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: c}
	}
	if c, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// large returns a store with so many conversations and, in the current one, so many messages on main and so many branches from its end.
func large(t testing.TB, db kv.DB, conversations, messages, branches int) *chatctx.Store {
	t.Helper()
	st, err := chatctx.OpenDB(db, chatctx.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	for i := range conversations {
		if _, err := st.New(t.Context(), record.NewContext{Title: fmt.Sprint("Conversation ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := st.New(t.Context(), record.NewContext{Title: "Large"})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	for i := range messages {
		role := pool.User
		if i%2 == 1 {
			role = pool.Assistant
		}
		b.Append(pool.NewText(role, fmt.Sprintf("Message %d with **words**", i+1)))
	}
	for i := range branches {
		b.Fork(fmt.Sprint("branch-", i), chatctx.ForkOptions{At: record.Ref(fmt.Sprintf("main@%d", messages-i%10)), Stay: true})
	}
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range branches {
		if _, err := c.Append(t.Context(), fmt.Sprint("branch-", i), pool.NewText(pool.User, "Another way"), pool.NewText(pool.Assistant, "Well")); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Maintenance().Index(t.Context(), nil); err != nil { // otherwise it is built meanwhile
		t.Fatal(err)
	}
	return st
}

// TestReadsWhatIsShown counts the records that the first screen and keys read: they are as many with ten times as many conversations and a hundred times as
// many messages.
func TestReadsWhatIsShown(t *testing.T) {
	keys := []string{"down", "up", "pgup", "g", "l", "j", "]", "G", "h", "enter", "esc", "esc", "down", "pgdown", "enter", "v"}
	measure := func(conversations, messages int) (first int64, each []int64) {
		db := &kvtest.Reads{DB: memkv.New()}
		st := large(t, db, conversations, messages, 20)
		for round := range 3 { // the least of some rounds: the store's own work in between reads too
			db.Take()
			d := drive(t, Options{Store: st}, 160, 40)
			if n := db.Take(); round == 0 || n < first {
				first = n
			}
			if s := d.View().Content; !strings.Contains(s, "Another way") || !strings.Contains(s, "Large") {
				t.Fatalf("the first screen is\n%s", s)
			}
			for i, k := range keys {
				db.Take()
				d.press(k)
				if n := db.Take(); round == 0 {
					each = append(each, n)
				} else {
					each[i] = min(each[i], n)
				}
			}
		}
		return first, each
	}
	first, each := measure(300, 40)
	firstLarge, eachLarge := measure(3000, 4000)
	if firstLarge > first {
		t.Errorf("the first screen reads %d records, and %d of a large store", first, firstLarge)
	}
	for i, k := range keys {
		if eachLarge[i] > each[i] {
			t.Errorf("%s reads %d records, and %d of a large store", k, each[i], eachLarge[i])
		}
	}
}

// only matches text with the styles of this program, without anything else that a terminal obeys.
var only = regexp.MustCompile(`^(?:[^\x00-\x1f\x7f-\x9f\x{202a}-\x{202e}\x{2066}-\x{2069}]|\n|\x1b\[(?:[0-9]+(?:;[0-9]+)*)?m)*$`)

// hostile is text that a model might write to control a terminal.
var hostile = []string{
	"\x1b[2J\x1b[H\x1b]0;title\x07\x1b]52;c;aGk=\x07", "\u009b31mred\u009d52;c;aGk=\u009c", "a\rb\bc\x00d\x7fe", "right \u202eto left\u202c \u2066isolated\u2069", "&#27;[31m &#x9b;1m", "```\n\x1b[5mblink\n```", "[x](\x1b]8;;http://evil\x07)",
	"漢字かな交じり文と🙂👩‍👩‍👧‍👦👍🏽❤️", "e\u0301\u0302\u0303 क्षि สวัสดี 한국어", "שלום עולם مرحبا بالعالم", "\u200b\u200d\ufeff\u00ad soft", strings.Repeat("x", 5000), strings.Repeat("\n", 300), "| a\x1b[2J | b |\n| - | - |\n| \x07 | c |", "",
}

// hostileStore returns a store with it everywhere: in titles, names of branches as far as possible, tags, words, calls, results, reasons, models.
func hostileStore(t testing.TB) *chatctx.Store {
	st := newStore(t)
	for _, h := range hostile {
		title := strings.Map(func(c rune) rune { // the store refuses control characters in titles
			if unicode.IsControl(c) {
				return ' '
			}
			return c
		}, "T "+h[:min(len(h), 900)])
		c, err := st.New(t.Context(), record.NewContext{Title: strings.ToValidUTF8(title, "")})
		if err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		reply := pool.NewText(pool.Assistant, h)
		reply.Meta.Model, reply.Meta.Error, reply.Kind = "m"+h, h, "k"+h
		reply.Calls = []pool.Call{{ID: "c1", Tool: "tool" + h, Arguments: []byte(`{"path":"/nowhere/x","content":"a\u001b[2J\u202e"}`)}}
		b.Append(pool.NewText(pool.User, h), reply)
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b" + h, "b2"} {
			b := c.Begin("")
			b.Fork(name, chatctx.ForkOptions{At: "@1", Stay: true})
			_, _ = b.Commit(t.Context()) // some are not valid names
			_, _ = c.Append(t.Context(), name, pool.NewText(pool.Assistant, h))
		}
	}
	return st
}

// TestHostile: whatever is pressed, the screen controls no terminal, and its lines fit it in width and number.
func TestHostile(t *testing.T) {
	names := []string{"up", "down", "left", "right", "pgup", "pgdown", "enter", "esc", "tab", "home", "end", "[", "]", "@", "v", "s", "f", "e", "p", "M", "R", "d", "T", "b", "D", "y", "u", "U", "m", "c", "t", "/", "S", "n", "N", "J", "a", "?", "x", "i",
		"y", "A", "r", "漢", "ctrl+u", "ctrl+w", "backspace", "ctrl+k"}
	for seed := range testkit.Seeds(t, 3) {
		st := hostileStore(t)
		r := rand.New(rand.NewPCG(seed, 1))
		d := drive(t, Options{Store: st}, 80, 24)
		d.method = []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth}[seed%2]
		for i := range 400 {
			if r.IntN(20) == 0 {
				d.take(tea.WindowSizeMsg{Width: 1 + r.IntN(210), Height: 1 + r.IntN(60)})
			}
			k := names[r.IntN(len(names))]
			switch r.IntN(12) {
			case 0:
				d.take(tea.MouseClickMsg{X: r.IntN(d.w), Y: r.IntN(d.h), Button: tea.MouseLeft})
			case 1:
				d.take(tea.MouseWheelMsg{X: r.IntN(d.w), Y: r.IntN(d.h), Button: tea.MouseWheelDown})
			case 2:
				d.take(tea.PasteMsg{Content: hostile[r.IntN(len(hostile))]})
			default:
				d.press(k)
			}
			view := d.View()
			if !only.MatchString(view.Content) {
				t.Fatalf("seed %d, step %d, %s: the screen holds what a terminal obeys:\n%q", seed, i, k, view.Content)
			}
			lines := strings.Split(view.Content, "\n")
			if len(lines) > d.h {
				t.Fatalf("seed %d, step %d, %s: %d lines on a screen of %d", seed, i, k, len(lines), d.h)
			}
			for _, l := range lines {
				if w := d.method.StringWidth(l); w > d.w {
					t.Fatalf("seed %d, step %d, %s: a line is %d wide on a screen of %d:\n%q", seed, i, k, w, d.w, l)
				}
			}
		}
	}
}

// TestCompareJoined: columns are aligned whether a terminal joins emoji or not, and a family is not cut.
func TestCompareJoined(t *testing.T) {
	text := "Family 👩\u200d👩\u200d👧\u200d👦 and 👍🏽, ❤️ 🏳️\u200d🌈 👩🏽\u200d🚀 漢字かな交じり文が続く。한국어 e\u0301 שלום عليكم 🇩🇪 "
	for _, method := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		st := asked(t)
		c, err := st.Context(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		b.Fork("b", chatctx.ForkOptions{At: "@1", Stay: true})
		b.Append(pool.NewText(pool.User, text))
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(t.Context(), "b", pool.NewText(pool.Assistant, strings.Repeat(text, 9))); err != nil {
			t.Fatal(err)
		}
		d := drive(t, Options{Store: st}, 80, 40)
		d.take(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: map[ansi.Method]ansi.ModeSetting{ansi.WcWidth: ansi.ModeNotRecognized, ansi.GraphemeWidth: ansi.ModeReset}[method]})
		d.press("c")
		rows := 0
		for _, l := range strings.Split(ansi.Strip(d.View().Content), "\n") {
			before, _, ok := strings.Cut(l, " │ ")
			if !ok {
				continue
			}
			rows++
			// the widths in a terminal that joins and in one that does not: they are equal if the program does not know which it has
			if w := ansi.GraphemeWidth.StringWidth(before); w != 38 {
				t.Errorf("%v: a column is %d wide: %q", method, w, l)
			}
			if w := ansi.WcWidth.StringWidth(before); method == ansi.WcWidth && w != ansi.GraphemeWidth.StringWidth(before) {
				t.Errorf("a column is %d wide where nothing is joined: %q", w, l)
			}
			if method == ansi.GraphemeWidth && strings.Contains(l, "Family ") && !strings.Contains(l, "👩\u200d👩\u200d👧\u200d👦") {
				t.Errorf("the family is cut: %q", l)
			}
		}
		if rows < 10 {
			t.Errorf("%d rows of columns:\n%s", rows, plain(d.model))
		}
	}
}

// BenchmarkKey measures the handling and drawing of a key, without what is read beside that, on a branch of 10,000 messages with 300 branches from its end.
func BenchmarkKey(b *testing.B) {
	d := drive(b, Options{Store: large(b, memkv.New(), 1000, 10_000, 300)}, 200, 50)
	keys := []string{"k", "pgup", "l", "j", "g", "]", "G", "h", "[", "enter", "j", "esc", "J", "j", "q", "?", "G", "q"}
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		_, cmd := d.Update(keyOf(keys[i%len(keys)]))
		_ = d.View()
		all = append(all, time.Since(begun))
		b.StopTimer()
		d.do(cmd)
		b.StartTimer()
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-p50")
}
