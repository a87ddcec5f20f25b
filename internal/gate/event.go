package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/toolcall"
)

// event is what a hook gets, with the names that the agents have for its parts.
type event struct {
	Name      string          `json:"hook_event_name"`
	Session   string          `json:"session_id"`
	Session2  string          `json:"sessionId"`
	Tool      string          `json:"tool_name"`
	Tool2     string          `json:"toolName"`
	Input     json.RawMessage `json:"tool_input"`
	Input2    json.RawMessage `json:"toolArgs"`
	ID        string          `json:"tool_use_id"`
	SubAgent  string          `json:"agent_id"`
	Turn      string          `json:"turn_id"`
	Prompt    string          `json:"prompt_id"`
	Folder    string          `json:"cwd"`
	Mode      string          `json:"permission_mode"`
	Response  json.RawMessage `json:"tool_response"`
	Result    json.RawMessage `json:"tool_result"`
	Result2   json.RawMessage `json:"toolResult"`
	Error     json.RawMessage `json:"error"`
	Calls     []event         `json:"tool_calls"`
	Paths     string          `json:"transcript_path"`
	In        *opencodeEvent  `json:"input"`
	Out       *opencodeEvent  `json:"output"`
	Interrupt bool            `json:"is_interrupt"`
}

// opencodeEvent is half of what opencode gives a plugin.
type opencodeEvent struct {
	Tool    string          `json:"tool"`
	Session string          `json:"sessionID"`
	ID      string          `json:"callID"`
	Args    json.RawMessage `json:"args"`
	Output  string          `json:"output"`
}

// errEvent is the error of an event that is none of this agent's.
var errEvent = errors.New("the agent's hook got what this version does not understand")

// maxEvent bounds what an agent may send.
const maxEvent = 64 << 20

// readEvent reads an event; name is its name where the agent does not send it.
func (a *Agent) readEvent(raw []byte, name string) (*event, Moment, error) {
	e := &event{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, "", fmt.Errorf("%w: %v", errEvent, err)
	}
	if e.In != nil {
		e.Tool, e.Session, e.ID, e.Input = e.In.Tool, e.In.Session, e.In.ID, e.In.Args
		if e.Out != nil && e.Input == nil {
			e.Input = e.Out.Args
		}
		if e.Out != nil {
			e.Response, _ = json.Marshal(e.Out.Output)
		}
	}
	e.Name, e.Session, e.Tool = cmp.Or(e.Name, name), cmp.Or(e.Session, e.Session2), cmp.Or(e.Tool, e.Tool2)
	if e.Input == nil {
		e.Input = e.Input2
	}
	moment, known := a.Events[e.Name]
	switch {
	case name != "" && e.Name != name:
		return e, "", fmt.Errorf("%w: it is installed for %s and got %s", errEvent, name, e.Name)
	case !known:
		return e, "", fmt.Errorf("%w: the event %q", errEvent, e.Name)
	case e.Session == "":
		return e, moment, fmt.Errorf("%w: no session", errEvent)
	case moment == Before && (e.Tool == "" || !a.NoIDs && e.ID == ""):
		return e, moment, fmt.Errorf("%w: a call without a tool or an id", errEvent)
	}
	return e, moment, nil
}

// asked is the call of an event.
func (e *event) asked(a *Agent) *toolcall.Asked {
	in := &toolcall.Asked{CallID: e.ID, Tool: e.Tool, Arguments: e.Input}
	in.Gate = record.Gate{Agent: a.Name, Session: e.Session, SubAgent: e.SubAgent, Turn: cmp.Or(e.Turn, e.Prompt), Permissions: e.Mode, Folder: e.Folder, Head: headOf(e.Folder)}
	if a.NoIDs {
		in.CallID = ""
	}
	if in.Arguments == nil {
		in.Arguments = json.RawMessage("{}")
	}
	return in
}

// outcome is what an event after a call says of it.
func (e *event) outcome(m Moment) toolcall.Outcome {
	out := toolcall.Outcome{Failed: m == Failed, Refused: m == Refused || m == Batch}
	for _, raw := range []json.RawMessage{e.Response, e.Result, e.Result2, e.Error} {
		if raw == nil {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		out.Text = strings.ToValidUTF8(text[:min(len(text), keptOutput)], "")
	}
	if e.Result2 != nil || e.Result != nil {
		var r struct {
			Type  string `json:"resultType"`
			Type2 string `json:"result_type"`
		}
		_ = json.Unmarshal([]byte(cmp.Or(string(e.Result), string(e.Result2))), &r)
		out.Failed = r.Type == "failure" || r.Type2 == "failure"
	}
	return out
}

// keptOutput bounds what is kept of a result. The session's file has the whole of it.
const keptOutput = 64 << 10

// headOf returns the commit of a folder's repository, "" if there is none or it is told otherwise than in plain files.
func headOf(folder string) string {
	for dir := folder; filepath.IsAbs(dir); {
		head, err := os.ReadFile(filepath.Join(dir, ".git", "HEAD"))
		if err == nil {
			word := strings.TrimSpace(string(head))
			if ref, is := strings.CutPrefix(word, "ref: "); is && filepath.IsLocal(ref) {
				commit, _ := os.ReadFile(filepath.Join(dir, ".git", ref))
				word = strings.TrimSpace(string(commit))
			}
			if len(word) == 40 || len(word) == 64 {
				return word
			}
			return ""
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}
