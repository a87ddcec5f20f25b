package boltkv

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
)

func TestNameable(t *testing.T) {
	for path, want := range map[string]bool{
		`s.db`: true, `C:\chats\s.db`: true, `C:/chats/s.db`: true, `\\server\share\s.db`: true, `\\?\C:\s.db`: true, `..\s.db`: true, `C:\`: true, `console.db`: true, `com.db`: true,
		`a:b.db`: false, `chats:b.db`: false, `C:\chats\s.db:x`: false, `NUL`: false, `C:\chats\con`: false, `CONIN$`: false, `lpt9`: false, `aux `: false,
	} {
		if err := nameable(path); (err == nil) != want || err != nil && !errors.Is(err, kv.ErrNotOurs) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
