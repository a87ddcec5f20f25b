package ui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// TestModelOfTheEnvironment: the model on the screen is the one that would be asked.
func TestModelOfTheEnvironment(t *testing.T) {
	t.Setenv("CHATCTX_MODEL", "of-the-environment")
	st := newStore(t)
	c, err := st.New(t.Context(), record.NewContext{Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	if got := plain(drive(t, Options{Store: st}, 120, 30).model); !strings.Contains(got, "of-the-environment") {
		t.Errorf("the screen has not the model of the environment:\n%s", got)
	}
	b := c.Begin("")
	b.SetSettings(map[string]json.RawMessage{"model": json.RawMessage(`"of-the-branch"`)})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := plain(drive(t, Options{Store: st}, 120, 30).model); !strings.Contains(got, "of-the-branch") || strings.Contains(got, "of-the-environment") {
		t.Errorf("the screen has not the model of the branch:\n%s", got)
	}
}
