package ui

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
)

// TestDraft: text that was typed but not sent is kept for each conversation, and offered again.
func TestDraft(t *testing.T) {
	st := asked(t)
	if _, err := st.New(t.Context(), record.NewContext{Title: "Another"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Use(t.Context(), "Boats"); err != nil {
		t.Fatal(err)
	}
	x := start(t, talking(t, st, nil), 100, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("i")
	x.until("to the model on main", "esc: later")
	x.press("half a thought", "esc")
	x.until("what you typed is kept", "not half a thought")
	x.press("e")
	x.until("edit a1", "Petrel.", "not half a thought")
	x.press(" Or Auk.", "esc")
	x.until("what you typed is kept")
	x.press("e")
	x.until("edit a1", "Petrel. Or Auk.", "what you typed before")
	x.press("\x15", "esc", "e") // emptied, it is dropped
	x.until("edit a1", "not Or Auk")
	x.press("esc")
	x.until("not edit a1", "not is kept")
	x.press("esc", "/another", "enter")
	x.until("“Another”", "(beginning)", "not conversations")
	x.press("i")
	x.until("to the model on main", "not half a thought")
	x.press("esc", "esc", "/boats", "enter")
	x.until("“Boats”", "Petrel.", "not conversations")
	x.press("A")
	x.until("ask several")
	x.press("\x15", "gpt-a", "enter")
	x.until("the message to gpt-a", "half a thought")
	x.press(", whole", "enter")
	x.until("half a thought, whole", "‹gpt-a›", "not answering on")
	x.press("i")
	x.until("to the model on main", "not half a thought, whole\nenter: done")
}

// TestDraftOfFailure: text that could not be sent is a draft again; stored text is not, and Enter asks again.
func TestDraftOfFailure(t *testing.T) {
	st := asked(t)
	o := talking(t, st, nil)
	broken := map[string]json.RawMessage{}
	made := o.Turn
	o.Turn = func(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, told func(string)) *turn.Turn {
		all := made(c, branch, set, told)
		for key, v := range broken {
			all.Settings[key] = v
		}
		return all
	}
	broken["provider"] = quoted("nobody")
	d := drive(t, o, 100, 30)
	answer := make(chan streamMsg, 10)
	d.send = func(msg tea.Msg) {
		if s, ok := msg.(streamMsg); ok && s.ended != nil {
			answer <- s
		}
	}
	d.press("i")
	for _, c := range "Hello?" {
		d.press(string(c))
	}
	d.press("enter")
	d.take(<-answer)
	d.press("esc") // over the tree it goes to the list
	d.press("enter", "i")
	if got := d.question.field.text; got != "Hello?" {
		t.Errorf("%q is offered", got)
	}
	if n := messagesOn(t, st, "main"); n != 2 {
		t.Errorf("main has %d messages", n)
	}
	broken = map[string]json.RawMessage{"base_url": quoted("http://127.0.0.1:1/v1")}
	d.press("enter")
	d.take(<-answer)
	if !strings.Contains(d.note, "what you wrote is on main: i and Enter ask again") {
		t.Errorf("%q is said", d.note)
	}
	d.press("i")
	if got := d.question.field.text; got != "" {
		t.Errorf("%q is offered", got)
	}
	broken = nil
	d.press("enter")
	d.take(<-answer)
	if n := messagesOn(t, st, "main"); n != 4 {
		t.Errorf("main has %d messages, not the question and its answer more", n)
	}
}

func messagesOn(t *testing.T, st *chatctx.Store, branch string) int {
	t.Helper()
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context(), branch)
	if err != nil {
		t.Fatal(err)
	}
	return snap.Len()
}

// TestEditors: what becomes of the text, whatever the editor does. That the screen comes back needs a real terminal, since only there reading can be given up.
func TestEditors(t *testing.T) {
	d := drive(t, talking(t, asked(t), nil), 130, 24)
	for _, tt := range []struct {
		command []string
		says    string
	}{
		{[]string{"no-such-editor"}, `there is no editor "no-such-editor", so nothing was done`},
		{[]string{"/no/such/editor"}, `there is no editor "/no/such/editor", so nothing was done`},
		{[]string{"sh", "-c", "exit 3"}, `the editor "sh": exit status 3; nothing was done`},
		{[]string{"sh", "-c", "kill -9 $$"}, "signal: killed; nothing was done"},
		{[]string{"rm"}, "no such file or directory; nothing was done"},
		{[]string{"truncate", "-s", "0"}, "the text is empty, so nothing was done"},
		{[]string{"true"}, "the text was not changed, so nothing was done"},
		{[]string{"sh", "-c", `printf 'Auk\033[31m\377\n' > "$1"`, "sh"}, "edited; now on main.2"},
	} {
		e, err := newEditing(func(file string) (*exec.Cmd, error) {
			return exec.Command(tt.command[0], append(tt.command[1:], file)...), nil
		}, "Petrel.")
		if err != nil {
			t.Fatal(err)
		}
		d.press("e")
		q := d.question
		d.question = nil
		text, err := e.end(e.Run())
		d.take(editedMsg{text, q.edited, err})
		if !strings.Contains(d.note, tt.says) || d.question != nil {
			t.Errorf("%q: %q is said, not %q", tt.command, d.note, tt.says)
		}
		if _, err := os.Stat(e.file); !os.IsNotExist(err) {
			t.Errorf("%q: the file stays: %v", tt.command, err)
		}
	}
	if got := plain(d.model); !strings.Contains(got, "Auk\\x1b[31m\ufffd") || !strings.Contains(got, "2 branches, 3 messages") {
		t.Errorf("the screen is\n%s", got)
	}
}

// TestRefused: a dialog whose answer is refused stays, with the typed text and the reason; it gets the following keys.
func TestRefused(t *testing.T) {
	long := strings.Repeat("long ", 400)
	for key, typed := range map[string][2]string{
		"f":     {"main", "-2"},
		"b":     {"a@b", ""},
		"T":     {"a1", ""},
		"esc b": {long, ""},
		"esc c": {long, ""},
		"A":     {",", "gpt"},
		"/":     {`"`, ""},
	} {
		d := drive(t, talking(t, asked(t), nil), 80, 24)
		d.press(strings.Fields(key)...)
		if d.question == nil {
			t.Errorf("%s asks nothing", key)
			continue
		}
		label := d.question.label
		d.press("ctrl+u")
		d.take(tea.PasteMsg{Content: typed[0]})
		d.press("enter")
		if d.question == nil || d.question.label != label || d.question.refused == "" {
			t.Errorf("%s: %.20q is not refused:\n%s", key, typed[0], plain(d.model))
			continue
		}
		if shown := plain(d.model); !strings.Contains(strings.Join(strings.Fields(shown), " "), strings.Join(strings.Fields(d.question.refused), " ")[:20]) {
			t.Errorf("%s: %q is not on the screen\n%s", key, d.question.refused, shown)
		}
		d.press("j", "q", "D")
		if d.question == nil || d.question.field.text != typed[0]+"jqD" {
			t.Errorf("%s: the keys that follow do not go to the dialog", key)
		}
	}
}

// TestInKeys: commands for a shell become keys here; those without a key are marked as commands for a shell.
func TestInKeys(t *testing.T) {
	m := newModel(t.Context(), Options{Store: newStore(t)})
	defer m.list.stop()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{conflict("%q is the active branch: chatctx switch to another first", "main"), `"main" is the active branch: switch (s) to another first`},
		{conflict("there is a branch %q already: take another name, or chatctx switch %q", "a b", "a b"), `there is a branch "a b" already: take another name, or switch (s)`},
		{conflict("the tag %q is on abc: chatctx tag rm %q first", "t", "t"), `the tag "t" is on abc: remove it (T there, emptied) first`},
		{conflict("operation 10 (reply) stands on 2 (append): take it back first, chatctx undo 10 --context 0123abcd"), "operation 10 (reply) stands on 2 (append): take it back first, u on 10 in the journal (J)"},
		{conflict("operation s3 stands on s2 (import): take it back first, chatctx undo s3"), "operation s3 stands on s2 (import): take it back first, chatctx undo s3 (in a shell)"},
		{conflict("wait for it, or chatctx interrupt"), "wait for it, or chatctx interrupt (in a shell)"},
		{conflict("chatctx, process 0 is writing an answer: stop it with chatctx interrupt"), "chatctx, process 0 is writing an answer: stop it with chatctx interrupt (in a shell)"},
		{conflict("chatctx, process %d is writing an answer: stop it with chatctx interrupt --branch %q", os.Getpid(), "b"), fmt.Sprintf("chatctx, process %d is writing an answer: stop it with x", os.Getpid())},
		{conflict("it is in the trash: chatctx restore 0123abcd"), "it is in the trash: chatctx restore 0123abcd (in a shell)"},
		{conflict("not whole: go on with the same chatctx copy, or remove it"), "not whole: go on with the same chatctx copy (in a shell), or remove it"},
		{turn.ErrRounds, "the limit of rounds is reached; i and Enter go on"},
		{fmt.Errorf("%w; and so on", adapter.ErrNoModel), "no model is set: o sets the conversation's, r asks one that you name, A several; and so on"},
	} {
		if got := m.inKeys(tt.err); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestFollow: the cursor and the preview follow an answer until the person moves.
func TestFollow(t *testing.T) {
	st := asked(t)
	x := start(t, talking(t, st, nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("g", "i")
	x.until("to the model on main")
	x.press("Slowly, please", "enter")
	x.until("answering on main, x stops", "│And the beginning of", "u2 user: Slowly, please", "│#3 u2 user")
	x.press("x")
	x.until("stopped; what came is kept, unfinished", "│#4 a2 assistant")
	x.press("i")
	x.until("to the model on main")
	x.press("Slowly again", "enter")
	x.until("│#5 u3 user", "│And the beginning of")
	x.press("g")
	x.until("│#1 u1 user", "not │And the beginning of")
	x.press("x")
	x.until("stopped; what came is kept, unfinished", "a3 assistant: One paragraph", "│#1 u1 user")
}

// TestFollowMany: all arriving answers are shown below the question, and at the end what became of each.
func TestFollowMany(t *testing.T) {
	st := asked(t)
	if _, err := st.SetSettings(t.Context(), map[string]json.RawMessage{"model": quoted("gpt-test")}); err != nil {
		t.Fatal(err)
	}
	x := start(t, talking(t, st, nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("g", "A")
	x.until("ask several", "gpt-test,")
	x.press("slow", "enter")
	x.until("the message to gpt-test, slow")
	x.press("Which?", "enter")
	x.until("│#3 u2 user", "assistant ‹slow›", "│And the beginning of", "‹gpt-test› a2 assistant")
	x.press("x")
	x.until("answered on gpt-test; stopped: what came is kept, unfinished, on slow; u takes it back", "│#4 a2 assistant")
	x.press("A")
	x.until("ask several", "gpt-test, slow")
}

func conflict(format string, args ...any) error {
	return &record.ConflictError{Text: fmt.Sprintf(format, args...)}
}

// TestFollowNarrow: if there is room for one pane, an arriving answer takes it, and esc goes back to the tree.
func TestFollowNarrow(t *testing.T) {
	x := start(t, talking(t, asked(t), nil), 40, 12)
	x.until("a1 assistant", "? keys")
	x.press("i")
	x.until("to the model on main")
	x.press("Slowly, please", "enter")
	x.until("One paragraph that is whole.", "And the beginning of", "answering on main")
	x.press("x")
	x.until("stopped; what came is kept")
	x.press("esc")
	x.until("a1 assistant", "a2 assistant")
}

// TestEscTwice: two esc that arrive as one key are two.
func TestEscTwice(t *testing.T) {
	d := drive(t, Options{Store: asked(t)}, 80, 24)
	d.press("?")
	d.take(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt})
	if d.over != nil || d.focus != onList {
		t.Errorf("over the panes is %v, and the keys go to pane %d", d.over, d.focus)
	}
}
