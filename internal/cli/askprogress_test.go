package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx/turn"
)

// TestAskTellsHowFarAllAre asks two; the line shows both, gives way to an answer, and is gone at the end.
func TestAskTellsHowFarAllAre(t *testing.T) {
	r, _ := testRun(t.Context())
	var line bytes.Buffer
	r.con.err, r.con.errs, r.con.width = &line, true, 80
	a, b := &turn.Turn{}, &turn.Turn{}
	w := r.watching([]*turn.Turn{a, b}, map[*turn.Turn]string{a: "one\x1b", b: "two"})
	a.Show(turn.Event{Delta: &wire.Delta{Text: "some words"}})
	if got := line.String(); !strings.HasSuffix(got, "one\\x1b 2 words  two waits") {
		t.Errorf("the line is %q", got)
	}
	printed := false
	w.ended(&turn.Answer{Turn: a}, func() {
		printed = true
		if !strings.HasSuffix(line.String(), "\r\x1b[K") {
			t.Errorf("an answer is printed behind the line: %q", line.String())
		}
	})
	if !printed || !strings.HasSuffix(line.String(), "one\\x1b done  two waits") {
		t.Errorf("the line is %q", line.String())
	}
	w.ended(&turn.Answer{Turn: b, Err: errors.New("no")}, func() {})
	if !strings.HasSuffix(line.String(), "\r\x1b[K") {
		t.Errorf("the line stays: %q", line.String())
	}
}
