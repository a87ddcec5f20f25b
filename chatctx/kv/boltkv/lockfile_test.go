package boltkv

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// TestLineOfHolder: what a slot of the lock file says about a program is read back, and what is no such line is nobody.
func TestLineOfHolder(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	for _, h := range []kv.Holder{{Since: at}, {PID: 7, Command: "an \"app\"", Purpose: "import", Since: at, Waits: true}, {PID: 7}} {
		var plain kv.Holder
		if err := json.Unmarshal(lineOf(&h), &plain); err != nil || plain != h {
			t.Errorf("encoding/json reads %s as %+v, %v", lineOf(&h), plain, err)
		}
		if got := holderOf(lineOf(&h)); got == nil || *got != h {
			t.Errorf("%s is read as %+v", lineOf(&h), got)
		}
	}
	for _, line := range []string{"", "null", "7", "[]", `{"pid":"x"}`, `{"pid":1.5}`, `{"since":"noon"}`, `{"pid":7`, `{"pid":7,"pid":8}`} {
		if got := holderOf([]byte(line)); got != nil {
			t.Errorf("%s is read as %+v", line, got)
		}
	}
}
