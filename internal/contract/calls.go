package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

func callRef(message chatctx.ID, index int) string { return fmt.Sprintf("%s:%d", message, index) }

// Call is a tool call.
type Call struct {
	Call      string          `json:"call"`
	ID        string          `json:"id"`
	Message   chatctx.ID      `json:"message"`
	Context   chatctx.ID      `json:"context"`
	Branch    string          `json:"branch"`
	Tool      string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"`
	Exact     string          `json:"exact_arguments,omitempty"` // their text, if an object in them has a name twice
	Effective json.RawMessage `json:"effective_arguments,omitempty"`
	ChangedBy *By             `json:"changed_by,omitempty"` // who put the effective arguments in place
	Status    pool.Status     `json:"approval_status"`
	Execution pool.Execution  `json:"execution"`
	Reason    string          `json:"reason,omitempty"`
	Since     *time.Time      `json:"since"`
	Expires   *time.Time      `json:"expires,omitempty"`
	By        *By             `json:"by,omitempty"`
	Program   string          `json:"program,omitempty"`
	Effect    string          `json:"effect,omitempty"` // what the rules decide about a waiting call
	Rule      *chatctx.ID     `json:"rule,omitempty"`
	Operation string          `json:"operation,omitempty"`
	Origin    *Origin         `json:"origin,omitempty"`
}

// By is who took a step.
type By struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Claimed string `json:"claimed,omitempty"`      // the name that they gave themselves
	Said    bool   `json:"said_by_file,omitempty"` // an imported file says so: it is no decision of this store
}

func byOf(d *chatctx.Decision) By { return By{d.ByKind, d.ByName, d.Claimed, d.Said} }

// Open counts the open calls by what they wait for.
type Open struct {
	Person  int `json:"person"`
	Program int `json:"program"`
	Child   int `json:"child"`
	Running int `json:"running"`
}

// Origin is the purpose of the sub-context of a call: the call belongs to a task of another conversation.
type Origin struct {
	Context chatctx.ID `json:"context"`
	Branch  string     `json:"branch"`
	Call    *string    `json:"call"`
	Goal    string     `json:"goal"`
}

// OriginOf returns the JSON of a task's purpose.
func OriginOf(t *chatctx.TaskInfo) *Origin {
	o := &Origin{Context: t.Parent, Branch: t.BranchName, Goal: t.Goal}
	if t.Message != (chatctx.ID{}) {
		o.Call = String(callRef(t.Message, t.Index))
	}
	return o
}

// CallOf returns the JSON of a call.
func CallOf(c *chatctx.Call) Call {
	v := Call{Call: string(c.Ref()), ID: c.ID, Message: c.Message, Context: c.Context, Branch: c.Branch, Tool: c.Tool, Arguments: Raw(c.Arguments),
		Effective: c.Effective, Status: c.Status, Execution: c.Execution, Reason: c.Reason, Since: Time(c.Since), Expires: Time(c.Expires)}
	if unique, same := jsontree.Unique(v.Arguments); !same {
		v.Arguments, v.Exact = unique, string(c.Arguments)
	}
	if d := c.ChangedBy; d != nil {
		v.ChangedBy = &By{d.Kind, d.Name, d.Claimed, d.Said}
	}
	if n := len(c.Decisions); n > 0 {
		d := &c.Decisions[n-1]
		by := byOf(d)
		v.By, v.Program = &by, d.Program
	}
	return v
}

// Claim is the right to run a call.
type Claim struct {
	Call
	Token        chatctx.ID      `json:"token"`
	RunArguments json.RawMessage `json:"run_arguments"`
}

// Answered is a call with its result.
type Answered struct {
	Call
	Result   chatctx.ID `json:"result"`
	Position int        `json:"position"`
	Note     string     `json:"note,omitempty"`
}

// AnsweredOf returns the JSON of the call that a change answered.
func AnsweredOf(done *chatctx.Committed) Answered {
	at := done.Last().Placed[0]
	v := Answered{Call: CallOf(done.Last().Call), Result: at.Message, Position: at.Position}
	v.Operation = done.Operation
	return v
}

// Step is a step in the life of a call.
type Step struct {
	Call      string          `json:"call"`
	ID        string          `json:"id"`
	Context   chatctx.ID      `json:"context"`
	Tool      string          `json:"tool_name"`
	At        *time.Time      `json:"at"`
	From      string          `json:"from"`
	To        string          `json:"to"`
	By        By              `json:"by"`
	Program   string          `json:"program"`
	Origin    string          `json:"origin,omitempty"` // in the first step: the operation that brought the call
	Reason    string          `json:"reason"`
	SHA256    string          `json:"arguments_sha256,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Runs      *Runs           `json:"runs,omitempty"` // of an approval, what the call was to run with; of a claim, what ran
	User      string          `json:"user,omitempty"` // on a server: the database's user, a slash, the local user
}

// Runs is what runs the calls of a tool. The zero value means that the store had no such tool.
type Runs struct {
	Command []string `json:"command,omitempty"` // the tool's, without arguments
	Argv    []string `json:"argv,omitempty"`    // of a call: the command with its arguments
	MCP     bool     `json:"mcp,omitempty"`
	URL     string   `json:"url,omitempty"`
	Dir     string   `json:"cwd,omitempty"`
	Env     []string `json:"env,omitempty"` // only the names
	Headers []string `json:"headers,omitempty"`
	Stdin   bool     `json:"stdin,omitempty"`
	Dashes  bool     `json:"dashes,omitempty"`
	Timeout string   `json:"timeout,omitempty"`
	Why     string   `json:"why,omitempty"` // of a call: why it would not run
}

// RunsOf returns the JSON of what runs the calls of a tool, nil for nil.
func RunsOf(r *chatctx.Runs) *Runs {
	if r == nil {
		return nil
	}
	return &Runs{Command: r.Command, MCP: r.MCP, URL: r.URL, Dir: r.Dir, Env: r.Env, Headers: r.Headers, Stdin: r.Stdin, Dashes: r.Dashes}
}

// StepOf returns the JSON of a step in the life of a call.
func StepOf(s *chatctx.CallStep) Step {
	v := Step{Call: callRef(s.Message, s.Index), ID: s.ID, Context: s.Context, Tool: s.Tool, At: Time(s.At), From: s.From, To: s.To,
		By: byOf(&s.Decision), Program: s.Program, Origin: s.Origin, Reason: s.Reason, Arguments: s.Arguments, Runs: RunsOf(s.Runs), User: s.User}
	if s.ArgsSHA256 != (pool.Hash{}) {
		v.SHA256 = fmt.Sprintf("%x", s.ArgsSHA256[:])
	}
	return v
}

// Shown is a call with its history and what it runs.
type Shown struct {
	Call
	Description string     `json:"description,omitempty"` // of the tool
	Runs        *Runs      `json:"runs,omitempty"`
	Decisions   []Step     `json:"decisions"`
	Claim       *ClaimedBy `json:"claim,omitempty"`
}

// ClaimedBy is who runs a call.
type ClaimedBy struct {
	Program string `json:"program"`
	PID     int    `json:"pid,omitempty"`
	Host    string `json:"host"`
}

// ShownOf returns the JSON of a call with its history. judged is the call as CallOf returned it, plan what it runs.
func ShownOf(c *chatctx.Call, judged Call, plan *approval.Plan) Shown {
	v := Shown{Call: judged, Decisions: []Step{}}
	if plan != nil {
		v.Description, v.Runs = plan.Description, RunsOf(plan.Runs)
		v.Runs.Argv = plan.Argv
		if plan.Timeout > 0 {
			v.Runs.Timeout = plan.Timeout.String()
		}
		if plan.Why != nil {
			v.Runs.Why = plan.Why.Error()
		}
	}
	for _, d := range c.Decisions {
		v.Decisions = append(v.Decisions, StepOf(&chatctx.CallStep{Context: c.Context, Message: c.Message, Index: c.Index, ID: c.ID, Tool: c.Tool, Decision: d}))
	}
	if c.Claim != nil {
		v.Claim = &ClaimedBy{c.Claim.Program, c.Claim.PID, c.Claim.Host}
	}
	return v
}

// Rule is a rule about calls.
type Rule struct {
	Rule      chatctx.ID  `json:"rule"`
	Effect    string      `json:"effect"`
	Tool      string      `json:"tool"`
	When      []Condition `json:"when"`
	Unless    []Condition `json:"unless,omitempty"`
	Examples  []string    `json:"examples,omitempty"`
	Default   bool        `json:"default,omitempty"`
	Scope     string      `json:"scope"`
	Context   *chatctx.ID `json:"context,omitempty"`
	Branch    *chatctx.ID `json:"branch_id,omitempty"`
	Call      string      `json:"call,omitempty"`
	Expires   *time.Time  `json:"expires,omitempty"`
	After     string      `json:"after,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Mode      string      `json:"mode,omitempty"`
	By        string      `json:"by"`
	Created   *time.Time  `json:"created_at"`
	Broken    []Broken    `json:"broken,omitempty"`
	Operation string      `json:"operation,omitempty"`
}

// Condition is a condition of a rule.
type Condition struct {
	Argument string `json:"argument,omitempty"`
	Op       string `json:"op"`
	Value    string `json:"value"`
}

// Broken is an example that the rules do not satisfy.
type Broken struct {
	Rule    chatctx.ID `json:"rule"`
	Example string     `json:"example"`
	Is      string     `json:"is"`
	At      *time.Time `json:"at,omitempty"` // when the example breaks, because a rule expires; left out if it is broken now
}

// BrokenOf returns the JSON of examples that the rules do not satisfy.
func BrokenOf(all []chatctx.BrokenExample) (out []Broken) {
	for _, b := range all {
		out = append(out, Broken{b.Rule.ID, b.Example, b.Is, Time(b.At)})
	}
	return out
}

// RuleOf returns the JSON of a rule.
func RuleOf(r *chatctx.Rule) Rule {
	v := Rule{Rule: r.ID, Effect: r.Effect, Tool: r.Tool, When: []Condition{}, Examples: r.Examples, Default: r.Default, Scope: r.ScopeWord(), Context: ID(r.Context),
		Branch: ID(r.Branch), Expires: Time(r.Expires), Reason: r.Reason, Mode: r.Mode, By: r.By, Created: Time(r.Created)}
	for _, c := range r.When {
		v.When = append(v.When, Condition{Argument: c.Argument, Op: c.Op, Value: c.Value})
	}
	for _, c := range r.Unless {
		v.Unless = append(v.Unless, Condition{Argument: c.Argument, Op: c.Op, Value: c.Value})
	}
	if r.Message != (chatctx.ID{}) {
		v.Call = callRef(r.Message, r.Index)
	}
	if r.After > 0 {
		v.After = r.After.String()
	}
	return v
}

// Tool is a tool.
type Tool struct {
	Tool        string            `json:"tool"`
	Description string            `json:"description,omitempty"`
	Schema      json.RawMessage   `json:"schema,omitempty"`
	Command     []string          `json:"command,omitempty"`
	Stdin       bool              `json:"stdin,omitempty"`
	Dashes      bool              `json:"dashes,omitempty"`
	MCP         bool              `json:"mcp,omitempty"`
	URL         string            `json:"url,omitempty"`
	Dir         string            `json:"cwd,omitempty"`
	Env         []string          `json:"env,omitempty"` // only the names
	Headers     map[string]string `json:"headers,omitempty"`
	Timeout     string            `json:"timeout,omitempty"`
	Repeatable  bool              `json:"repeatable,omitempty"`
	Prune       string            `json:"prune,omitempty"`
	Store       bool              `json:"store"`
	Tools       []Remote          `json:"tools,omitempty"`
	LeftOut     []LeftOut         `json:"left_out,omitempty"`
	Operation   string            `json:"operation,omitempty"`
}

// Remote is a tool of an MCP server.
type Remote struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// LeftOut is a tool of an MCP server that cannot be offered to a model.
type LeftOut struct {
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// ToolOf returns the JSON of a tool.
func ToolOf(t *chatctx.KeptTool) Tool {
	v := Tool{Tool: t.Name, Description: t.Description, Schema: t.Schema, Command: t.Command, Stdin: t.Stdin, Dashes: t.Dashes, MCP: t.MCP, URL: t.URL, Dir: t.Dir,
		Env: slices.Sorted(maps.Keys(t.Env)), Headers: t.Headers, Repeatable: t.Repeatable, Prune: t.Prune, Store: t.Store}
	if t.Timeout > 0 {
		v.Timeout = t.Timeout.String()
	}
	for _, one := range t.Remotes {
		v.Tools = append(v.Tools, Remote{Name: one.Name, Description: one.Description, Schema: one.Schema})
	}
	return v
}

// CallStates maps the words by which one asks for open calls to the recorded states.
var CallStates = map[string]string{
	"pending":   chatctx.CallState(pool.Pending, pool.NotRun),
	"approved":  chatctx.CallState(pool.Approved, pool.NotRun),
	"running":   chatctx.CallState(pool.Approved, pool.Running),
	"uncertain": chatctx.CallState(pool.Approved, pool.Uncertain),
}
