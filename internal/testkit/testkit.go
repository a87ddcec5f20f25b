// Package testkit gives tests their surroundings: how long they run and from which seed, the folder of samples beside the project, programs of the machine.
//
// It owns the two variables that every long test obeys. CHATCTX_LONG is a duration ("90s") or a number of rounds ("5000"); CHATCTX_SEED is the seed of the
// first round.
package testkit

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Seeds returns the seeds of the rounds of a test that looks for rare failures: n rounds, with the seeds 1, 2 and so on. If CHATCTX_LONG is a number, it is the
// number of rounds; if it is a duration, rounds begin until it is over, and at least n of them. The sequence ends at the first round that fails, and the test
// logs how to repeat that round; otherwise it logs how many rounds it ran. Under the race detector, where a round takes five times as long, half of n are enough: what a
// round finds does not depend on it.
func Seeds(t testing.TB, n int) iter.Seq[uint64] {
	t.Helper()
	if Race {
		n = (n + 1) / 2
	}
	rounds, time, err := length(os.Getenv("CHATCTX_LONG"), n)
	if err != nil {
		t.Fatal(err)
	}
	first := uint64(1)
	if s := os.Getenv("CHATCTX_SEED"); s != "" {
		if first, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal("CHATCTX_SEED: ", err)
		}
	}
	return func(yield func(uint64) bool) { run(t, first, rounds, time, yield) }
}

// Fewer returns the number of rounds of a test that does one thing after the other. The race detector, under which each takes several times as long, sees in a
// third of them what it can see in all, and .ci/run runs all of them without it.
func Fewer(n int) int {
	if Race {
		return (n + 2) / 3
	}
	return n
}

// Third reports whether a test that does the same with many files takes the i-th: under the race detector every third, else each. .ci/run runs such tests without
// it, too.
func Third(i int) bool { return !Race || i%3 == 0 }

// Sequential skips a test of code in which nothing runs at the same time under the race detector, which could find nothing there and takes ten times as long.
// .ci/run runs the packages with such tests without it, too.
func Sequential(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("nothing runs at the same time here: it runs without the race detector")
	}
}

// Alone reports whether this process runs the one test t alone, so that the test may limit what the whole process can do. Otherwise it runs such a process; the test
// has to return then, and fails if that one did.
func Alone(t *testing.T) bool {
	t.Helper()
	const name = "CHATCTX_TEST_ALONE"
	if os.Getenv(name) == t.Name() {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), name+"="+t.Name())
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Long reports whether CHATCTX_LONG is set: a test without rounds may then do more.
func Long() bool { return os.Getenv("CHATCTX_LONG") != "" }

// length parses CHATCTX_LONG for a test of n rounds. It returns the least number of rounds, and for how long further rounds begin.
func length(long string, n int) (rounds int, more time.Duration, err error) {
	if long == "" {
		return n, 0, nil
	}
	if rounds, err := strconv.Atoi(long); err == nil && rounds > 0 {
		return rounds, 0, nil
	}
	if more, err = time.ParseDuration(long); err != nil || more <= 0 {
		return 0, 0, fmt.Errorf("CHATCTX_LONG is %q: set it to a duration (90s) or to a number of rounds (5000)", long)
	}
	return n, more, nil
}

func run(t testing.TB, first uint64, rounds int, more time.Duration, yield func(uint64) bool) {
	seed, start := first, time.Now()
	whole := false // stays false if a round ends its goroutine, as Fatal does
	defer func() {
		if t.Failed() {
			t.Logf("to repeat the round that failed: CHATCTX_LONG=1 CHATCTX_SEED=%d go test -run '^%s$'", seed, t.Name())
		} else if whole {
			t.Logf("%d rounds in %v, from seed %d", seed-first, time.Since(start).Round(time.Millisecond), first)
		}
	}()
	for seed-first < uint64(rounds) || time.Since(start) < more {
		if !yield(seed) || t.Failed() {
			return
		}
		seed++
	}
	whole = true
}

// Shared returns the path of a file or folder in ../shared: the cases, samples and schemas that may be beside a checkout of the project. If it does not exist,
// the test is skipped.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(root, "go.mod")) {
		if filepath.Dir(root) == root {
			t.Fatal("no go.mod in the folder of the test or above it")
		}
		root = filepath.Dir(root)
	}
	full := filepath.Join(append([]string{filepath.Dir(root), "shared"}, path...)...)
	if !exists(full) {
		t.Skipf("%s is not there: it belongs beside the checkout", full)
	}
	return full
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Program returns the path of the first of the named programs that the machine has. If it has none, the test is skipped; in CI (the variable CI is set) it
// fails.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("none of %q is on this machine: .ci/run installs one", names)
	}
	t.Skipf("none of %q is on this machine", names)
	return ""
}
