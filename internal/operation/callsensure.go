package operation

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/toolcall"
)

const ensureHelp = `It is one change: the session's conversation, the call in it, and what the rules decide. The answers are allow (it is let, once), deny, left (the agent decides) and wait (nobody
has decided: calls wait --then-claim). A call is the same if its session, its id and its arguments are; without an id, an open one with the same tool and arguments whose waiter is gone.`

// Ensuring is a call of another program's agent, and what is known of it there.
type Ensuring struct {
	Keyed
	Tool        string          `json:"tool_name" arg:"TOOL" doc:"the tool's name"`
	Arguments   json.RawMessage `json:"arguments" arg:"ARGUMENTS" doc:"the arguments, as a JSON object"`
	Agent       string          `json:"agent" flag:"agent" doc:"the {AGENT}: the format under which its sessions are imported, or a name of your own"`
	Version     string          `json:"agent_version,omitempty" flag:"agent-version" doc:"the agent's {VERSION}"`
	Session     string          `json:"session" flag:"session" doc:"the agent's {SESSION}"`
	SubAgent    string          `json:"sub_agent,omitempty" flag:"sub-agent" doc:"the {ID} of the sub-agent that asks"`
	Turn        string          `json:"turn,omitempty" flag:"turn" doc:"the {ID} of the turn"`
	Folder      string          `json:"folder,omitempty" flag:"in-folder" doc:"the {DIR} in which the agent works"`
	Head        string          `json:"head,omitempty" flag:"head" doc:"the {COMMIT} of the folder's repository"`
	Permissions string          `json:"permissions,omitempty" flag:"permissions" doc:"the agent's permission {MODE}, in its words"`
	ID          string          `json:"id,omitempty" flag:"id" doc:"the provider's {ID} of the call"`
	Wait        int             `json:"wait,omitempty" doc:"for how many seconds somebody waits for the decision, up to 604800; 0 means an hour"`
	For         *time.Duration  `json:"-" flag:"wait" doc:"how long to wait for a decision, as a {TIME}"`
	PID         *int            `json:"-" flag:"pid" doc:"the {PROCESS} whose end ends the claim"`
	Token       string          `json:"token,omitempty" flag:"token" doc:"the claim's {TOKEN}: refuse if there is another claim by now"`
}

// Ensured is what the agent is to do about its call.
type Ensured struct {
	contract.Call
	Answer  string     `json:"answer" words:"allow deny left wait"`
	Why     string     `json:"why,omitempty"`
	Token   chatctx.ID `json:"token,omitzero"`    // of the claim under which it was let
	New     bool       `json:"new"`               // it was not known
	Changed bool       `json:"changed,omitempty"` // its id was known with other arguments
}

func (in *Ensuring) wait() (time.Duration, error) {
	d := time.Duration(in.Wait) * time.Second
	if in.For != nil {
		d = *in.For
	}
	if d == 0 {
		d = time.Hour
	}
	if d < 0 || d > longestWait {
		return 0, base.Invalid("the wait is %s, and has to be at most %s", d, longestWait)
	}
	return d, nil
}

func ensureCall(r *Request, in *Ensuring) (v Ensured, err error) {
	asked := &toolcall.Asked{CallID: in.ID, Tool: in.Tool, Arguments: in.Arguments, PID: -1}
	asked.Gate = record.Gate{Agent: in.Agent, Version: in.Version, Session: in.Session, SubAgent: in.SubAgent, Turn: in.Turn, Permissions: in.Permissions, Folder: in.Folder, Head: in.Head}
	if in.PID != nil {
		asked.PID, asked.AgentPID = *in.PID, *in.PID
	}
	if in.Token != "" {
		if asked.Token, err = uuid.Parse(in.Token); err != nil {
			return v, errNoToken
		}
	}
	if asked.Wait, err = in.wait(); err != nil {
		return v, err
	}
	state, err := base.ReadGate(r.Ctx, base.Of(r.Store))
	if err != nil {
		return v, err
	}
	asked.Mode, asked.Level = state.Mode(in.Agent), state.LevelOf()
	said, err := toolcall.Ensure(r.Ctx, base.Of(r.Store), asked)
	if err != nil {
		return v, err
	}
	return Ensured{contract.CallOf(said.Call), said.Say, said.Reason, said.Token, said.New, said.Changed}, nil
}
