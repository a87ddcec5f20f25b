package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/gate"
)

func gateCommands() []*command {
	return []*command{
		{name: "gate", does: "", scope: onStore, subs: []*command{
			{name: "hook", does: "answer one event of an agent's hook; gate install has the agent start it", scope: onStore, run: in(doGateHook),
				more: "It reads the event from standard input, stores the call, waits while nobody has decided, and prints one JSON object. Of the environment it takes only ids of the agent: the store is what --store names. A failure denies the call.",
				json: "the answer in the agent's own form", example: "chatctx gate hook claude-code --store chats.db --wait 1h < event.json"},
			gateRunCommand(),
			{name: "passphrase", does: "choose the passphrase that says a person decides about agents' calls", scope: onStore, run: in(doGatePassphrase),
				more: "It asks at a terminal, for the old one first if there is one. calls review, ui and chat ask for it once; other commands refuse what an agent's calls depend on. The store has its Argon2id hash.",
				json: "{}", example: "chatctx gate passphrase"},
		}},
	}
}

// forget empties the environment of a hook, which the agent's repository may have written. It returns what was in it, and what brings it back.
func forget(args []string) (was map[string]string, back func()) {
	if len(args) < 2 || args[0] != "gate" || args[1] != "hook" {
		return nil, func() {}
	}
	was = map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		was[name] = value
	}
	os.Clearenv()
	return was, func() {
		for name, value := range was {
			_ = os.Setenv(name, value)
		}
	}
}

type gateHookIn struct {
	Agent string        `arg:"AGENT" words:"claude-code codex gemini copilot opencode" doc:"whose hook it is"`
	Event string        `flag:"event" doc:"the {NAME} of the event, for agents that do not send it"`
	Wait  time.Duration `flag:"wait" default:"1h" doc:"how long to wait for a decision, as a {TIME}"`
}

func doGateHook(r *run, in *gateHookIn) error {
	h := &gate.Hook{Agent: gate.Named(in.Agent), Event: in.Event, Wait: in.Wait, In: r.con.in, Out: r.con.out, Err: r.con.err, Exit: func(code int) {
		_ = r.con.out.flush()
		os.Exit(code)
	},
		Env: func(name string) string { return r.con.forgotten[name] }}
	h.Open = func(context.Context) (*base.Store, error) {
		r.wait = max(in.Wait, 2*time.Second)
		if r.common.Store == "" {
			return nil, usagef("the hook needs --store FILE: it takes no store from the environment")
		}
		st, err := r.writer()
		if err != nil {
			return nil, err
		}
		return base.Of(st), nil
	}
	if code := h.Run(r.ctx); code != 0 {
		return usagef("the event was not understood: the call is denied")
	}
	return nil
}
