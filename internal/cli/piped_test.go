//go:build unix

package cli

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestALateProducerIsNamed: data that comes on standard input while the command works is named at its end, as data from the start is.
func TestALateProducerIsNamed(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "high at noon\n")
		p := protocolOf("/v1/chat/completions")
		io.WriteString(rw, p.begin+p.words("Fine.")+p.end)
	}))
	defer server.Close()
	cmd := program(t, filledStore(t, 1), "send", "Summarise", "--model", "gpt-4o")
	var errs strings.Builder
	cmd.Env, cmd.Stdin, cmd.Stderr = append(cmd.Env, providerEnv(server.URL)...), r, &errs
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "Fine.") {
		t.Fatalf("%v: %s%s", err, out, errs.String())
	}
	if !strings.Contains(errs.String(), "standard input was not read; add - to send it") {
		t.Errorf("nothing says so: %s", errs.String())
	}
}

// TestASlowProducerIsWaitedFor: under input.piped=append a pipe is read to its end, and a line says what the command waits for.
func TestASlowProducerIsWaitedFor(t *testing.T) {
	t.Parallel()
	store := filledStore(t, 1)
	cmd := program(t, store, "add", "user", "Text")
	cmd.Env = append(cmd.Env, "CHATCTX_INPUT_PIPED=append")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(errs)
	line, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "waiting for the end of standard input") {
		t.Errorf("%q, %v", line, err)
	}
	io.WriteString(in, "high at noon\n")
	in.Close()
	io.Copy(io.Discard, lines)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := must(t, store, "show", "@"); !strings.Contains(got, "Text\n\nhigh at noon") {
		t.Errorf("stored is %q", got)
	}
}

// TestASocketIsLeftAlone: a service's socket on standard input is neither read nor named, whatever the setting.
func TestASocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine, its := os.NewFile(uintptr(ends[0]), "mine"), os.NewFile(uintptr(ends[1]), "its")
	defer mine.Close()
	defer its.Close()
	io.WriteString(mine, "high at noon\n")
	store := filledStore(t, 1)
	for _, mode := range []string{"note", "append"} {
		cmd := program(t, store, "add", "user", "Text "+mode)
		cmd.Env, cmd.Stdin = append(cmd.Env, "CHATCTX_INPUT_PIPED="+mode), its
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "standard input") {
			t.Errorf("%s: %v: %s", mode, err, out)
		}
	}
	if got := must(t, store, "show", "@"); strings.Contains(got, "high") {
		t.Errorf("stored is %q", got)
	}
}

// TestAPipeBesideAFlag: the text of a flag is one that standard input could have been, as that of an argument is.
func TestAPipeBesideAFlag(t *testing.T) {
	t.Parallel()
	store := filledStore(t, 2)
	for _, c := range []struct {
		mode, says string
		has        string
	}{{"note", "new --system - Two\n", "From the flag."}, {"ignore", "", "From the flag."}, {"append", "", "From the flag.\n\nFrom the pipe."}} {
		cmd := program(t, store, "new", "Two", "--system", "From the flag.")
		var errs strings.Builder
		cmd.Env, cmd.Stdin, cmd.Stderr = append(cmd.Env, "CHATCTX_INPUT_PIPED="+c.mode), strings.NewReader("From the pipe.\n"), &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		if strings.Contains(errs.String(), "standard input") != (c.says != "") || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: it says %q", c.mode, errs.String())
		}
		if out, err := program(t, store, "system").Output(); err != nil || strings.TrimSpace(string(out)) != c.has {
			t.Errorf("%s: the prompt is %q, %v", c.mode, out, err)
		}
	}
}
