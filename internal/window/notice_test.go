package window

import "testing"

func TestShort(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1k", 1449: "1.4k", 12_400: "12.4k", 18_500: "18.5k", 99_949: "99.9k", 99_950: "100k", 157_499: "157k", 999_499: "999k", 999_500: "1M", 1_250_000: "1.2M"} {
		if got := Short(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestNotices(t *testing.T) {
	p := &Pruning{Before: 12_400, After: 2_100, Results: 9, RequestAfter: 18_500}
	if got, want := p.Notice(150_000), "tool outputs pruned: 12.4k → 2.1k tokens (−83 %), 9 of them\n  the request: 18.5k of 150k tokens (12 %)"; got != want {
		t.Errorf("%s", got)
	}
	c := &Compacted{Before: 157_000, After: 9_100, Messages: 80, By: "model", System: 1_800, SummarySize: 3_200, Kept: 2_700, Calls: 300, Tools: 1_100}
	want := "compacted: 157k → 9.1k tokens (−94 %), 80 messages in a summary by model\n  system 1.8k, summary 3.2k, kept 2.7k (calls 300), tools 1.1k"
	if got := c.Notice(); got != want {
		t.Errorf("%s", got)
	}
}
