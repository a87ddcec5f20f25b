package serve

import (
	"testing"

	"github.com/chatctx/chatctx/chatctx"
)

// TestSettingsOfTheEnvironment: the settings in force on a branch include those of the server's environment, below all settings in the store; for a single
// place only its own are shown.
func TestSettingsOfTheEnvironment(t *testing.T) {
	t.Setenv("CHATCTX_MODEL", "of-the-environment")
	t.Setenv("CHATCTX_TEMPERATURE", "0.5")
	t.Setenv("CHATCTX_TOP_P", "7") // not in force
	store, err := chatctx.OpenMemory(chatctx.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	a := over(t, store, Options{})
	id, main := a.filled("Trip", 2)
	a.post("/settings", object{"settings": object{"temperature": 0.25}})
	want := func(path string, model, temperature any) {
		t.Helper()
		got, _ := a.get(path)["settings"].(object)
		if got["model"] != model || got["temperature"] != temperature || got["top_p"] != nil {
			t.Errorf("%s has %v", path, got)
		}
	}
	want(main, "of-the-environment", 0.25)
	want(main+"/settings", "of-the-environment", 0.25)
	want("/settings", nil, 0.25)
	want("/contexts/"+id+"/settings", nil, nil)
	a.post("/contexts/"+id+"/settings", object{"settings": object{"model": "of-the-context"}})
	want(main, "of-the-context", 0.25)
}
