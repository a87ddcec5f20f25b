package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The test binary is a program that imports when CHATCTX_IMPORT says what. It says each time that it has read more, and goes on when it is told to.
func init() {
	path := os.Getenv("CHATCTX_IMPORT")
	if path == "" {
		return
	}
	in := bufio.NewReader(os.Stdin)
	err := importStepwise(os.Getenv("CHATCTX_FILE"), path, func() {
		fmt.Println("more")
		if _, err := in.ReadString('\n'); err != nil {
			os.Exit(1)
		}
	})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// importStepwise imports into the store in a file, and calls step each time that it has read more.
func importStepwise(store, path string, step func()) error {
	s, err := chatctx.Open(store, chatctx.Options{Create: true})
	if err != nil {
		return err
	}
	_, err = Import(context.Background(), s, []string{path}, Options{Progress: func(Progress) { step() }})
	return errors.Join(err, s.Close())
}

// killedImport imports in another program, which is killed after a number of steps, whatever it stores meanwhile.
func killedImport(t *testing.T, store, path string, steps int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHATCTX_IMPORT="+path, "CHATCTX_FILE="+store)
	in, out := started(t, cmd)
	lines := bufio.NewScanner(out)
	for n := 0; ; n++ {
		if !lines.Scan() { // it went on from where the one before it was killed, and came to the end
			break
		}
		if lines.Text() != "more" {
			t.Errorf("after %d of %d steps it says %q", n, steps, lines.Text())
		}
		if n == steps {
			break
		}
		_, _ = io.WriteString(in, "\n") // if it ended, it says no more
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// started starts a program, and returns its input and what it prints.
func started(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// openFile opens a store that a test closes itself, since others open it too.
func openFile(t *testing.T, path string) *chatctx.Store {
	t.Helper()
	s, err := chatctx.Open(path, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKilledImports kills imports of a file with several conversations, of an export of a store and of a folder. The next import goes on: in the end all is there, once, and
// the store is whole at any time.
func TestKilledImports(t *testing.T) {
	for seed := range testkit.Seeds(t, 1) {
		rng := rand.New(rand.NewPCG(seed, 5))
		for name, path := range killedInputs(t) {
			if !testkit.Race || name == "file" { // the programs that are killed are built with it, too
				t.Run(name, func(t *testing.T) { holdKilled(t, rng, path) })
			}
		}
	}
}

// many is how many conversations are imported: they need three batches.
const many = 18

// killedInputs writes the same conversations in three ways.
func killedInputs(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range many {
		all = append(all, fmt.Sprintf(`{"id":"c%d","title":"Large %d","current_node":"b","mapping":{
			"a":{"id":"a","parent":null,"children":["b"],"message":{"id":"a","author":{"role":"user"},"content":{"content_type":"text","parts":["question %d"]}}},
			"b":{"id":"b","parent":"a","children":[],"message":{"id":"b","author":{"role":"assistant"},"content":{"content_type":"text","parts":["%s%d"]}}}}}`,
			i, i, i, strings.Repeat("x", 1<<20), i))
	}
	for i := 0; i < len(all); i += 4 {
		write(t, filepath.Join(folder, fmt.Sprintf("part%d.json", i)), "["+strings.Join(all[i:i+4], ",")+"]")
	}
	file := write(t, filepath.Join(dir, "conversations.json"), "["+strings.Join(all, ",")+"]")
	s := memoryStore(t)
	importInto(t, s, file)
	export := write(t, filepath.Join(dir, "export.jsonl"), string(exported(t, s, ExportOptions{All: true})))
	return map[string]string{"file": file, "export": export, "folder": folder}
}

func holdKilled(t *testing.T, rng *rand.Rand, path string) {
	steps := 0
	once, killed := filepath.Join(t.TempDir(), "once.db"), filepath.Join(t.TempDir(), "killed.db")
	if err := importStepwise(once, path, func() { steps++ }); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, n := range []int{rng.IntN(steps), steps - 1 - rng.IntN(steps/20)} { // the second one when a batch is stored
		killedImport(t, killed, path, n)
		s := openFile(t, killed)
		storetest.Check(t, s)
		stored = strings.Count(contentsOf(t, s), "question")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if stored < 8 || stored > many {
		t.Errorf("after the last kill %d conversations are there", stored)
	}
	s, single := openFile(t, killed), openFile(t, once)
	defer s.Close()
	defer single.Close()
	rep := importInto(t, s, path)
	if rep.Contexts != many-stored || rep.Messages+rep.Duplicated != 2*many || rep.Outcome() != Complete {
		t.Errorf("%d were there; the report: %+v", stored, rep)
	}
	if got, want := contentsOf(t, s), contentsOf(t, single); got != want {
		t.Errorf("not as after a single import:\n%s", firstDifference(got, want))
	}
	if rep := importInto(t, s, path); rep.Contexts != 0 || rep.Messages != 0 {
		t.Errorf("a second import adds: %+v", rep)
	}
}
