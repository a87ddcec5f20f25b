package plural

import "testing"

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 messages": Count(0, "message"), "1 message": Count(1, "message"), "2 messages": Count(2, "message"), "1 branch": Count(1, "branch"), "3 branches": Count(3, "branch"),
		"1 entry": Count(1, "entry"), "2 entries": Count(2, "entry"), "2 replies": Count(2, "reply"), "2 days": Count(2, "day"), "1000 calls": Count(1000, "call"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
