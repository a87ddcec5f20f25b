package operation

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/gate"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// GateStatus is what is known of an agent and its calls.
type GateStatus struct {
	GateLine
	Waiting int         `json:"waiting"`          // calls that wait for a decision
	Past    int         `json:"past"`             // calls that ran without an answer from here
	Hook    *HookStatus `json:"hook,omitempty"`   // in the caller's settings
	Alarms  []Alarm     `json:"alarms,omitempty"` // the newest of the calls that ran past the gate
}

// HookStatus is what the agent's settings of the caller say.
type HookStatus struct {
	Installed bool   `json:"installed"`
	File      string `json:"file"`
	Program   string `json:"program,omitempty"`
	Store     string `json:"store,omitempty"`
	Wait      string `json:"wait,omitempty"`
	Problem   string `json:"problem,omitempty"` // why it does not work as it has to
}

// Alarm is a call that ran past the gate.
type Alarm struct {
	Call    record.CallRef `json:"call"`
	Context chatctx.ID     `json:"context"`
	Tool    string         `json:"tool_name"`
	Session string         `json:"session"`
	At      string         `json:"at"`
}

// newestAlarms is how many of an agent's alarms are listed.
const newestAlarms = 10

func gateStatus(r *Request, _ *struct{}) (out List[GateStatus], err error) {
	s := base.Of(r.Store)
	state, err := base.ReadGate(r.Ctx, s)
	if err != nil {
		return out, err
	}
	calls, err := toolcall.GatedCalls(r.Ctx, s, func(c *record.CallRecord) bool { return c.Status == pool.Pending || c.Gate.Past })
	if err != nil {
		return out, err
	}
	slices.SortFunc(calls, func(a, b *toolcall.Gated) int { return int(b.Since - a.Since) })
	return ListEach(gate.Agents, nil, func(a *gate.Agent) GateStatus {
		v := GateStatus{GateLine: GateLine{a.Name, state.Mode(a.Name), state.LevelOf()}}
		for _, c := range calls {
			switch {
			case c.Gate.Agent != a.Name:
			case !c.Gate.Past:
				v.Waiting++
			default:
				if v.Past++; len(v.Alarms) < newestAlarms {
					v.Alarms = append(v.Alarms, Alarm{c.Ref(), c.Context, c.Tool, c.Gate.Session, contract.Time(c.Since).Format("2006-01-02T15:04:05Z07:00")})
				}
			}
		}
		if r.Home != nil {
			v.Hook = r.hookStatus(a)
		}
		return v
	})
}

// hookStatus looks at an agent's settings.
func (r *Request) hookStatus(a *gate.Agent) *HookStatus {
	in := a.Installed(*r.Home)
	v := &HookStatus{Installed: in.Entry != nil, File: in.File, Problem: in.Broken}
	if in.Partly {
		v.Problem = "not all hooks are as gate install wrote them: run it again"
	}
	if in.Entry == nil {
		return v
	}
	v.Program, v.Store, v.Wait = in.Entry.Program, in.Entry.Store, in.Entry.Wait.String()
	here, err := gate.HookStore(r.Path)
	if in.Entry.Gone() {
		v.Problem = "the program is gone, so every call is denied: run gate install again"
	} else if in.Off != "" {
		v.Problem = in.Off + " switches the hooks off"
	} else if err != nil || here != v.Store {
		v.Problem = "its calls go to another store"
	} else if a.Name == "codex" {
		v.Problem = gate.Untrusted(r.Ctx, *r.Home)
	}
	return v
}
