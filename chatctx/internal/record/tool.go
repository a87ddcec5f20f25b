package record

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/pool"
)

// Tool is a tool that a model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments; nil: any object
	// How it is run: a command's argument list, or an MCP server's or its URL; none of them: by a Go function of the program.
	Command    []string
	MCP        bool
	URL        string
	Dir        string
	Env        map[string]string
	Timeout    time.Duration // 0: the executor's
	Repeatable bool          // running it twice does no harm
	Prune      string        // prune, summarise, keep; "": the policy's
	Remotes    []Remote      // of an MCP server's record: the tools that it offers
	Stdin      bool          // the arguments go to the command's standard input as JSON
	Dashes     bool          // an argument may begin with a dash, where the command could take it for a flag
	// Headers, of an MCP server with a URL, are sent to it: each with the value of the environment variable that is named here. Values are never stored.
	Headers map[string]string
	// Remote is the name that the MCP server knows the tool by. Only a tool of a draft has it.
	Remote string
}

// Rule says what is to be done with calls that wait. A Judge applies it.
type Rule struct {
	ID     pool.ID // stands in the key
	Effect string
	// Tool is a glob of tools' names in which * is everything.
	Tool string
	When []Condition // all have to hold
	// Scope: the zero Context is the store; Branch and Message narrow it to a branch or to one call of the context.
	Context pool.ID // stands in the key
	Branch  pool.ID
	Message pool.ID
	Index   int // of the call in Message, from 1
	// Default: it is no rule for some calls but what becomes of those that no rule decides. A scope has one.
	Default  bool
	Expires  pool.Time     // the rule holds until then; zero: for good
	After    time.Duration // an ask: calls expire after that time; 0: never
	Reason   string
	Mode     string // only while the setting mode is this; "": always
	By       string
	Created  pool.Time
	Unless   []Condition // the rule does not hold where one of them does
	Examples []string    // of calls, and what has to be decided about them: see ParseExample
}

// Condition is a condition on a call's arguments.
type Condition struct {
	// Argument is a name; a dot goes deeper and [0] or [*] into a list: file.path, "a.b", paths[*]; {} is all arguments as an object. "" with the operator tool.
	Argument string
	Op       string // equals, prefix, glob, regexp, range (LO..HI, one may be empty), under (a folder), each (patterns of commands), tool (a glob)
	Value    string
}

// String is the condition as it is written.
func (c Condition) String() string {
	if c.Argument == "" {
		return c.Op + " " + c.Value
	}
	return c.Argument + " " + c.Op + " " + c.Value
}

// ScopeWord names a rule's scope: call, branch, context or store.
func (r *Rule) ScopeWord() string {
	switch {
	case r.Message != (pool.ID{}):
		return "call"
	case r.Branch != (pool.ID{}):
		return "branch"
	case r.Context != (pool.ID{}):
		return "context"
	}
	return "store"
}

// String is the rule on one line.
func (r *Rule) String() string {
	if r.Default {
		return "default " + r.Effect
	}
	words := []string{r.Effect, r.Tool}
	for _, c := range r.When {
		words = append(words, "when "+c.String())
	}
	for _, c := range r.Unless {
		words = append(words, "unless "+c.String())
	}
	return strings.Join(words, " ")
}

// DefaultDepth is how deep sub-contexts may lie where nobody says so.
const DefaultDepth = 4

// Task is what makes a context a sub-context: what it is to do for its parent, and how far it has come. Package subtask runs it.
type Task struct {
	Goal       string
	Branch     pool.ID // of the parent, that it was started from
	BranchName string  // its name then
	// Message and Index (from 1) are the call that started it; its summary is that call's result. Zero: no call did.
	Message pool.ID
	Index   int
	State   string // one of the Task… constants
	// Depth is how many parents it has. The limits are on how deep tasks of it may go, on rounds with the model and on tokens; 0: none.
	Depth     int
	MaxDepth  int
	MaxRounds int
	MaxTokens int64
	// OwnRules: the rules of the parent do not hold. Keep: it stays when it has ended, instead of going to the trash.
	OwnRules bool
	Keep     bool
	Summary  pool.ID // the message on the parent branch that it ended with; zero: none
	Reason   string
	Ended    pool.Time
}

// The states of a task. One that runs and whose calls wait is shown as waiting.
const (
	TaskRunning   = "running"
	TaskWaiting   = "waiting" // never stored
	TaskReturned  = "returned"
	TaskFailed    = "failed"
	TaskAbandoned = "abandoned"
)

// Remote is a tool that an MCP server offers, as it said when it was added.
type Remote struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Check says why a tool cannot be kept.
func (t *Tool) Check() error {
	switch {
	case t.Name == "" || len(t.Name) > 128 || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return Invalidf("the tool's name %q: 1 to 128 bytes without spaces", t.Name)
	case t.Schema != nil && (!json.Valid(t.Schema) || t.Schema[0] != '{'):
		return Invalidf("the schema of tool %q is no JSON object", t.Name)
	case t.Timeout < 0:
		return Invalidf("the time limit of tool %q is negative", t.Name)
	case t.Prune != "" && t.Prune != "prune" && t.Prune != "summarise" && t.Prune != "keep":
		return Invalidf("prune of tool %q is %q: there are prune, summarise, keep", t.Name, t.Prune)
	case t.MCP && len(t.Command) == 0 && t.URL == "":
		return Invalidf("the MCP server %q needs a command or a URL", t.Name)
	case len(t.Headers) > 0 && t.URL == "":
		return Invalidf("headers are for an MCP server with a URL")
	}
	for name, variable := range t.Headers {
		if !token(name) || variable == "" || strings.ContainsAny(variable, "=\x00") {
			return Invalidf("the header %q of tool %q: a header has a name, and takes the value of an environment variable", name, t.Name)
		}
	}
	return nil
}

// token reports whether a text can be a header's name.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r > '~' || r <= ' ' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}

// KeptTool is a tool as it is kept, and where.
type KeptTool struct {
	Tool
	Store bool // for all contexts
}
