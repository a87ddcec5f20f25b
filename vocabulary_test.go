package chatctx_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// largestCommand is the bar on the size of the command, stripped, in bytes.
const largestCommand = 45_000_000

// TestVocabularyOfTheCommand: the command has the loader's vocabularies, each once, and what tokens, status and send say comes from them: with a program in which one
// token of gpt-4o's vocabulary is another, a word of a message takes one token more. Nothing is fetched.
func TestVocabularyOfTheCommand(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("the system ends a program that was changed")
	}
	importsOf(t)
	program := filepath.Join(t.TempDir(), "chatctx")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./cmd/chatctx").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(code) > largestCommand {
		t.Errorf("the command has %d bytes, stripped; the bar is %d", len(code), largestCommand)
	}
	for name, times := range map[string]int{"o200k_base": 1, "cl100k_base": 1, "p50k_base": 1, "r50k_base": 2} { // p50k_base begins with r50k_base
		if n := bytes.Count(code, asset(t, name)); n != times {
			t.Errorf("the program has the vocabulary %s %d times", name, n)
		}
	}
	before := counts(t, program)

	vocabulary := asset(t, "o200k_base")
	at := bytes.Index(code, vocabulary)
	word, other := base64.StdEncoding.EncodeToString([]byte(" wonderful")), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfe}, len(" wonderful")))
	line := bytes.Index(vocabulary, []byte("\n"+word+" "))
	if at < 0 || line < 0 {
		t.Fatal("the program has no such vocabulary, or that no such token")
	}
	copy(code[at+line+1:], other)
	if err := os.WriteFile(program, code, 0o700); err != nil {
		t.Fatal(err)
	}
	after := counts(t, program)
	for command, n := range before {
		if after[command] != n+1 {
			t.Errorf("%s says %d tokens, and %d after a token of the loader's vocabulary is gone: it reads another", command, n, after[command])
		}
	}
}

// TestLibrarysLoaderIsSetOnce: the command sets it first of all, by the one function of package tokens that changes anything of tiktoken-go's. Libraries never do.
func TestLibrarysLoaderIsSetOnce(t *testing.T) {
	for call, want := range map[string]string{"SetBpeLoader(": "enhancer/tokens/tokens.go", "tokens.UseOfflineLoader(": "cmd/cmd.go", "MODEL_TO_ENCODING[": "internal/tokens/model.go"} {
		var found []string
		err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(call)) {
				found = append(found, filepath.ToSlash(path))
			}
			return err
		})
		if err != nil || !slices.Equal(found, []string{want}) {
			t.Errorf("%s stands in %q, want %s alone: %v", call, found, want, err)
		}
	}
	text, err := os.ReadFile("cmd/cmd.go")
	if err != nil || !bytes.Contains(text, []byte("errOut io.Writer) int {\n\ttokens.UseOfflineLoader()")) {
		t.Errorf("the command does not begin with it: %v", err)
	}
}

func asset(t *testing.T, name string) []byte {
	t.Helper()
	data, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// counts returns how many tokens some commands of a program say that a new conversation has. A proxy counts what they fetch.
func counts(t *testing.T, program string) map[string]int {
	t.Helper()
	var fetched atomic.Int32
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	go func() {
		for c, err := proxy.Accept(); err == nil; c, err = proxy.Accept() {
			fetched.Add(1)
			_ = c.Close()
		}
	}()
	dir := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"HOME=" + dir, "CHATCTX_STORE=" + filepath.Join(dir, "store"), "HTTP_PROXY=http://" + proxy.Addr().String(), "HTTPS_PROXY=http://" + proxy.Addr().String(), "OPENAI_API_KEY=none"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("new", "--model", "gpt-4o")
	run("add", "user", "a wonderful day")
	found := map[string]int{}
	for _, command := range []string{"tokens --json", "status --json", "send --dry-run --json so"} {
		out := run(strings.Fields(command)...)
		m := regexp.MustCompile(`"request_tokens":(\d+)`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("%s says no request_tokens: %s", command, out)
		}
		found[command], _ = strconv.Atoi(m[1])
	}
	if n := fetched.Load(); n > 0 {
		t.Errorf("the commands asked the network %d times", n)
	}
	return found
}
