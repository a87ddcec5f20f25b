package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/gate"
)

func gateRunCommand() *command {
	return &command{name: "run", does: "start an agent so that a repository's settings cannot switch its gate off", scope: onStore, run: in(doGateRun),
		more: "Claude Code gets the hooks by --settings if its own settings have none, and --permission-mode dontAsk with -p, which also holds if a hook dies (not in mode record). Codex gets features.hooks=true. " +
			"Flags that take the hooks away are refused. Of the other agents it is not known what holds. The exit code is the agent's.",
		json: "nothing of its own: what the agent prints", example: "chatctx gate run claude-code -- -p \"What is in this folder?\"\nchatctx gate run codex"}
}

type gateRunIn struct {
	Agent string   `arg:"AGENT" words:"claude-code codex" doc:"the agent"`
	Args  []string `arg:"[ARG…]" doc:"its own arguments, behind --"`
}

// endedError is an agent that ended with another code than 0.
type endedError struct{ code int }

func (e *endedError) Error() string { return fmt.Sprintf("the agent ended with code %d", e.code) }

func doGateRun(r *run, in *gateRunIn) error {
	st, err := r.writer()
	if err != nil {
		return err
	}
	state, err := base.ReadGate(r.ctx, base.Of(st))
	r.close()
	if err != nil {
		return err
	}
	a, e := gate.Named(in.Agent), &gate.Entry{Wait: gate.DefaultWait}
	if in.Agent == "claude-code" && a.Installed(*home()).Entry == nil {
		q := r.request()
		if e.Program, err = gate.Program("", os.Args[0]); err == nil {
			e.Store, err = gate.HookStore(q.Path)
		}
		if err != nil {
			return err
		}
	}
	line, err := a.Command(*home(), e, state.Mode(a.Name), in.Args)
	if err != nil {
		return gateFails(r, in, err)
	}
	if in.Agent == "codex" {
		if problem := gate.Untrusted(r.ctx, *home()); problem != "" {
			return &hinted{errors.New(problem), "chatctx gate install codex"}
		}
	}
	cmd := exec.CommandContext(r.ctx, line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	r.con.out.flush()
	var exit *exec.ExitError
	if err = cmd.Run(); errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return &endedError{exit.ExitCode()}
	}
	return err
}
