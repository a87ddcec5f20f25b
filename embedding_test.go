package chatctx_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// embedded builds the program of that name out of docs/embedding.md.
func embedded(t *testing.T, name string) string {
	t.Helper()
	return programOf(t, "docs/embedding.md", name)
}

// programOf builds the program of that name out of a page of the docs.
func programOf(t *testing.T, page, name string) string {
	t.Helper()
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(doc, -1) {
		if !bytes.HasPrefix(block[1], []byte("// Command "+name+" ")) {
			continue
		}
		dir := t.TempDir()
		source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, name)
		if err := os.WriteFile(source, block[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return program
	}
	t.Fatalf("%s has no program %s", page, name)
	return ""
}

// output runs a program that has to succeed.
func output(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// started starts a program that ends with the test, and gives its lines.
func started(t *testing.T, program string, args ...string) *bufio.Scanner {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of t.Context has killed it
	return bufio.NewScanner(out)
}

func line(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("the program has ended: %v", lines.Err())
	}
	return lines.Text()
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// opened opens a store that is checked at the end.
func opened(t *testing.T, path string) *chatctx.Store {
	t.Helper()
	return storetest.Open(t, path, chatctx.Options{Create: true, Judge: approval.Rules{}})
}

func TestEmbeddedDesktop(t *testing.T) {
	desk, path := embedded(t, "desk"), filepath.Join(t.TempDir(), "chats.db")
	run := func(args ...string) string {
		t.Helper()
		return output(t, "", desk, append([]string{path}, args...)...)
	}
	same(t, run("say", "Boats", "A name?"), "#1 on main\n")
	watched := started(t, desk, path, "watch")
	same(t, line(t, watched), "watching")
	same(t, run("say", "Boats", "Petrel?"), "#2 on main\n")
	same(t, line(t, watched), "append on main")
	same(t, run("fork", "Boats", "other"), "other has 1 messages\n")
	same(t, run("say", "Boats", "Tern?"), "#2 on other\n")
	same(t, run("show", "Boats"), "1 user: A name?\n2 user: Tern?\n")
	same(t, run("list"), "Boats: 3 messages, 2 branches\n")
	if out, err := exec.Command(desk, path, "show", "Planes").CombinedOutput(); err == nil {
		t.Errorf("a conversation that is not there: %s", out)
	}
}

func TestEmbeddedApproval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	s := opened(t, path)
	asks := &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "look", Arguments: json.RawMessage(`{"at":"sea"}`)}, {ID: "b", Tool: "sink", Arguments: json.RawMessage(`{}`)},
		{ID: "c", Tool: "burn", Arguments: json.RawMessage(`{}`)}}}
	if _, err := s.New(t.Context(), record.NewContext{Title: "Boats", Messages: []*chatctx.Message{pool.NewText(pool.User, "look"), asks}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddRule(t.Context(), record.Rule{Effect: record.Deny, Tool: "burn"}); err != nil {
		t.Fatal(err)
	}
	url := line(t, started(t, embedded(t, "approve"), path))
	answer := func(r *http.Response, err error) (string, int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(body)), r.StatusCode
	}
	list, _ := answer(http.Get(url + "/calls"))
	waiting := map[string]string{}
	if err := json.Unmarshal([]byte(list), &waiting); err != nil {
		t.Fatal(err)
	}
	same(t, strings.Join(slices.Sorted(maps.Values(waiting)), "; "), `burn {}; look {"at":"sea"}; sink {}`)
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{"/calls/a/approve?by=ann", "approved/none", 200},
		{"/calls/a/deny?by=bob", "", 409},
		{"/calls/b/deny?by=bob&reason=no", "denied/none", 200},
		{"/calls/c/approve", "", 409}, // a rule of the store denies it
		{"/calls/d/approve", "", 404},
		{"/calls/b/shrug", "", 400},
	} {
		body, status := answer(http.Post(url+c.path, "", nil))
		if status != c.status || c.want != "" && body != c.want {
			t.Errorf("%s: %d %q", c.path, status, body)
		}
	}
	call, err := s.Call(t.Context(), "", "", "a")
	if err != nil || call.Decisions[len(call.Decisions)-1].Claimed != "ann" {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestEmbeddedImporter(t *testing.T) {
	take, path := embedded(t, "take"), filepath.Join(t.TempDir(), "chats.db")
	long := strings.Repeat("of the sea ", 10_000)
	same(t, output(t, "Ships\t1\t\tuser\t"+long+"\nShips\t2\t1\tassistant\tOne.", take, path), "Ships: 2 new, 0 known, 1 branches\n")
	text := "Boats\t1\t\tuser\tA name?\nBoats\t2\t1\tassistant\tPetrel.\nBoats\t3\t1\tassistant\tTern.\n"
	same(t, output(t, text, take, path), "Boats: 3 new, 0 known, 2 branches\n")
	same(t, output(t, text+"Boats\t4\t3\tuser\tWhy?\n", take, path), "Boats: 1 new, 3 known, 2 branches\n")
	s := opened(t, path)
	c, err := s.Context(t.Context(), "Boats")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for e, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		said += e.Text() + " "
	}
	same(t, said, "A name? Tern. Why? ")
	cmd := exec.Command(take, path)
	cmd.Stdin = strings.NewReader("no tabs\n")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("a line without fields: %s", out)
	}
}
