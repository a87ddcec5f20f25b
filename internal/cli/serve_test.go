package cli

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestServersThatOthersCanReach print an address that can be used, warn of clear text, and let in whoever has a token, or the page's opening. Ctrl-C ends them.
func TestServersThatOthersCanReach(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Ctrl-C cannot be sent to another program there")
	}
	path := filledStore(t, 3)
	secret := strings.TrimSpace(must(t, path, "serve", "token", "add", "phone", "--scope", "read"))
	for _, args := range [][]string{{"serve", "--listen", ":0"}, {"web", "--no-open", "--listen", ":0"}} {
		cmd := program(t, path, args...)
		var notes strings.Builder
		cmd.Stderr = &notes
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe() // Enter asks for another address
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		address := strings.TrimSpace(line)
		if err != nil || !strings.HasPrefix(address, "http://localhost:") {
			t.Fatalf("%v prints %q: %v", args, address, err)
		}
		jar, _ := cookiejar.New(nil)
		client := &http.Client{Jar: jar}
		page, _, _ := strings.Cut(address, "/open")
		get := func(url, token string) int {
			req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		for _, c := range []struct {
			url, token string
			status     int
		}{{page + "/api/v1/contexts", "", 401}, {page + "/api/v1/contexts", secret, 200}} {
			if status := get(c.url, c.token); status != c.status {
				t.Errorf("%v gives %d to the token %.12q", args, status, c.token)
			}
		}
		if args[0] == "web" {
			if get(address, "") != 200 || get(page+"/api/v1/contexts", "") != 200 {
				t.Error("the page's opening lets nobody in")
			}
			if again := get(address, ""); again != 403 {
				t.Errorf("the opening gives %d the second time", again)
			}
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // a signal's code
		for _, note := range []string{"everybody on the way can read along", "others use its name in place of localhost"} {
			if !strings.Contains(notes.String(), note) {
				t.Errorf("%v does not say %q: %s", args, note, notes.String())
			}
		}
	}
	must(t, path, "check")
}

// TestStdioEndsWithItsInput: the program ends, and without an error, while nobody reads what it answers.
func TestStdioEndsWithItsInput(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 600)
	cmd := program(t, path, "serve", "--stdio")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	if line, err := bufio.NewReader(io.LimitReader(out, 1<<14)).ReadString('\n'); err != nil || !strings.Contains(line, `"line":16777216`) {
		t.Fatalf("initialize gives %q: %v", line, err)
	}
	for i := range 100 {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"messages.list","params":{"context":"Full","branch":"main","limit":500}}`+"\nnonsense\n", i+1)
	}
	in.Close()
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		t.Errorf("it ends with %v %s", err, errs.String())
	}
	must(t, path, "check")
}
