package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.org/outside/acme/acmetest"
)

// run runs the program on a store of its own, and returns what it prints and its exit code.
func run(t *testing.T, env []string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), append([]string{"CHATCTX_STORE=" + store, "CHATCTX_CONTEXT=", "HOME=" + filepath.Dir(store), "XDG_CONFIG_HOME=" + filepath.Dir(store)}, env...)...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

var program, store string

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	program, store = filepath.Join(dir, "chatacme"), filepath.Join(dir, "chats.db")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	book := filepath.Join(dir, "rosalind.log")
	if err := os.WriteFile(book, []byte("LOGBOOK Rosalind\n08:15 user Is the bridge open?\n08:16 assistant Until noon.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := acmetest.New(t, `{"id":"r1","model":"acme-1","text":"Two boats.","end":"done"}`, `{"id":"r2","model":"acme-1","text":"At noon.","end":"done"}`,
		`{"id":"r3","model":"acme-1","text":"One.","end":"done"}`, "429 slow down")
	env := []string{"ACME_URL=" + server.URL, "ACME_API_KEY=secret"}
	for _, c := range []struct {
		args string
		env  []string
		code int
		want string
	}{
		{"init", nil, 0, ""},
		{"new Harbour", nil, 0, ""},
		{"send --provider acme --model acme-1 What-is-in?", env, 0, "Two boats."},
		{"send --model acme-1 When?", env, 0, "At noon."}, // the model's name implies Acme
		{"config provider=acme model=acme-mini acme.mood=\"calm\"", nil, 0, ""},
		{"request", env, 0, `"mood":"calm"`},
		{"config acme.mood=", nil, 0, ""},
		{"send Who?", env, 0, "One."},
		{"send Who?", append(env, "CHATCTX_RETRIES=0"), 7, "slow down"},
		{"send Who?", []string{"ACME_URL=", "ACME_API_KEY="}, 7, "ACME_API_KEY"},
		{"config provider=acne", nil, 2, "acme"},
		{"send --provider acne --model m Who?", env, 2, "acme"},
		{"import " + book, nil, 0, "Rosalind"},
		{"--context Rosalind log", nil, 0, "Until noon."},
	} {
		out, code := run(t, c.env, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d, want %d with %q\n%s", c.args, code, c.code, c.want, out)
		}
	}
	if n := len(server.Bodies()); n != 4 {
		t.Errorf("Acme was asked %d times", n)
	}
}
