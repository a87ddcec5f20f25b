package chatctx

import "testing"

// TestModelWindowIsKept: what a server reports is kept by server and model, with its doubt.
func TestModelWindowIsKept(t *testing.T) {
	s, _ := clocked(t)
	for _, w := range []struct {
		server, model string
		ModelWindow
	}{{"a", "m", ModelWindow{8192, true}}, {"b", "m", ModelWindow{4096, false}}, {"a", "n", ModelWindow{Tokens: 1}}, {"a", "m", ModelWindow{16384, false}}} {
		if err := s.SetModelWindow(t.Context(), w.server, w.model, w.ModelWindow); err != nil {
			t.Fatal(err)
		}
		if got, err := s.ModelWindow(t.Context(), w.server, w.model); got != w.ModelWindow || err != nil {
			t.Errorf("%s of %s is kept as %+v, %v, not as %+v", w.model, w.server, got, err, w.ModelWindow)
		}
	}
	if got, err := s.ModelWindow(t.Context(), "b", "n"); got != (ModelWindow{}) || err != nil {
		t.Errorf("a window that nobody reported: %+v, %v", got, err)
	}
}
