package record

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Runs is what runs the calls of a tool, without their arguments: the tool's command or its MCP server, as a store had it when a step was taken. The zero value
// means that the store had no such tool.
type Runs struct {
	Command []string `cbor:"1,keyasint,omitempty" json:"command,omitempty"`
	MCP     bool     `cbor:"2,keyasint,omitempty" json:"mcp,omitempty"`
	URL     string   `cbor:"3,keyasint,omitempty" json:"url,omitempty"`
	Dir     string   `cbor:"4,keyasint,omitempty" json:"cwd,omitempty"`     // the tool's, else that of the setting calls.folder; "": that of the program that runs it
	Env     []string `cbor:"5,keyasint,omitempty" json:"env,omitempty"`     // the names of its variables, sorted
	Headers []string `cbor:"6,keyasint,omitempty" json:"headers,omitempty"` // NAME=VARIABLE, sorted
	Stdin   bool     `cbor:"7,keyasint,omitempty" json:"stdin,omitempty"`
	Dashes  bool     `cbor:"8,keyasint,omitempty" json:"dashes,omitempty"`
}

// RunsOf returns what runs the calls of a tool, nil for none, where folder is that of the setting calls.folder.
func RunsOf(t *Tool, folder string) *Runs {
	if t == nil {
		return &Runs{}
	}
	r := &Runs{Command: t.Command, MCP: t.MCP, URL: t.URL, Dir: t.Dir, Env: slices.Sorted(maps.Keys(t.Env)), Stdin: t.Stdin, Dashes: t.Dashes}
	if r.Dir == "" && (len(t.Command) > 0 || t.MCP) {
		r.Dir = folder
	}
	for name, variable := range t.Headers {
		r.Headers = append(r.Headers, name+"="+variable)
	}
	slices.Sort(r.Headers)
	return r
}

// Same reports whether two tools run in the same way.
func (r *Runs) Same(other *Runs) bool {
	return slices.Equal(r.Command, other.Command) && r.MCP == other.MCP && r.URL == other.URL && r.Dir == other.Dir && slices.Equal(r.Env, other.Env) &&
		slices.Equal(r.Headers, other.Headers) && r.Stdin == other.Stdin && r.Dashes == other.Dashes
}

// String returns it on one line, for people: a command's words in quotes where they need some, its folder and the names of its variables.
func (r *Runs) String() string {
	var words []string
	for _, word := range r.Command {
		if word == "" || strings.ContainsAny(word, " \t\r\n\"'\\") {
			word = strconv.Quote(word)
		}
		words = append(words, word)
	}
	if r.URL != "" {
		words = append(words, r.URL)
	}
	if len(words) == 0 {
		return "no command"
	}
	text := strings.Join(words, " ")
	for _, more := range []struct {
		given bool
		text  string
	}{{r.MCP, "as an MCP server"}, {r.Stdin, "with the arguments on standard input"}, {r.Dashes, "with values that may begin with a dash"}, {r.Dir != "", "in " + r.Dir},
		{len(r.Env) > 0, "with " + strings.Join(r.Env, ", ")}, {len(r.Headers) > 0, "with " + strings.Join(r.Headers, ", ")}} {
		if more.given {
			text += " " + more.text
		}
	}
	return text
}
