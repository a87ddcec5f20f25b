package record

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// Tool is a tool that a model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments; nil: any object
	// Command is the argument list of a command, or with MCP that of an MCP server; URL is the address of an MCP server. With neither, a Go function of the
	// program runs the tool.
	Command    []string
	MCP        bool
	URL        string
	Dir        string
	Env        map[string]string
	Timeout    time.Duration // 0: the executor's default
	Repeatable bool          // a second run does no harm
	Prune      string        // prune, summarise, keep; "": as the policy says
	Remotes    []Remote      // the tools of an MCP server's record
	Stdin      bool          // the command gets the arguments as JSON on its standard input
	Dashes     bool          // an argument may begin with a dash, though the command may take it for a flag
	// Headers are sent to an MCP server with a URL. Each names an environment variable that has the header's value; the value is never stored.
	Headers map[string]string
	// Remote is the MCP server's name of the tool. Only tools of a draft have it.
	Remote string

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Rule says what to do with waiting calls. A Judge applies it.
type Rule struct {
	ID     pool.ID // in the record's key
	Effect string
	// Tool is a glob of tool names; * matches everything.
	Tool string
	When []Condition // all must hold
	// The scope: a zero Context means the store; Branch and Message narrow it to a branch or to one call of the context.
	Context pool.ID // in the record's key
	Branch  pool.ID
	Message pool.ID
	Index   int // of the call in Message, from 1
	// Default: the rule decides the calls that no other rule decides. A scope has at most one.
	Default  bool
	Expires  pool.Time     // the end of the rule; zero: never
	After    time.Duration // with Ask: calls expire after this time; 0: never
	Reason   string
	Mode     string // the rule holds only while the setting mode has this value; "": always
	By       string
	Created  pool.Time
	Unless   []Condition // the rule does not apply if one of these holds
	Examples []string    // calls with the required decisions, as in ParseExample

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Condition is a condition on a call's arguments.
type Condition struct {
	// Argument is a name; a dot goes deeper, and [0] or [*] into a list: file.path, "a.b", paths[*]. {} means all arguments as an object. With the operator
	// tool it is "".
	Argument string
	Op       string // equals, prefix, glob, regexp, range (LO..HI, one may be empty), under (a folder), each (patterns of commands), tool (a glob)
	Value    string

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// String returns the condition as it is written.
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

// String returns the rule on one line.
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

// DefaultDepth is the default of how deep sub-contexts may be nested.
const DefaultDepth = 4

// Task makes a context a sub-context: it says what the context does for its parent and how far it has come. Package subtask runs it.
type Task struct {
	Goal       string
	Branch     pool.ID // the parent's branch from which it was started
	BranchName string  // that branch's name at the start
	// Message and Index (from 1) are the call that started it and whose result its summary is. Zero: no call started it.
	Message pool.ID
	Index   int
	State   string // one of the Task… constants
	// Depth is the number of its ancestors. MaxDepth, MaxRounds and MaxTokens limit the nesting of its own tasks, the rounds with the model and the tokens;
	// 0: no limit.
	Depth     int
	MaxDepth  int
	MaxRounds int
	MaxTokens int64
	// OwnRules: the parent's rules do not hold. Keep: it is not trashed when it ends.
	OwnRules bool
	Keep     bool
	Summary  pool.ID // the last message on the parent's branch, with its summary; zero: none
	Reason   string
	Ended    pool.Time
	// Linked: a file of another program says that the context answered that call. What the parent allows does not hold for it.
	Linked bool

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// The states of a task. A running task whose calls wait is shown as waiting.
const (
	TaskRunning   = "running"
	TaskWaiting   = "waiting" // never stored
	TaskReturned  = "returned"
	TaskFailed    = "failed"
	TaskAbandoned = "abandoned"
)

// Remote is a tool of an MCP server, as the server described it when it was added.
type Remote struct {
	Name        string
	Description string
	Schema      json.RawMessage

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Check returns an ErrInvalid if a tool cannot be stored.
func (t *Tool) Check() error {
	switch {
	case t.Name == "" || len(t.Name) > 128 || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return Invalidf("the tool's name %q must have 1 to 128 bytes, without spaces", t.Name)
	case branch.IsStep(t.Name):
		return Invalidf("a tool cannot be named %q: no address reaches it", t.Name)
	case t.Schema != nil && (!json.Valid(t.Schema) || t.Schema[0] != '{'):
		return Invalidf("the schema of tool %q is not a JSON object", t.Name)
	case t.Timeout < 0:
		return Invalidf("the time limit of tool %q is negative", t.Name)
	case t.Prune != "" && t.Prune != "prune" && t.Prune != "summarise" && t.Prune != "keep":
		return Invalidf("prune of tool %q is %q: it must be prune, summarise or keep", t.Name, t.Prune)
	case t.MCP && len(t.Command) == 0 && t.URL == "":
		return Invalidf("the MCP server %q needs a command or a URL", t.Name)
	case len(t.Headers) > 0 && t.URL == "":
		return Invalidf("only an MCP server with a URL takes headers")
	}
	for name, variable := range t.Headers {
		if !token(name) || variable == "" || strings.ContainsAny(variable, "=\x00") {
			return Invalidf("the header %q of tool %q must have a name, and name the environment variable that holds its value", name, t.Name)
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

// KeptTool is a stored tool with its scope.
type KeptTool struct {
	Tool
	Store bool // a tool of the store, for all contexts
}
