package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/gate"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/plural"
)

func init() { lookGroups = append(lookGroups, gateLooks) }

func gateLooks() map[string]look {
	install := preparing(askMode, as(printHooked[operation.Installing]))
	install.why, install.question = "gate install changes the agent's settings", "Change it?"
	install.plan = printPlan
	install.fails = gateFails
	install.then = func(r *run, in, _ any) error { return r.trustCodex(in.(*operation.Installing)) }
	uninstall := as(printHooked[operation.Uninstalling])
	uninstall.why, uninstall.question = "gate uninstall changes the agent's settings", "Change it?"
	uninstall.plan = printPlan
	uninstall.fails = gateFails
	return map[string]look{
		"gate.status":    as(printGateStatus),
		"calls.ensure":   as(printEnsured),
		"gate.install":   install,
		"gate.uninstall": uninstall,
		"gate.mode":      as(func(r *run, _ *operation.GateMode, v operation.GateLine) { r.printGate(v) }),
	}
}

func (r *run) printGate(v operation.GateLine) {
	r.printf("%s  %s  level %s\n", pad(gate.Named(v.Agent).Title, 12), pad(v.Mode, 6), v.Level)
}

// askMode asks for the mode that the line does not name.
func askMode(r *run, in *operation.Installing) error {
	switch {
	case in.Mode != "":
		return nil
	case !r.con.asks() || r.json():
		return &usageError{"gate install needs the mode", "--gate-mode record: store all calls; --gate-mode rules: leave to the agent what no rule matches; --gate-mode hold: let it wait for a person"}
	}
	fmt.Fprintf(r.con.err, "How are the calls of %s decided?\n  record  all are stored, and the agent decides\n  rules   what no rule matches is left to the agent\n"+
		"  hold    what no rule decides waits for a person\nmode [hold]: ", gate.Named(in.Agent).Title)
	answer, err := bufio.NewReader(r.con.in).ReadString('\n')
	if in.Mode = strings.ToLower(strings.TrimSpace(answer)); err != nil && in.Mode == "" {
		return err
	}
	if in.Mode == "" {
		in.Mode = "hold"
	}
	if !slices.Contains([]string{"record", "rules", "hold"}, in.Mode) {
		return usagef("%q is no mode: record, rules or hold", clean(in.Mode))
	}
	return nil
}

// printPlan shows what would change in the agent's settings.
func printPlan(r *run, _, plan any) { r.printFileChange(plan.(operation.Hooked).Change) }

func (r *run) printFileChange(c *gate.Change) {
	r.printf("%s\n", clean(c.File))
	r.printLineDiff(plainly(c.Before), plainly(c.After))
}

func printHooked[In any](r *run, in *In, v operation.Hooked) {
	dry := any(in).(interface{ Dry() bool }).Dry()
	switch {
	case v.Change.Nothing():
		r.note("%s: nothing is to change", clean(v.File))
	case dry:
		r.printFileChange(v.Change)
	default:
		r.printf("%s\n", clean(v.File))
	}
	if v.Backup != "" {
		r.note("as it was before: %s", clean(v.Backup))
	}
	if dry || v.Mode == "" {
		return
	}
	r.printGate(v.GateLine)
	if v.Level == "own" {
		r.note("level own: the agent runs as your user; what goes past the gate is found, and is not prevented")
	}
	for _, text := range v.Notes {
		r.note("%s", text)
	}
}

// trustCodex shows the hooks that Codex does not trust yet, asks, and has it trust them.
func (r *run) trustCodex(in *operation.Installing) error {
	if in.Agent != "codex" || in.Dry() {
		return nil
	}
	const by = "start codex, type /hooks and trust them: it skips others without a word"
	hooks, err := gate.CodexTrust(r.ctx, *home())
	if err != nil {
		r.note("codex was not asked to trust the hooks (%s): %s", clean(err.Error()), by)
		return nil
	}
	hooks = slices.DeleteFunc(hooks, func(t gate.Trust) bool { return t.Holds() })
	if len(hooks) == 0 {
		return nil
	}
	for _, t := range hooks {
		r.note("%s  %s\n  %s", clean(t.Event), clean(t.Hash), clean(t.Command))
	}
	if err := r.confirm(yesFlag{in.Yes}, "Have Codex trust these hooks?", &usageError{"the hooks are written, and Codex does not trust them", by}); err != nil {
		return err
	}
	if _, err = gate.TrustCodex(r.ctx, *home(), hooks); err != nil {
		return err
	}
	if problem := gate.Untrusted(r.ctx, *home()); problem != "" {
		return &hinted{errors.New(problem), by}
	}
	r.note("codex trusts the hooks")
	return nil
}

// gateFails adds what to do about an agent's settings.
func gateFails(_ *run, _ any, err error) error {
	var s *gate.SettingsError
	if errors.As(err, &s) {
		return &hinted{err, s.Do}
	}
	return err
}

// home is where the user's agents keep their settings.
func home() *gate.Home {
	dir, _ := os.UserHomeDir()
	return &gate.Home{Dir: dir, Env: os.Getenv}
}

func printGateStatus(r *run, _ *struct{}, v operation.GateStatus) {
	words := []string{"not installed"}
	if v.Hook.Installed {
		words = []string{v.Mode, "level " + v.Level}
	}
	if v.Waiting > 0 {
		words = append(words, plural.CallsWait(v.Waiting)+" for a decision")
	}
	if v.Past > 0 {
		words = append(words, count(v.Past, "call")+" ran past the gate")
	}
	r.printf("%s  %s\n", pad(gate.Named(v.Agent).Title, 12), strings.Join(words, ", "))
	if v.Hook.Installed {
		r.printf("              %s, %s, waits %s\n", clean(v.Hook.File), clean(v.Hook.Store), v.Hook.Wait)
	}
	if v.Hook.Problem != "" {
		r.printf("              problem: %s\n", clean(v.Hook.Problem))
	}
	for _, a := range v.Alarms {
		r.printf("              ran past the gate: %s %s, session %s, %s\n", clean(string(a.Call)), clean(a.Tool), clean(a.Session), a.At)
	}
}

// printEnsured prints what an agent is to do about its call.
func printEnsured(r *run, _ *operation.Ensuring, v operation.Ensured) {
	r.printf("%s  %s  %s\n", callName(v.Call.Call), v.Answer, clean(v.Why))
	if v.Changed {
		r.note("its id was known with other arguments: this is another call")
	}
}
