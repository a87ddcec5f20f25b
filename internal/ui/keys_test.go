package ui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// at puts the cursor on a row of the tree.
func (d *driver) at(row int) {
	d.press("g")
	for range row {
		d.press("j")
	}
}

// says checks that the note has words.
func (d *driver) says(words string) {
	d.t.Helper()
	if !strings.Contains(d.note, words) {
		d.t.Errorf("%q is said, not %q:\n%s", d.note, words, plain(d.model))
	}
}

// TestBranchOfACommand: a command about a message is about the active branch if that holds it, else about a branch that ends there; one about a whole branch is
// about the branch that ends there.
func TestBranchOfACommand(t *testing.T) {
	d := drive(t, Options{Store: bread(t)}, 80, 24)
	d.at(9)
	d.press("s")
	d.says("now on answer 1 of u3")
	d.at(3)
	d.press("d")
	d.says("off answer 1 of u3")
	d.press("u", "@")
	d.at(8)
	d.press("f", "x", "enter")
	d.says("now on x")
	x := d.conv.cursor
	d.at(2)
	d.press("s")
	d.says("now on answer 1 of u1")
	d.at(x)
	d.press("R")
	d.says("x ends here already")
	d.press("b")
	if d.question == nil || d.question.offered != "x" {
		t.Fatalf("b asks for a name of %+v", d.question)
	}
	d.press("esc", "D")
	d.says("removed the branch x")
}

// TestOrderOfComparison: the marked place comes first.
func TestOrderOfComparison(t *testing.T) {
	d := drive(t, Options{Store: bread(t)}, 80, 24)
	d.press("@", "m")
	d.at(9)
	d.press("c")
	o, ok := d.over.(*comparison)
	if !ok || strings.Index(o.heading, "main") != 0 || !strings.Contains(o.heading, "answer 1 of u3") {
		t.Errorf("the comparison is %+v", d.over)
	}
}

// TestJournalTakesBack: u in the journal is about the operation at the cursor, also if that is not the newest.
func TestJournalTakesBack(t *testing.T) {
	d := drive(t, Options{Store: bread(t)}, 80, 24)
	d.at(1)
	d.press("T", "x", "enter")
	d.at(2)
	d.press("T", "y", "enter", "J", "j", "u") // the older one: a later tag of another name is not in its way
	d.says("took back 1 tag")
	d.press("q")
	if s := plain(d.model); strings.Contains(s, "[x]") || !strings.Contains(s, "[y]") {
		t.Errorf("the tree is\n%s", s)
	}
}

// TestReadsOn: v lets the preview go on with what follows, and again not.
func TestReadsOn(t *testing.T) {
	d := drive(t, Options{Store: bread(t)}, 80, 24)
	d.at(1)
	for _, on := range []bool{false, true, false} {
		if s := plain(d.model); strings.Contains(s, "│#3 a1") != on {
			t.Errorf("the preview is\n%s", s)
		}
		d.press("v")
	}
}

// TestRoll: the keys that move in any list.
func TestRoll(t *testing.T) {
	r := roll{}
	r.resize(100, 10)
	for _, tt := range []struct {
		key         string
		cursor, top int
	}{
		{"ctrl+d", 5, 0}, {"ctrl+d", 10, 1}, {"ctrl+u", 5, 1}, {"pgdown", 15, 6}, {"pgup", 5, 5}, {"down", 6, 5}, {"k", 5, 5}, {"G", 99, 90}, {"ctrl+u", 94, 90}, {"home", 0, 0}, {"up", 0, 0},
	} {
		if !r.moved(tt.key) || r.cursor != tt.cursor || r.top != tt.top {
			t.Errorf("%s: at %d of the lines from %d on, not %d and %d", tt.key, r.cursor, r.top, tt.cursor, tt.top)
		}
	}
}

// TestPicker: what is typed puts the cursor on the best match; a click chooses the line that is clicked.
func TestPicker(t *testing.T) {
	for name, tt := range map[string]struct {
		msgs   []tea.Msg
		chosen int
	}{
		"typed":   {[]tea.Msg{keyOf("down"), keyOf("r"), keyOf("enter")}, 1},
		"down":    {[]tea.Msg{keyOf("down"), keyOf("enter")}, 1},
		"clicked": {[]tea.Msg{tea.MouseClickMsg{X: 3, Y: 3, Button: tea.MouseLeft}}, 2},
		"title":   {[]tea.Msg{tea.MouseClickMsg{X: 3, Y: 0, Button: tea.MouseLeft}}, -1},
		"below":   {[]tea.Msg{tea.MouseClickMsg{X: 3, Y: 5, Button: tea.MouseLeft}}, -1},
		"none":    {[]tea.Msg{keyOf("esc")}, -1},
		"nothing": {[]tea.Msg{keyOf("x"), keyOf("enter")}, -1},
	} {
		p := &picker{title: "which", chosen: -1}
		p.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
		p.Update(choicesMsg{[]Choice{{Name: "bread"}, {Name: "rye"}, {Name: "wheat"}}, true, nil})
		for _, msg := range tt.msgs {
			p.Update(msg)
		}
		if p.chosen != tt.chosen {
			t.Errorf("%s: %d is chosen, not %d", name, p.chosen, tt.chosen)
		}
	}
}
