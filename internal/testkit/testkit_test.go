package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// spy is a test whose messages and end are examined. Its Fatal and Skip end the goroutine, as those of a test do.
type spy struct {
	testing.TB
	said   []string
	failed bool
}

func (s *spy) Helper()                      {}
func (s *spy) Name() string                 { return "TestSpy" }
func (s *spy) Failed() bool                 { return s.failed }
func (s *spy) Logf(f string, args ...any)   { s.said = append(s.said, fmt.Sprintf(f, args...)) }
func (s *spy) Error(args ...any)            { s.said, s.failed = append(s.said, fmt.Sprint(args...)), true }
func (s *spy) Fatal(args ...any)            { s.Error(args...); panic(s) }
func (s *spy) Fatalf(f string, args ...any) { s.Fatal(fmt.Sprintf(f, args...)) }
func (s *spy) Skipf(f string, args ...any)  { s.Logf(f, args...); panic(s) }

// watched runs fn as a test and returns its messages, and whether it failed.
func watched(t *testing.T, fn func(testing.TB)) (said string, failed bool) {
	s := &spy{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(s) {
			panic(p)
		}
		said, failed = strings.Join(s.said, "\n"), s.failed
	}()
	fn(s)
	return
}

func TestSeeds(t *testing.T) {
	rounds := 3
	if Race {
		rounds = 6 // of which half are run
	}
	for _, c := range []struct {
		long, seed string
		fails      uint64 // the seed whose round fails
		want       []uint64
		says       string
	}{
		{"", "", 0, []uint64{1, 2, 3}, "3 rounds in"},
		{"5", "", 0, []uint64{1, 2, 3, 4, 5}, "5 rounds in"},
		{"1", "70", 0, []uint64{70}, "from seed 70"},
		{"1ns", "8", 0, []uint64{8, 9, 10}, "from seed 8"},
		{"", "", 2, []uint64{1, 2}, "CHATCTX_LONG=1 CHATCTX_SEED=2 go test -run '^TestSpy$'"},
		{"0", "", 0, nil, "CHATCTX_LONG is \"0\""},
		{"-3s", "", 0, nil, "CHATCTX_LONG is \"-3s\""},
		{"much", "", 0, nil, "CHATCTX_LONG is \"much\""},
		{"", "-1", 0, nil, "CHATCTX_SEED"},
	} {
		for _, fatal := range []bool{false, true} {
			t.Setenv("CHATCTX_LONG", c.long)
			t.Setenv("CHATCTX_SEED", c.seed)
			var got []uint64
			said, failed := watched(t, func(t testing.TB) {
				for seed := range Seeds(t, rounds) {
					got = append(got, seed)
					switch {
					case seed != c.fails:
					case fatal:
						t.Fatal("wrong")
					default:
						t.Error("wrong")
					}
				}
			})
			if !slices.Equal(got, c.want) || !strings.Contains(said, c.says) || failed != (c.want == nil || c.fails != 0) {
				t.Errorf("long %q, seed %q: rounds %d, failed %v, said %q", c.long, c.seed, got, failed, said)
			}
		}
	}
}

// TestSeedsForATime: rounds begin until the time is over.
func TestSeedsForATime(t *testing.T) {
	t.Setenv("CHATCTX_LONG", "20ms")
	start, rounds := time.Now(), 0
	for range Seeds(t, 3) {
		rounds++
	}
	if took := time.Since(start); took < 20*time.Millisecond || rounds <= 3 {
		t.Errorf("%d rounds in %v", rounds, took)
	}
}

func TestShared(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "project", "a", "b")
	there := filepath.Join(dir, "shared", "samples")
	for _, d := range []string{inner, there} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "project", "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)
	if got := Shared(t, "samples"); got != there {
		t.Errorf("%s, want %s", got, there)
	}
	said, failed := watched(t, func(t testing.TB) { Shared(t, "cases") })
	if failed || !strings.Contains(said, filepath.Join(dir, "shared", "cases")+" is not there") {
		t.Errorf("failed %v, said %q", failed, said)
	}
}

func TestProgram(t *testing.T) {
	t.Setenv("CI", "")
	if got := Program(t, "no-such-program", "go"); filepath.Base(got) != "go" && filepath.Base(got) != "go.exe" {
		t.Error(got)
	}
	for ci, want := range map[string]bool{"": false, "true": true} {
		t.Setenv("CI", ci)
		said, failed := watched(t, func(t testing.TB) { Program(t, "no-such-program") })
		if failed != want || !strings.Contains(said, "no-such-program") {
			t.Errorf("CI %q: failed %v, said %q", ci, failed, said)
		}
	}
}
