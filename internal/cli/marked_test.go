package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOneMarkIsRemoved: unpin and include remove their own mark alone.
func TestOneMarkIsRemoved(t *testing.T) {
	store := filepath.Join(t.TempDir(), "chats.db")
	must(t, store, "new", "Boats")
	must(t, store, "add", "user", "Sails")
	for _, c := range []struct{ mark, other, name string }{{"exclude", "unpin", "excluded"}, {"pin", "include", "pinned"}} {
		must(t, store, c.mark, "@1")
		must(t, store, c.other, "@1")
		if list := must(t, store, "pin"); !strings.Contains(list, c.name) {
			t.Errorf("%s after %s: the marks are %q", c.other, c.mark, list)
		}
	}
	must(t, store, "check")
}

// TestKeyGoesToItsAddress: a key alone is set where its address stands, since it counts nowhere else.
func TestKeyGoesToItsAddress(t *testing.T) {
	for _, place := range []string{"--all", "--default"} {
		store := filepath.Join(t.TempDir(), "chats.db")
		must(t, store, "new", "Boats")
		must(t, store, "config", place, "base_url=http://localhost:1/v1")
		must(t, store, "config", "key_env=SOME_KEY")
		if set := must(t, store, "config", place); !strings.Contains(set, "key_env=SOME_KEY") {
			t.Errorf("config %s: %q", place, set)
		}
		must(t, store, "check")
	}
}
