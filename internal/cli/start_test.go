package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// dearInits are what initialisers of other modules' packages may allocate beyond the bound for all, in KB. jsonschema compiles the schemas of schemas of five drafts whenever it is
// linked: no call of ours begins it, and none can put it off.
var dearInits = map[string]int{"github.com/santhosh-tekuri/jsonschema/v6": 2048}

// TestStartsLean holds that no package of the command builds tables, compiles grammars or reads what is embedded before somebody asks for it. It counts bytes, which are
// the same on each machine, and no time. A package that needs more makes it at the first use (sync.OnceValue).
func TestStartsLean(t *testing.T) {
	const most, mostOfOurs = 512, 32 // KB
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := exec.Command(exe, "version")
	start.Args[0] = "chatctx" // what TestMain makes the command of
	start.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	start.Stderr = &trace
	if err := start.Run(); err != nil {
		t.Fatal(err)
	}
	packages, ours := 0, 0
	for line := range strings.Lines(trace.String()) {
		var name string
		var at, took float64
		var bytes int
		if n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &name, &at, &took, &bytes); n != 4 {
			continue
		}
		bound := most
		if strings.HasPrefix(name, "github.com/chatctx/chatctx/") {
			ours++
			bound = mostOfOurs
		}
		if dear, ok := dearInits[name]; ok {
			bound = dear
		}
		packages++
		if bytes > bound<<10 {
			t.Errorf("the initialisers of %s allocate %d KB, more than %d", name, bytes>>10, bound)
		}
	}
	if packages < 50 || ours < 10 {
		t.Errorf("read only %d packages, %d of them ours, from:\n%s", packages, ours, trace.String())
	}
}

// TestCollectsNothingAtTheStart looks that a short command ends before the first garbage collection.
func TestCollectsNothingAtTheStart(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := exec.Command(exe, "version")
	start.Args[0] = "chatctx"
	start.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC=")
	var trace strings.Builder
	start.Stderr = &trace
	if err := start.Run(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(trace.String(), "gc 1 ") {
		t.Errorf("version collected garbage: %s", trace.String())
	}
}
