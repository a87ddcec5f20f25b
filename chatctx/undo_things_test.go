package chatctx

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// thingSteps are changes, each in two forms, with the things that they change.
var thingSteps = []struct {
	name, things string
	do           func(b *Batch, n int)
}{
	{"remove", "there", func(b *Batch, n int) { b.RemoveBranch([]string{"side", "other"}[n]) }},
	{"append", "history", func(b *Batch, n int) { b.Append(says(fmt.Sprint("more", n))...) }},
	{"rename branch", "name", func(b *Batch, n int) { b.RenameBranch([]string{"third", "3"}[n], []string{"3", "4"}[n]) }},
	{"title", "title", func(b *Batch, n int) { b.SetTitle(fmt.Sprint("T", n)) }},
	{"label", "", func(b *Batch, n int) { b.Label(fmt.Sprint("l", n)) }},
	{"tag", "", func(b *Batch, n int) { b.Tag(fmt.Sprint("g", n), "@1") }},
	{"mark", "mark", func(b *Batch, n int) { b.Mark("@1", []string{"pinned", "excluded"}[n]) }},
	{"system", "system", func(b *Batch, n int) { b.SetSystem(fmt.Sprint("s", n)) }},
	{"prompt", "prompt", func(b *Batch, n int) { b.SetPrompt(fmt.Sprint("p", n)) }},
	{"temperature", "temperature", setting(`{"temperature":0.%d}`)},
	{"top_p", "top_p", setting(`{"top_p":0.%d}`)},
	{"address", "address", setting(`{"base_url":"http://127.0.0.1:%d","key_env":"K"}`)},
	{"profile", "address", setting(`{"profile":"p%d"}`)},
	{"compact", "address", setting(`{"compact.key_env":"K%d"}`)},
	{"embedding", "address", setting(`{"embedding.base_url":"http://127.0.0.1:%d"}`)},
	{"data", "data", func(b *Batch, n int) { b.SetContextData("app.x", []byte(fmt.Sprint(n))) }},
	{"switch", "", func(b *Batch, n int) { b.Switch([]string{"third", "main"}[n]) }},
}

func setting(form string) func(*Batch, int) {
	return func(b *Batch, n int) {
		var set map[string]json.RawMessage
		_ = json.Unmarshal([]byte(fmt.Sprintf(form, n+1)), &set)
		b.SetContextSettings(set)
	}
}

// TestUndoGoesByThings takes an operation back after a later one: of another thing that is no matter, of the same one the error names it, and nothing else.
func TestUndoGoesByThings(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	for _, first := range thingSteps {
		for _, second := range thingSteps {
			c := newContext(t, s, "one", ">two")
			for _, name := range []string{"side", "other", "third"} {
				b := c.Begin("")
				b.Fork(name, ForkOptions{Stay: true})
				commit(t, b)
			}
			begun := everything(t, c)
			var ops []string
			for n, step := range []func(*Batch, int){first.do, second.do} {
				b := c.Begin("main")
				step(b, n)
				done, err := b.Commit(t.Context())
				if err == nil && done.Operation != "" {
					ops = append(ops, done.Operation)
				}
			}
			if len(ops) < 2 { // after another one than its first form there is nothing to change
				continue
			}
			_, err := s.Undo(t.Context(), c.ID.String(), "main", ops[0])
			if stands := first.things != "" && first.things == second.things && first.things != "there"; stands {
				if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "operation "+ops[1]+" (") {
					t.Errorf("undo of %s after %s: %v, want a refusal that names %s", first.name, second.name, err, ops[1])
				}
				continue
			}
			if err != nil {
				t.Errorf("undo of %s after %s: %v", first.name, second.name, err)
				continue
			}
			undoOp(t, c, "main", ops[1])
			switched := first.name == "switch" && second.name == "switch" // who takes the second one back goes to where that came from
			if got := everything(t, c); got != begun && !switched {
				t.Errorf("after %s, %s and the undo of both there is\n%s\nwant\n%s", first.name, second.name, got, begun)
			}
		}
	}
}

// everything shows what a conversation has, as one text.
func everything(t *testing.T, c *ChatContext) string {
	t.Helper()
	info, err := c.Info(t.Context())
	failOn(t, err)
	branches, err := c.Branches(t.Context())
	failOn(t, err)
	out := picture(t, c) + fmt.Sprintln(info.Title, info.Labels)
	for _, b := range branches {
		out += fmt.Sprintln(b.Name, b.System, b.Prompt)
	}
	return out + fmt.Sprint(settingsOf(t, c), info.AppData)
}

func settingsOf(t *testing.T, c *ChatContext) map[string]string {
	t.Helper()
	info, err := c.Info(t.Context())
	failOn(t, err)
	out := map[string]string{}
	for name, value := range info.Settings {
		out[name] = string(value)
	}
	return out
}

// TestUndoOfAnOlderSettingLeavesTheOthers: of the settings of a place an undo restores those that the operation changed, in a conversation and in the store.
func TestUndoOfAnOlderSettingLeavesTheOthers(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "one")
		var ops []string
		for _, v := range []string{`{"temperature":0.5}`, `{"top_p":0.5}`, `{"app.x":1}`} {
			var all map[string]json.RawMessage
			failOn(t, json.Unmarshal([]byte(v), &all))
			done, err := s.SetSettings(t.Context(), all)
			failOn(t, err)
			ops = append(ops, done.Operation)
			b := c.Begin("")
			b.SetContextSettings(all)
			commit(t, b)
		}
		undoOp(t, c, "", "1")
		undoOp(t, c, "", ops[1])
		values, err := s.Settings(t.Context())
		failOn(t, err)
		want(t, fmt.Sprint(settingsOf(t, c)), `map[app.x:1 top_p:0.5]`)
		want(t, fmt.Sprintf("%s", values), `map[app.x:1 temperature:0.5]`)
		undoOp(t, c, "", ops[0])
		if _, err := s.Redo(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		values, err = s.Settings(t.Context())
		failOn(t, err)
		want(t, fmt.Sprintf("%s", values), `map[app.x:1 temperature:0.5]`)
	})
}

// TestUndoOfTheActiveBranchsMaking leads to the branch that it came from, or is refused.
func TestUndoOfTheActiveBranchsMaking(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "one")
		for _, step := range []func(*Batch){
			func(b *Batch) { b.Fork("a", ForkOptions{Stay: true}) }, // 1
			func(b *Batch) { b.Switch("a") },                        // 2
			func(b *Batch) { b.Fork("b", ForkOptions{Stay: true}) }, // 3, from a
			func(b *Batch) { b.Switch("b") },
		} {
			b := c.Begin("")
			step(b)
			commit(t, b)
		}
		undoOp(t, c, "", "3")
		want(t, picture(t, c), "a*: one; main: one")
		redoOn(t, c, "b")
		want(t, picture(t, c), "a: one; b*: one; main: one")
		b := c.Begin("")
		b.RemoveBranch("a")
		commit(t, b)
		if _, err := s.Undo(t.Context(), c.ID.String(), "", "3"); !errors.Is(err, ErrConflict) {
			t.Errorf("undo of the making of the active branch, whose origin is gone: %v", err)
		}
		want(t, picture(t, c), "b*: one; main: one")
	})
}

// TestOperationsOfBeforeStandOnEachOther: in a store of before format 4 an operation concerns all of its branch or conversation.
func TestOperationsOfBeforeStandOnEachOther(t *testing.T) {
	s, err := Open(storeFile(t, "format-3"), Options{Program: "test", Judge: byName{}})
	failOn(t, err)
	c, err := s.Context(t.Context(), "First")
	failOn(t, err)
	appendTo(t, c, "main", says("new")...)
	if _, err := s.Undo(t.Context(), c.ID.String(), "main", "1"); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "(append)") {
		t.Errorf("undo of an operation of before, below others on its branch: %v", err)
	}
	b := c.Begin("main")
	b.SetTitle("Later")
	title := commit(t, b).Operation
	b = c.Begin("main")
	b.SetSystem("later")
	commit(t, b)
	undoOp(t, c, "main", title)
	closeChecked(t, s)
}

// TestAnOperationThatComesBackIsInItsPlace takes an older operation back and brings it back by name: undo without a name meets it where it was done.
func TestAnOperationThatComesBackIsInItsPlace(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "one")
		for _, step := range []func(*Batch){func(b *Batch) { b.SetTitle("T") }, func(b *Batch) { b.Label("l") }, func(b *Batch) { b.Tag("g", "@1") }} {
			b := c.Begin("")
			step(b)
			commit(t, b)
		}
		undoOp(t, c, "", "2")
		undoOp(t, c, "", newestOperation(t, c))
		for _, op := range []string{"3", "2", "1"} {
			done, err := c.Undo(t.Context(), "")
			failOn(t, err)
			want(t, done.Undid.ID, op)
		}
	})
}
