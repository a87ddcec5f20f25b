package ui

import (
	"fmt"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

// sizes are the sizes of the recorded screens.
var sizes = map[string][2]int{"80x24": {80, 24}, "40x12": {40, 12}, "200x50": {200, 50}}

// TestStories walks through the session of the README at each size.
func TestStories(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			x := start(t, Options{Store: bread(t)}, size[0], size[1])
			x.golden(name + "-tree")
			x.press("g", "]", "]", "l")
			x.golden(name + "-fork-points")
			x.press("f")
			x.until("the new branch's name")
			x.press("rye", "enter")
			x.golden(name + "-fork")
			x.press("u")
			x.until("took back", "not ‹rye›")
			x.press("U")
			x.until("did again", "‹rye› active")
			x.press("J")
			x.golden(name + "-journal")
			x.press("q", "/")
			x.until("search in this conversation")
			x.press("flour", "enter")
			x.golden(name + "-search")
			x.press("enter")
			x.golden(name + "-found")
			x.press("?")
			x.golden(name + "-keys")
			x.press("esc", "esc")
			x.until("conversations", "Bread for eight", "not Moving")
			x.press("/")
			x.press("brd8")
			x.until("no title fits")
			x.press("\x7f")
			x.golden(name + "-list")
			x.press("enter")
			x.until("‹rye›", "u3 user", "not / brd")
			x.press("c")
			x.golden(name + "-compare")
			x.press("q", "q")
			if err := <-x.ended; err != nil {
				t.Error(err)
			}
			x.ended <- nil
		})
	}
}

// TestEdit edits a message in place, takes an answer of the old path, and undoes both.
func TestEdit(t *testing.T) {
	x := start(t, Options{Store: bread(t)}, 100, 30)
	x.until("a4 assistant", "? keys")
	x.press("k", "e")
	x.until("edit u4", "timetable for lunch at one")
	x.press("\x15", "Lunch at two?", "enter")
	x.until("edited; now on main.2", "‹main.2› active", "Lunch at two?")
	x.press("[")
	x.press("G", "s")
	x.until("now on main", "‹main› active")
	x.press("T")
	x.until("tag a4")
	x.press("plan", "enter")
	x.until("tagged plan", "[plan]")
	x.press("b")
	x.until("rename the branch main")
	x.press("\x15", "one", "enter")
	x.until("main is now one", "‹one› active")
	x.press("u")
	x.until("‹main› active")
}

// TestOthers shows the changes of another program at once.
func TestOthers(t *testing.T) {
	st := bread(t)
	x := start(t, Options{Store: st}, 100, 30)
	x.until("a4 assistant", "? keys")
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "From another program")); err != nil {
		t.Fatal(err)
	}
	x.until("u5 user: From another program")
	b := c.Begin("")
	b.SetTitle("Renamed elsewhere")
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.until("“Renamed elsewhere”")
	x.press("esc")
	x.until("* Renamed elsewhere")
	if _, err := st.New(t.Context(), record.NewContext{Title: "A new one"}); err != nil {
		t.Fatal(err)
	}
	x.until("* A new one", "Renamed elsewhere")
}

// TestOthersAtOnce: a cursor stays on its message, whether what others append comes in one reading or in several, and on a gap that the person sees.
func TestOthersAtOnce(t *testing.T) {
	for _, at := range [][]int{{6}, {3, 6}, {4, 6}, {3, 4, 5, 6}} {
		st := asked(t)
		d := drive(t, Options{Store: st}, 80, 24)
		n := 2
		for _, to := range at {
			for ; n < to; n++ {
				if _, err := d.conv.c.Append(t.Context(), "", pool.NewText(pool.User, "From elsewhere")); err != nil {
					t.Fatal(err)
				}
			}
			d.take(changesMsg{[]record.Change{{Context: d.conv.c.ID}}})
			if r := d.conv.here(); r.Kind != screen.MessageRow || r.Position != 2 {
				t.Errorf("after %d messages of %v the cursor is on %+v", n, at, r)
			}
		}
		d.press("h") // closes the gap
		if _, err := d.conv.c.Append(t.Context(), "", pool.NewText(pool.User, "One more")); err != nil {
			t.Fatal(err)
		}
		d.take(changesMsg{[]record.Change{{Context: d.conv.c.ID}}})
		if r := d.conv.here(); r.Kind != screen.GapRow || r.Count != 5 {
			t.Errorf("after %v and a fold the cursor is on %+v", at, r)
		}
	}
}

// TestResize goes through sizes; the last one is drawn as if it had been the first.
func TestResize(t *testing.T) {
	x := start(t, Options{Store: bread(t)}, 80, 24)
	x.golden("80x24-tree")
	for _, size := range [][2]int{{40, 12}, {200, 50}, {20, 5}, {1, 1}, {139, 24}, {80, 24}} {
		x.resize(size[0], size[1])
	}
	x.golden("80x24-tree")
}

// TestKeysAreInTheDocs: docs/ui.md has the table of keys as `?` shows them.
func TestKeysAreInTheDocs(t *testing.T) {
	var b strings.Builder
	for _, g := range keyGroups() {
		b.WriteString("\n**" + g.title + "**\n\n| keys | do |\n| --- | --- |\n")
		for _, k := range g.keys {
			b.WriteString("| `" + strings.Join(k.names, "` `") + "` | " + k.does + inWords(k.in) + " |\n")
		}
	}
	const file, begin, end = "../../docs/ui.md", "<!-- keys -->\n", "\n<!-- end -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, ended := strings.Cut(rest, end)
	switch {
	case !ok || !ended:
		t.Fatal("docs/ui.md has no place for the keys")
	case *update:
		if err := os.WriteFile(file, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != b.String():
		t.Error("docs/ui.md is old: go test ./internal/ui -run Keys -update")
	}
}

// TestBackToTheList: back in the list, the cursor is on the open conversation, however far down it is; u brings back what was put into the trash there.
func TestBackToTheList(t *testing.T) {
	st := newStore(t)
	for i := range 3 * listPage {
		if _, err := st.New(t.Context(), record.NewContext{Title: fmt.Sprint("Number ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	d := drive(t, Options{Store: st, Context: "Number 3"}, 80, 24)
	at := func(want string) {
		t.Helper()
		if info := d.list.at(d.list.cursor); info == nil || info.Title != want {
			t.Errorf("the cursor is on %v, not on %s", info, want)
		}
	}
	d.press("esc")
	at("Number 3")
	d.press("g", "tab", "enter", "tab")
	at("Number 3")
	d.press("down")
	at("Number 2")
	d.press("D")
	if !strings.Contains(d.note, "u brings it back") {
		t.Errorf("%q", d.note)
	}
	d.press("g", "u")
	at("Number 2")
}

// TestMouse: the wheel scrolls what is under it, a click goes to a line, a second one opens it; what is for reading is scrolled at once, and no click closes it.
func TestMouse(t *testing.T) {
	d := drive(t, Options{Store: bread(t)}, 80, 24)
	wheel := func(x, y, notches int) {
		b := tea.MouseWheelDown
		if notches < 0 {
			b, notches = tea.MouseWheelUp, -notches
		}
		for range notches {
			d.take(tea.MouseWheelMsg{X: x, Y: y, Button: b})
		}
	}
	click := func(x, y int) { d.take(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}) }
	click(10, 8)
	if d.conv.cursor != 7 || d.conv.rows[7].Kind != screen.GapRow {
		t.Errorf("the cursor is on row %d:\n%s", d.conv.cursor, plain(d.model))
	}
	rows := len(d.conv.rows)
	click(10, 8)
	if len(d.conv.rows) != rows+2 {
		t.Errorf("a second click does not unfold:\n%s", plain(d.model))
	}
	wheel(10, 8, -2)
	if d.conv.cursor != 1 {
		t.Errorf("two notches up lead to row %d", d.conv.cursor)
	}
	d.press("?")
	before := strings.Split(plain(d.model), "\n")
	wheel(10, 8, 1)
	if after := strings.Split(plain(d.model), "\n"); after[2] != before[2+wheelLines] {
		t.Errorf("a notch scrolls the keys to\n%s", plain(d.model))
	}
	wheel(10, 8, 99)
	bottom := plain(d.model)
	d.press("G")
	if plain(d.model) != bottom || !strings.Contains(bottom, "show these keys") {
		t.Errorf("the wheel ends at\n%s", bottom)
	}
	wheel(10, 8, -1)
	if plain(d.model) == bottom {
		t.Error("a notch up does not scroll from the end")
	}
	if click(10, 2); d.over == nil {
		t.Error("a click closes the keys")
	}
	d.press("esc", "esc")
	click(10, 2)
	if d.focus != onTree || d.conv == nil { // it was at the cursor
		t.Errorf("a click on the conversation leads to\n%s", plain(d.model))
	}
	d.press("J")
	click(10, 23)
	if d.over == nil {
		t.Error("a click below the journal closes it")
	}
}

// TestResizeOver resizes with each thing open that can be over the panes or below them: it fits any size, shows its subject, and looks as before at the old
// size.
func TestResizeOver(t *testing.T) {
	for name, open := range map[string][]string{
		"keys": {"?"}, "journal": {"J"}, "calls": {"a"}, "choice": {"a", "A"}, "compare": {"m", "g", "c"}, "found": {"/", "w", "i", "enter"}, "found in all": {"S", "w", "i", "enter"},
		"write": {"i", "l", "漢"}, "edit": {"e"}, "many": {"A", "m", "enter", "x"}, "name": {"f", "x"}, "refused": {"b", "ctrl+u", "@", "enter"}, "arguments": {"a", "e"}, "filter": {"esc", "/", "B", "o"},
		"preview": {"enter"}, "list": {"esc"}, "note": {"m"},
	} {
		d := drive(t, talking(t, waitingCalls(t), nil), 80, 24)
		d.press(open...)
		if d.over == nil && d.question == nil && d.focus == onTree && d.note == "" {
			t.Errorf("%s: %q opens nothing", name, open)
		}
		before := plain(d.model)
		for _, size := range [][2]int{{40, 12}, {200, 50}, {40, 12}, {20, 5}, {80, 24}} {
			d.take(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			lines := strings.Split(plain(d.model), "\n")
			if len(lines) != size[1] {
				t.Errorf("%s: %d lines at %v", name, len(lines), size)
			}
			for _, l := range lines {
				if w := d.width()(l); w > size[0] {
					t.Errorf("%s: a line is %d wide at %v: %q", name, w, size, l)
				}
			}
			if c := d.View().Cursor; (d.question != nil || d.list.typing) && (c == nil || c.X < 0 || c.Y < 0 || c.X >= size[0] || c.Y >= size[1]) {
				t.Errorf("%s: the cursor is at %v at %v", name, c, size)
			}
			if q := d.question; q != nil && size[1] > 5 && !strings.Contains(plain(d.model), q.label[:7]) {
				t.Errorf("%s: the question is not on the screen at %v:\n%s", name, size, plain(d.model))
			}
		}
		if after := plain(d.model); after != before {
			t.Errorf("%s: the screen was\n%s\nand is\n%s", name, before, after)
		}
	}
}

// TestOutdatedNote: a note that says that u takes a change back goes when somebody else changes the conversation after it, since u would take back that.
func TestOutdatedNote(t *testing.T) {
	st := bread(t)
	d := drive(t, Options{Store: st}, 80, 24)
	changed := func() { d.take(changesMsg{[]record.Change{{Context: d.conv.c.ID}}}) }
	d.press("T", "x", "enter")
	for range 2 { // its own change is told too
		if changed(); d.note != "tagged x; u takes it back" {
			t.Errorf("%q is said", d.note)
		}
	}
	if _, err := d.conv.c.Append(t.Context(), "", pool.NewText(pool.User, "From elsewhere")); err != nil {
		t.Fatal(err)
	}
	if changed(); d.note != "" {
		t.Errorf("%q is said", d.note)
	}
	d.press("M") // of the active branch itself
	if changed(); d.note == "" || !d.bad {
		t.Errorf("%q is said", d.note)
	}
	d.press("s") // it is active already
	if strings.Contains(d.note, "takes it back") {
		t.Errorf("%q is said where nothing was done", d.note)
	}
}

// TestUndoStaysHere: u does not undo operations on the whole store, like the import of the conversation; a rewind to the end and a comparison with itself are
// no change.
func TestUndoStaysHere(t *testing.T) {
	st := bread(t)
	d := drive(t, Options{Store: st}, 80, 24)
	for _, step := range []struct{ keys, says string }{
		{"u", "has nothing to take back"}, {"t", "this answer stands on main already"}, {"R", "main ends here already"}, {"T", ""}, {"k", ""}, {"enter", "tagged"}, {"u", "took back"}, {"u", "has nothing to take back"},
		{"m", "is marked"}, {"c", "this is the marked place"}, {"esc", ""}, {"u", "has nothing to take back"},
	} {
		d.press(step.keys)
		if !strings.Contains(d.note, step.says) {
			t.Errorf("%s says %q, not %q", step.keys, d.note, step.says)
		}
	}
	failed := d.conv.c.Begin("") // as a retry that failed
	failed.Fork("gone", chatctx.ForkOptions{Stay: true})
	if _, err := failed.Together(failed).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	removes := d.conv.c.Begin("")
	removes.RemoveBranch("gone")
	if _, err := removes.Together(failed).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.press("u"); !strings.Contains(d.note, "has nothing to take back") {
		t.Errorf("after a command of which nothing is left u says %q", d.note)
	}
	branches, err := d.conv.c.Branches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range branches { // the only change stands on another branch
		if !b.Active {
			if _, err := d.conv.c.Append(t.Context(), b.Name, pool.NewText(pool.User, "aside")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d.press("u"); !strings.Contains(d.note, "has nothing to take back") {
		t.Errorf("with changes on another branch u says %q", d.note)
	}
	if d.press("esc", "u"); !strings.Contains(d.note, "has nothing to take back") {
		t.Errorf("in the list u says %q", d.note)
	}
	info, err := d.conv.c.Info(t.Context())
	if err != nil || info.Trashed != 0 {
		t.Errorf("the conversation: %+v %v", info, err)
	}
}
