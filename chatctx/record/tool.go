package record

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/internal/branchstore"
)

// Tool is a tool that a model may call.
type Tool struct {
	Name        string          `cbor:"1,keyasint" json:"tool"`
	Description string          `cbor:"2,keyasint,omitempty" json:"description,omitempty"`
	Schema      json.RawMessage `cbor:"3,keyasint,omitempty" json:"schema,omitempty"` // JSON Schema of the arguments; nil: any object
	// Command is the argument list of a command, or with MCP that of an MCP server; URL is the address of an MCP server. With neither, a Go function of the
	// program runs the tool.
	Command []string          `cbor:"4,keyasint,omitempty" json:"command,omitempty"`
	Stdin   bool              `cbor:"13,keyasint,omitempty" json:"stdin,omitempty"`  // the command gets the arguments as JSON on its standard input
	Dashes  bool              `cbor:"14,keyasint,omitempty" json:"dashes,omitempty"` // an argument may begin with a dash, though the command may take it for a flag
	MCP     bool              `cbor:"5,keyasint,omitempty" json:"mcp,omitempty"`
	URL     string            `cbor:"6,keyasint,omitempty" json:"url,omitempty"`
	Dir     string            `cbor:"7,keyasint,omitempty" json:"cwd,omitempty"`
	Env     map[string]string `cbor:"8,keyasint,omitempty" json:"-"` // only the names are shown
	// Headers are sent to an MCP server with a URL. Each names an environment variable that has the header's value; the value is never stored.
	Headers    map[string]string `cbor:"15,keyasint,omitempty" json:"headers,omitempty"`
	Timeout    time.Duration     `cbor:"9,keyasint,omitempty" json:"timeout,omitempty"`     // 0: the executor's default
	Repeatable bool              `cbor:"10,keyasint,omitempty" json:"repeatable,omitempty"` // a second run does no harm
	Prune      string            `cbor:"11,keyasint,omitempty" json:"prune,omitempty"`      // prune, summarise, keep; "": as the policy says
	Remotes    []Remote          `cbor:"12,keyasint,omitempty" json:"tools,omitempty"`      // the tools of an MCP server's record
	// Remote is the MCP server's name of the tool. Only tools of a draft have it.
	Remote string `cbor:"-" json:"-"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// Remote is a tool of an MCP server, as the server described it when it was added.
type Remote struct {
	Name        string          `cbor:"1,keyasint" json:"name"`
	Description string          `cbor:"2,keyasint,omitempty" json:"description,omitempty"`
	Schema      json.RawMessage `cbor:"3,keyasint,omitempty" json:"schema,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// KeptTool is a stored tool with its scope.
type KeptTool struct {
	Tool
	Store bool `json:"store" after:"prune"` // a tool of the store, for all contexts
}

// Check returns a pool.ErrInvalid if a tool cannot be stored.
func (t *Tool) Check() error {
	switch {
	case t.Name == "" || len(t.Name) > 128 || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return invalid("the tool's name %q must have 1 to 128 bytes, without spaces", t.Name)
	case branchstore.IsStep(t.Name):
		return invalid("a tool cannot be named %q: no address reaches it", t.Name)
	case t.Schema != nil && (!json.Valid(t.Schema) || t.Schema[0] != '{'):
		return invalid("the schema of tool %q is not a JSON object", t.Name)
	case t.Timeout < 0:
		return invalid("the time limit of tool %q is negative", t.Name)
	case t.Prune != "" && t.Prune != "prune" && t.Prune != "summarise" && t.Prune != "keep":
		return invalid("prune of tool %q is %q: it must be prune, summarise or keep", t.Name, t.Prune)
	case t.MCP && len(t.Command) == 0 && t.URL == "":
		return invalid("the MCP server %q needs a command or a URL", t.Name)
	case len(t.Headers) > 0 && t.URL == "":
		return invalid("only an MCP server with a URL takes headers")
	}
	for name, variable := range t.Headers {
		if !token(name) || variable == "" || strings.ContainsAny(variable, "=\x00") {
			return invalid("the header %q of tool %q must have a name, and name the environment variable that holds its value", name, t.Name)
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
