package ui

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// TestChanges: each change of a history by its key, and its undo.
func TestChanges(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			x := start(t, Options{Store: bread(t)}, size[0], size[1])
			title := func(branches, messages int) string { // as far as there is room for it
				s := fmt.Sprintf("%d branches, %d messages", branches, messages)
				if size[0] < 60 {
					s = fmt.Sprintf("%d branches", branches)
				}
				return s
			}
			x.until("a4 assistant", title(4, 15), "? keys")
			at := func(row int) { // moves the cursor to a row of the tree
				x.press("g")
				x.press(strings.Repeat("j", row))
			}
			back := func() {
				x.press("u")
				x.until("took back", title(4, 15))
			}
			at(2)
			x.press("p")
			x.golden(name + "-pick")
			back()
			at(5)
			x.press("M")
			x.golden(name + "-merge")
			back()
			at(3)
			x.press("R")
			x.golden(name + "-rewind")
			back()
			at(6)
			x.press("d")
			x.golden(name + "-drop")
			back()
			at(1)
			x.press("T")
			x.until("tag u1")
			x.press("bread", "enter")
			x.golden(name + "-tag")
			x.press("T")
			x.until("tag u1", "bread")
			x.press("\x15", "enter")
			x.until("tagged", "not [bread]", "not tag u1")
			x.press("k")
			at(1)
			x.press("b")
			x.until("rename the branch")
			x.press("esc")
			x.press("S")
			x.until("search in all conversations")
			x.press("focaccia", "enter")
			x.golden(name + "-search-all")
			x.press("q", "q")
			if err := <-x.ended; err != nil {
				t.Error(err)
			}
			x.ended <- nil
		})
	}
}

// TestCopy puts a message on the clipboard with the terminal's own sequence.
func TestCopy(t *testing.T) {
	x := start(t, Options{Store: asked(t)}, 100, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("y")
	x.until("copied 7 characters")
	want := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("Petrel."))
	for deadline := time.After(time.Minute); ; { // it is written separately, before the screen or after it
		x.mu.Lock()
		written, wrote := strings.Contains(x.raw.String(), want), x.wrote
		x.mu.Unlock()
		if written {
			return
		}
		select {
		case <-wrote:
		case <-deadline:
			t.Fatalf("%q was not written", want)
		}
	}
}

// waitingCalls returns a store in which two calls wait for a decision.
func waitingCalls(t *testing.T) *chatctx.Store {
	t.Helper()
	st := asked(t)
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	reply := pool.NewText(pool.Assistant, "I would write two files.")
	for _, arguments := range []string{`{"path":"/nowhere/one.txt","content":"hello\nworld"}`, `{"path":"/nowhere/two.txt","content":"\u001b]0;pwned\u0007"}`} {
		reply.Calls = append(reply.Calls, pool.Call{ID: "call_" + arguments[18:21], Tool: "write_file", Arguments: json.RawMessage(arguments), Status: pool.Pending})
	}
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "Write two files"), reply); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestQueue: the waiting calls, with everything that would run; a reason, no, yes.
func TestQueue(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			st := waitingCalls(t)
			x := start(t, talking(t, st, nil), size[0], size[1])
			x.until("a2 assistant", "? keys")
			x.press("a")
			x.golden(name + "-calls")
			x.press("r")
			x.until("the reason")
			x.press("no files", "enter")
			x.until("not the reason")
			if size[1] > 20 {
				x.until("reason: no files")
			}
			x.press("n")
			x.golden(name + "-denied")
			x.press("y")
			x.until("no call waits for a decision")
			x.press("q", "q")
			if err := <-x.ended; err != nil {
				t.Error(err)
			}
			x.ended <- nil
			c, err := st.Context(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			snap, err := c.Snapshot(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			reply, err := snap.Find(t.Context(), "@4")
			if err != nil {
				t.Fatal(err)
			}
			var states []string
			for _, call := range reply.Calls {
				states = append(states, string(call.Status)+" "+call.Reason)
			}
			if got := strings.Join(states, ", "); got != "denied no files, approved " {
				t.Errorf("the calls are %s", got)
			}
		})
	}
}

// TestQueueTellsSooner: the change that a decision makes may be told before the decision's own end. The next call is on the screen then, and a key decides it.
func TestQueueTellsSooner(t *testing.T) {
	st := waitingCalls(t)
	m := newModel(t.Context(), Options{Store: st, By: "test"})
	m.openCalls()
	q := m.over.(*queue)
	q.busy = false
	reads := func() callsMsg {
		q.busy = false
		return q.read(m)().(callsMsg)
	}
	q.update(m, reads())
	press := func(k string) tea.Cmd { return q.key(m, tea.KeyPressMsg{Code: rune(k[0]), Text: k}) }
	before := reads()
	denied := press("n")
	if press("n") != nil {
		t.Error("a second key decides the call that is being decided")
	}
	q.update(m, before)
	if press("y") != nil {
		t.Error("a list from before the decision makes a key decide the same call again")
	}
	end := denied()
	q.update(m, reads())
	if got := string(q.here().RunArguments()); !strings.Contains(got, "two.txt") || q.gone {
		t.Fatalf("at the cursor is %s; gone: %v", got, q.gone)
	}
	approved := press("y")
	if approved == nil {
		t.Fatal("y does not decide the call that is on the screen")
	}
	m.Update(end)
	q.update(m, reads())
	if len(q.calls) != 1 || len(q.ours) != 1 {
		t.Errorf("%d calls and %d decisions under way, not 1 and 1", len(q.calls), len(q.ours))
	}
	m.Update(approved())
	q.update(m, reads())
	if len(q.calls) != 0 || len(q.ours) != 0 {
		t.Errorf("%d calls and %d decisions are left", len(q.calls), len(q.ours))
	}
}
