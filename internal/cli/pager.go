package cli

import (
	"io"
	"os"
	"os/exec"
	"strings"
)

// pagerSpec is a pager that may be started.
type pagerSpec struct{ command []string }

// pagerProcess is a running pager.
type pagerProcess struct {
	in  io.WriteCloser
	cmd *exec.Cmd
}

// pagerCommand returns the pager of PAGER, else less if it is installed. An empty PAGER and cat mean none.
func pagerCommand() *pagerSpec {
	p, set := os.LookupEnv("PAGER")
	if !set {
		less, err := exec.LookPath("less")
		if err != nil {
			return nil
		}
		return &pagerSpec{[]string{less}}
	}
	if p = strings.TrimSpace(p); p == "" || p == "cat" {
		return nil
	}
	words, err := commandOf("PAGER", p)
	if err != nil {
		return nil // the output is shown without a pager
	}
	return &pagerSpec{words}
}

// start runs the pager on out; nil if it does not start.
func (p *pagerSpec) start(out io.Writer) *pagerProcess {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	if os.Getenv("LESSCHARSET") == "" {
		cmd.Env = append(cmd.Env, "LESSCHARSET=utf-8") // the output is UTF-8, whatever the system's code page
	}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	return &pagerProcess{in, cmd}
}

// wait ends the pager's input and waits until the person has closed it.
func (p *pagerProcess) wait() {
	p.in.Close()
	p.cmd.Wait()
}
