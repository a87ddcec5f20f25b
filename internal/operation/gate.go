package operation

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/gate"
)

func init() {
	Register(Group{Heading: "Other programs", Command: "gate", Does: "decide here about the tool calls of other programs' agents: Claude Code, Codex, Gemini CLI, Copilot CLI, opencode",
		Of: gateOperations})
}

func gateOperations() []*Operation {
	return []*Operation{
		Define("gate.status", "GET /gate", Read, "say of each agent whether its calls are decided here, how, how many wait, and which ran without an answer from here", gateStatus).
			As("gate status", "chatctx gate status"),
		Define("gate.install", "POST", Admin, "have an agent ask here before each of its tool calls", installGate).Creating().With(installHelp).
			As("gate install", "chatctx gate install claude-code\nchatctx gate install codex --gate-mode rules --wait 10m --dry-run"),
		Define("gate.uninstall", "POST", Admin, "take the hooks out of an agent's settings: it decides about its calls itself again", uninstallGate).
			With("The settings are as they were before gate install if nothing else in them changed since; else only the hooks go.").
			As("gate uninstall", "chatctx gate uninstall claude-code --dry-run"),
		Define("gate.mode", "POST /gate/{agent}/mode", Admin, "choose how the calls of an agent are decided", setGateMode).With(modesHelp).
			As("gate mode", "chatctx gate mode claude-code hold"),
	}
}

const installHelp = `It shows what changes in the agent's settings of this user, asks, and writes them as a whole, with a copy beside them. The hook names this program as PATH has it, and the store.
pi, Cursor, agents behind ACP alone, and Windows are left out. A repository's own settings can switch hooks off, and a hook is no wall between programs of one user.
`

const modesHelp = `record: all calls are stored, and the agent decides. rules: what no rule matches is left to the agent. hold: what no rule decides waits for a person.`

// GatedAgent names an agent.
type GatedAgent struct {
	Agent string `json:"agent" arg:"AGENT" words:"claude-code codex gemini copilot opencode" doc:"the agent"`
}

// GateMode is how the calls of an agent are decided.
type GateMode struct {
	Keyed
	GatedAgent
	Mode string `json:"mode" arg:"MODE" words:"record rules hold" doc:"how its calls are decided"`
}

func setGateMode(r *Request, in *GateMode) (v GateLine, err error) {
	err = base.ChangeGate(r.Ctx, base.Of(r.Store), func(g *base.GateState) error {
		v = changeMode(r, g, in.Agent, in.Mode)
		return nil
	})
	return v, err
}

// changeMode notes the mode of an agent.
func changeMode(r *Request, g *base.GateState, agent, mode string) GateLine {
	if g.Modes == nil {
		g.Modes = map[string]string{}
	}
	if g.Modes[agent] = mode; g.Since == 0 {
		g.Since = base.Of(r.Store).Now()
	}
	return GateLine{agent, mode, g.LevelOf()}
}

// GateLine says how the calls of an agent are decided.
type GateLine struct {
	Agent string `json:"agent"`
	Mode  string `json:"mode"`
	Level string `json:"level"`
}

// Installing says how an agent's hook is installed.
type Installing struct {
	GatedAgent
	Mode    string        `json:"mode,omitempty" flag:"gate-mode" old:"mode" words:"record rules hold" doc:"how its calls are decided, a {MODE}: record, rules, hold"`
	Wait    time.Duration `json:"wait,omitempty" flag:"wait" default:"1h" doc:"how long to wait for a decision, as a {TIME}"`
	Program string        `json:"program,omitempty" flag:"program" doc:"the {PATH} of chatctx in the hook's command; else as PATH has it"`
	DryRun
	Unasked
}

// Hooked is what was changed in an agent's settings.
type Hooked struct {
	GateLine
	File    string       `json:"file"`
	Backup  string       `json:"backup,omitempty"`
	Program string       `json:"program,omitempty"`
	Changed bool         `json:"changed"`
	Notes   []string     `json:"notes,omitempty"` // what else the person has to do
	Change  *gate.Change `json:"-"`
}

// Nothing reports whether nothing changes, so that nobody has to be asked.
func (v Hooked) Nothing() bool { return v.Change.Nothing() }

// longestWait bounds how long an agent may be kept waiting.
const longestWait = 7 * 24 * time.Hour

func installGate(r *Request, in *Installing) (v Hooked, err error) {
	a := gate.Named(in.Agent)
	switch {
	case runtime.GOOS == "windows":
		return v, base.Invalid("the gate is not made for Windows")
	case in.Mode == "":
		return v, base.Invalid("gate install needs the mode: record, rules or hold")
	case in.Wait < time.Second || in.Wait > longestWait:
		return v, base.Invalid("the wait is %s, and has to be from 1s to %s", in.Wait, longestWait)
	}
	e := &gate.Entry{Wait: in.Wait}
	if e.Program, err = gate.Program(in.Program, os.Args[0]); err != nil {
		return v, err
	}
	if e.Store, err = gate.HookStore(r.Path); err != nil {
		return v, err
	}
	v.Program = e.Program
	if v.Change, err = a.Install(*r.Home, e); err != nil {
		return v, err
	}
	v.File, v.Notes = v.Change.File, a.Notes()
	if in.DryRun.DryRun {
		g, err := base.ReadGate(r.Ctx, base.Of(r.Store))
		v.GateLine = GateLine{in.Agent, in.Mode, g.LevelOf()}
		return v, err
	}
	v.GateLine, err = setGateMode(r, &GateMode{GatedAgent: in.GatedAgent, Mode: in.Mode})
	if err == nil && !v.Change.Nothing() {
		v.Changed = true
		v.Backup, err = v.Change.Write()
	}
	return v, err
}

// Uninstalling says whose hooks go.
type Uninstalling struct {
	GatedAgent
	DryRun
	Unasked
}

// Unopened reports that no store is needed.
func (in *Uninstalling) Unopened() bool { return true }

func uninstallGate(r *Request, in *Uninstalling) (v Hooked, err error) {
	v.Agent = in.Agent
	v.Change, err = gate.Named(in.Agent).Uninstall(*r.Home)
	if err != nil {
		return v, err
	}
	v.File = v.Change.File
	if !in.DryRun.DryRun && !v.Change.Nothing() {
		v.Changed = true
		_, err = v.Change.Write()
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = chatctx.ErrConflict
	}
	return v, err
}
