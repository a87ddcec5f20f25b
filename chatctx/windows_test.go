package chatctx

import (
	"testing"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
)

// TestModelWindowIsKept: what a server reports is kept by server and model, with its doubt.
func TestModelWindowIsKept(t *testing.T) {
	s, _ := clocked(t)
	for _, w := range []struct {
		server, model string
		view.ModelWindow
	}{{"a", "m", view.ModelWindow{Tokens: 8192, Sure: true}}, {"b", "m", view.ModelWindow{Tokens: 4096, Sure: false}}, {"a", "n", view.ModelWindow{Tokens: 1}}, {"a", "m", view.ModelWindow{Tokens: 16384, Sure: false}}} {
		if err := view.SetModelWindow(t.Context(), base.Of(s), w.server, w.model, w.ModelWindow); err != nil {
			t.Fatal(err)
		}
		if got, err := view.ModelWindowOf(t.Context(), base.Of(s), w.server, w.model); got != w.ModelWindow || err != nil {
			t.Errorf("%s of %s is kept as %+v, %v, not as %+v", w.model, w.server, got, err, w.ModelWindow)
		}
	}
	if got, err := view.ModelWindowOf(t.Context(), base.Of(s), "b", "n"); got != (view.ModelWindow{}) || err != nil {
		t.Errorf("a window that nobody reported: %+v, %v", got, err)
	}
}
