package chatctx_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// provider is a server that speaks OpenAI's wire and says one thing after the other: "TOOL ARGUMENTS" is a call.
type provider struct {
	url    string
	mu     sync.Mutex
	says   []string
	bodies []string
}

func newProvider(t *testing.T, says ...string) *provider {
	p := &provider{says: says}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies = append(p.bodies, string(body))
	if len(p.says) == 0 {
		http.Error(w, "that was all", http.StatusBadRequest)
		return
	}
	said := map[string]any{"role": "assistant", "content": p.says[0]}
	finish := "stop"
	if tool, arguments, ok := strings.Cut(p.says[0], " {"); ok {
		finish = "tool_calls"
		said = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": fmt.Sprint("call_", len(p.bodies)), "type": "function",
			"function": map[string]any{"name": tool, "arguments": "{" + arguments}}}}
	}
	p.says = p.says[1:]
	part := "message"
	streams := strings.Contains(string(body), `"stream":true`)
	if streams {
		part = "delta"
	}
	out, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, part: said, "finish_reason": finish}}})
	if !streams {
		w.Write(out)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", out)
}

// TestApprovalsInGo runs the program of docs/approvals.md: one call is allowed by a rule, one denied by a rule, one by the person, and one approved.
func TestApprovalsInGo(t *testing.T) {
	program, path := programOf(t, "docs/approvals.md", "notes"), filepath.Join(t.TempDir(), "chats.db")
	p := newProvider(t, `read_note {"name":"boats"}`, `read_note {"name":".secret"}`, `delete_note {"name":"boats"}`, `delete_note {"name":"old"}`, "Petrel and Tern are left.")
	got := output(t, "n it is needed\ny\n", program, path, p.url, "Tidy up")
	same(t, got, `delete_note {"name":"boats"} (no rule decides)? delete_note {"name":"old"} (no rule decides)? Petrel and Tern are left.`+"\n")
	for i, want := range []string{"Petrel, Tern", "denied: hidden notes are nobody's business", "denied: it is needed", "deleted old"} {
		if body := p.bodies[i+1]; !strings.Contains(body, want) {
			t.Errorf("request %d does not say %q: %s", i+2, want, body)
		}
	}
	opened(t, path)
}

// TestApprovalsInPython runs the agent of docs/approvals.md beside the command line.
func TestApprovalsInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "chatctx"), "./cmd/chatctx").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	doc, err := os.ReadFile("docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	code := func(begins string) string {
		for _, block := range regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
			if strings.HasPrefix(block[1], begins) {
				return block[1]
			}
		}
		t.Fatalf("docs/approvals.md has no block that begins with %q", begins)
		return ""
	}
	for name, text := range map[string]string{"outside.py": code("# outside.py"), "before.sh": code("chatctx new Notes"), "boats.txt": "Petrel, Tern",
		"note.json": `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := filepath.Join(dir, "chats.db")
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "CHATCTX_STORE="+store)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	run("sh", "-e", "before.sh")
	p := newProvider(t, `read_note {"name":"boats"}`, `delete_note {"name":"boats"}`, `read_note {"name":"gone"}`, "There are two boats.")
	same(t, run(python, "outside.py", p.url, "Which boats?"), "There are two boats.\n")
	for i, want := range []string{"Petrel, Tern", "denied: notes are kept", "No such file"} {
		if body := p.bodies[i+1]; !strings.Contains(body, want) {
			t.Errorf("request %d does not say %q: %s", i+2, want, body)
		}
	}
	s := opened(t, store)
	for c, err := range s.Calls(t.Context(), record.CallFilter{}) {
		t.Errorf("%v is open, %v", c, err)
	}
}
