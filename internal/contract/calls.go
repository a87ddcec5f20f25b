package contract

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// Call is a tool call.
type Call struct {
	CallRef record.CallRef `json:"call"`
	*record.Call
	Exact     string        `json:"exact_arguments,omitempty" after:"arguments"` // their text, if an object in them has a name twice
	By        *pool.Decider `json:"by,omitempty"`
	Program   string        `json:"program,omitempty"`
	Effect    string        `json:"effect,omitempty" words:"allow deny ask"` // what the rules decide about a waiting call
	Rule      chatctx.ID    `json:"rule,omitzero"`
	Operation string        `json:"operation,omitempty"`
	Origin    *Origin       `json:"origin,omitempty"`
	Title     string        `json:"-"` // the conversation's, where calls of several are listed
}

// Open counts the open calls by what they wait for.
type Open struct {
	Person  int `json:"person"`
	Program int `json:"program"`
	Child   int `json:"child"`
	Running int `json:"running"`
}

// Add counts a call by what it waits for.
func (o *Open) Add(what string) {
	switch what {
	case record.WaitsForPerson:
		o.Person++
	case record.WaitsForProgram:
		o.Program++
	case record.WaitsForChild:
		o.Child++
	case record.WaitsForResult:
		o.Running++
	}
}

// Join adds the calls of another branch.
func (o *Open) Join(other Open) {
	o.Person, o.Program, o.Child, o.Running = o.Person+other.Person, o.Program+other.Program, o.Child+other.Child, o.Running+other.Running
}

// All returns how many calls are open.
func (o *Open) All() int { return o.Person + o.Program + o.Child + o.Running }

// Origin is the purpose of the sub-context of a call: the call belongs to a task of another conversation.
type Origin struct {
	Context chatctx.ID     `json:"context"`
	Branch  string         `json:"branch"`
	Call    record.CallRef `json:"call" empty:"null"`
	Goal    string         `json:"goal"`
}

// OriginOf returns the JSON of a task's purpose.
func OriginOf(t *record.TaskInfo) *Origin {
	return &Origin{Context: t.Parent, Branch: t.BranchName, Call: callOfTask(&t.Task), Goal: t.Goal}
}

// CallOf returns the JSON of a call.
func CallOf(c *record.Call) Call {
	v := Call{CallRef: c.Ref(), Call: c}
	if _, same := jsontree.Unique(c.Arguments); !same {
		v.Exact = string(c.Arguments)
	}
	if n := len(c.Decisions); n > 0 {
		v.By, v.Program = &c.Decisions[n-1].Decider, c.Decisions[n-1].Program
	}
	return v
}

// Claim is the right to run a call.
type Claim struct {
	Call
	Token        chatctx.ID      `json:"token"`
	RunArguments json.RawMessage `json:"run_arguments"`
}

// ClaimOf returns the JSON of a claim.
func ClaimOf(c *record.Call, token chatctx.ID) Claim {
	return Claim{Call: CallOf(c), Token: token, RunArguments: c.RunArguments()}
}

// Answered is a call with its result.
type Answered struct {
	Call
	Result   chatctx.ID `json:"result"`
	Position int        `json:"position"`
	Note     string     `json:"note,omitempty"`

	Done *record.Committed `json:"-"`
}

// AnsweredOf returns the JSON of the call that a change answered.
func AnsweredOf(done *record.Committed) Answered {
	at := done.Last().Placed[0]
	v := Answered{Call: CallOf(done.Last().Call), Result: at.Message, Position: at.Position, Done: done}
	v.Operation = done.Operation
	return v
}

// Step is a step in the life of a call.
type Step struct {
	CallRef record.CallRef `json:"call"`
	*record.CallStep
}

// StepOf returns the JSON of a step in the life of a call.
func StepOf(s *record.CallStep) Step { return Step{callOfStep(s), s} }

// Runs is what runs a call.
type Runs struct {
	*record.Runs
	Argv    []string `json:"argv,omitempty" after:"command"` // the command with its arguments
	Timeout string   `json:"timeout,omitempty"`
	Why     string   `json:"why,omitempty"` // why it would not run
}

// Shown is a call with its history and what it runs.
type Shown struct {
	Call
	Description string        `json:"description,omitempty"` // of the tool
	Runs        *Runs         `json:"runs,omitempty"`
	Decisions   []Step        `json:"decisions"`
	Claim       *record.Claim `json:"claim,omitempty"` // of the program that runs it
}

// ShownOf returns the JSON of a call with its history. judged is the call as CallOf returned it, plan what it runs.
func ShownOf(c *record.Call, judged Call, plan *approval.Plan) Shown {
	v := Shown{Call: judged, Claim: c.Claim}
	if plan != nil {
		v.Description, v.Runs = plan.Description, &Runs{Runs: plan.Runs, Argv: plan.Argv}
		if plan.Timeout > 0 {
			v.Runs.Timeout = plan.Timeout.String()
		}
		if plan.Why != nil {
			v.Runs.Why = plan.Why.Error()
		}
	}
	for _, d := range c.Decisions {
		v.Decisions = append(v.Decisions, StepOf(&record.CallStep{Context: c.Context, Message: c.Message, Index: c.Index, ID: c.ID, Tool: c.Tool, Decision: d}))
	}
	return v
}

// Rule is a rule about calls.
type Rule struct {
	*record.Rule
	Scope     string         `json:"scope" after:"default" words:"call branch context store"`
	Call      record.CallRef `json:"call,omitempty" after:"branch_id"`
	Broken    []Broken       `json:"broken,omitempty"`
	Operation string         `json:"operation,omitempty"`
}

// RuleOf returns the JSON of a rule.
func RuleOf(r *record.Rule) Rule { return Rule{Rule: r, Scope: r.ScopeWord(), Call: callOfRule(r)} }

// Broken is an example that the rules do not satisfy.
type Broken struct {
	Rule chatctx.ID `json:"rule"`
	record.Broken
}

// BrokenOf returns the JSON of examples that the rules do not satisfy.
func BrokenOf(all []record.Broken) (out []Broken) {
	for _, b := range all {
		out = append(out, Broken{b.Rule.ID, b})
	}
	return out
}

// Tool is a tool.
type Tool struct {
	record.KeptTool
	Env       []string  `json:"env,omitempty" after:"cwd"` // only the names
	LeftOut   []LeftOut `json:"left_out,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Replaced  bool      `json:"-"` // there was one with its name
}

// ToolOf returns the JSON of a tool.
func ToolOf(t *record.KeptTool) Tool {
	return Tool{KeptTool: *t, Env: slices.Sorted(maps.Keys(t.Env))}
}

// LeftOut is a tool of an MCP server that cannot be offered to a model.
type LeftOut struct {
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// CallStates maps the words by which one asks for open calls to the recorded states.
var CallStates = map[string]string{
	"pending":   record.CallState(pool.Pending, pool.NotRun),
	"approved":  record.CallState(pool.Approved, pool.NotRun),
	"running":   record.CallState(pool.Approved, pool.Running),
	"uncertain": record.CallState(pool.Approved, pool.Uncertain),
}
