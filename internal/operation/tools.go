package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/subtask"
)

func init() {
	Register(Group{Heading: "Tools and their calls", Command: "tools", Does: "tools that the model may call, and how they are run", Of: toolOperations})
}

const toolsHelp = "The command is a list of arguments after --, never a shell's line. {name} in one stands for the call's argument of that name, {} for all of them as JSON; without that argument the call's result is an error, and {name?} leaves its element out instead. A value that begins with a dash is refused if the command could take it for a flag: put -- before it, or = as in --path={path}. The command's standard input is empty, its environment clean, its output the result; a status other than 0 is a failure. " +
	"A tool without a command is run by programs that have it. The tools of an MCP server are named NAME__TOOL; tools add asks the server for them, so add it again when they change. " +
	"spawn_task, added by its name alone, lets the model start sub-contexts."

func toolOperations() []*Operation {
	return []*Operation{
		Define("tools.put", "POST /tools", Admin, "add a tool: a command, or with --mcp the tools of an MCP server", putTool).With(toolsHelp).Creating().
			As("tools add", "chatctx tools add read_file --schema read.json -- cat -- {path}\nchatctx tools add files --mcp -- npx some-mcp-server /srv\nchatctx tools add search --mcp https://mcp.example.com/mcp --global"),
		Define("tools.list", "GET /tools", Read, "list the tools of the conversation and of the store", listTools).As("tools ls", "chatctx tools ls"),
		Define("tools.get", "GET /tools/{tool}", Read, "show a tool", getTool).As("tools show", "chatctx tools show read_file"),
		Define("tools.remove", "POST /tools/{tool}/remove", Admin, "remove a tool", removeTool).As("tools rm", "chatctx tools rm read_file"),
	}
}

func (in *Owner) tools(r *Request) ([]record.KeptTool, error) {
	id, err := in.id(r)
	if err != nil {
		return nil, err
	}
	return r.Store.Tools(r.Ctx, id)
}

func listTools(r *Request, in *Scoped) (List[contract.Tool], error) {
	tools, err := in.tools(r)
	return ListEach(tools, err, func(t record.KeptTool) contract.Tool { return contract.ToolOf(&t) }) // with only the names of its environment
}

// ToolRef names a tool of a conversation or of the store.
type ToolRef struct {
	Tool string `json:"tool" arg:"TOOL" doc:"the tool's name"`
	Owner
}

func getTool(r *Request, in *ToolRef) (contract.Tool, error) {
	tools, err := in.tools(r)
	if err != nil {
		return contract.Tool{}, err
	}
	i := slices.IndexFunc(tools, func(t record.KeptTool) bool { return t.Name == in.Tool })
	if i < 0 {
		return contract.Tool{}, base.NotFound("tool", in.Tool)
	}
	return contract.ToolOf(&tools[i]), nil
}

// NewTool is a tool to add. What the command line reads from files and texts, it puts into the fields that the API has.
type NewTool struct {
	Tool        string            `json:"tool" arg:"NAME" doc:"the tool's name"`
	Command     []string          `json:"command,omitempty" arg:"[ARG…],empty" doc:"the command and its arguments: they run the tool, or start the MCP server"`
	Schema      json.RawMessage   `json:"schema,omitempty" doc:"the JSON Schema of the arguments"`
	SchemaFile  string            `json:"-" flag:"schema" doc:"the {FILE} with the JSON Schema of the arguments, or - for standard input"`
	Description string            `json:"description,omitempty" flag:"description" doc:"the {TEXT} that tells the model what it is for"`
	Dir         string            `json:"cwd,omitempty" flag:"cwd" doc:"the {DIR} in which it runs; relative paths in rules begin there"`
	Env         map[string]string `json:"env,omitempty" doc:"additional variables of its environment"`
	EnvPairs    []string          `json:"-" flag:"env" doc:"a variable of its environment: {K=V}; may be given again. No command prints V"`
	Headers     map[string]string `json:"headers,omitempty" doc:"headers for an MCP server with a URL, each with the name of an environment variable that has its value"`
	HeaderPairs []string          `json:"-" flag:"header" doc:"a header for an MCP server with a URL, with the value of an environment variable: {K=env:NAME}; may be given again. The value is never stored"`
	Timeout     Span              `json:"timeout,omitempty" flag:"timeout" doc:"the {TIME} after which it and everything that it started are ended; else 2m"`
	Repeatable  bool              `json:"repeatable,omitempty" flag:"repeatable" doc:"running it twice does no harm: it is run again after a crash"`
	Prune       string            `json:"prune,omitempty" flag:"prune" doc:"{WHAT} becomes of old results: prune, summarise or keep"`
	Stdin       bool              `json:"stdin,omitempty" flag:"stdin" doc:"the arguments go to the command's standard input as JSON"`
	Dashes      bool              `json:"dashes,omitempty" flag:"dashes" doc:"arguments may begin with a dash wherever they stand"`
	MCP         bool              `json:"mcp,omitempty" flag:"mcp" doc:"an MCP server: its command after --, or its URL"`
	URL         string            `json:"url,omitempty" doc:"the MCP server's address"`
	ScopedChange
}

// discoverTime bounds the wait for an MCP server.
const discoverTime = 30 * time.Second

// Made makes the tool, and refuses what nobody needs a store to refuse.
func (in *NewTool) Made() (record.Tool, error) {
	t := record.Tool{Name: in.Tool, Description: in.Description, Schema: in.Schema, Command: in.Command, Stdin: in.Stdin, Dashes: in.Dashes, MCP: in.MCP, URL: in.URL, Dir: in.Dir,
		Env: in.Env, Headers: in.Headers, Repeatable: in.Repeatable, Prune: in.Prune, Timeout: time.Duration(in.Timeout)}
	known(&t)
	if err := t.Check(); err != nil {
		return t, err
	}
	return t, approval.Rules{}.Tool(&t)
}

func putTool(r *Request, in *NewTool) (contract.Tool, error) {
	t, err := in.Made()
	if err != nil {
		return contract.Tool{}, err
	}
	var left []contract.LeftOut
	if t.MCP {
		ctx, cancel := context.WithTimeout(r.Ctx, discoverTime)
		defer cancel()
		remotes, out, err := approval.Discover(ctx, &t)
		if err != nil {
			return contract.Tool{}, err
		}
		t.Remotes = remotes
		for _, l := range out {
			left = append(left, contract.LeftOut{Tool: l.Name, Why: l.Why})
		}
	}
	before, err := in.tools(r)
	if err != nil {
		return contract.Tool{}, err
	}
	if in.ofStore() {
		r.Done, err = r.Store.PutTool(r.Ctx, t)
	} else {
		_, err = r.onContext(in.Context, func(b *chatctx.Batch) { b.PutTool(t) })
	}
	if err != nil {
		return contract.Tool{}, err
	}
	v := contract.ToolOf(&record.KeptTool{Tool: t, Store: in.ofStore()})
	v.Operation, v.LeftOut = r.Done.Operation, left
	v.Replaced = slices.ContainsFunc(before, func(k record.KeptTool) bool { return k.Name == t.Name && k.Store == in.ofStore() })
	return v, nil
}

// known completes a tool that is added by its name alone and that this program knows.
func known(t *record.Tool) {
	if t.Name != subtask.Tool().Name || len(t.Command) > 0 || t.MCP {
		return
	}
	if t.Schema == nil {
		t.Schema = json.RawMessage(subtask.Tool().Schema)
	}
	t.Description = cmp.Or(t.Description, subtask.Tool().Description)
}

// OldTool is a tool to remove.
type OldTool struct {
	Tool string `json:"tool" arg:"TOOL" doc:"the tool's name"`
	ScopedChange
}

// ToolGone is a tool that was removed.
type ToolGone struct {
	Tool string `json:"tool"`
	contract.Where
}

func removeTool(r *Request, in *OldTool) (ToolGone, error) {
	var err error
	if in.ofStore() {
		r.Done, err = r.Store.RemoveTool(r.Ctx, in.Tool)
	} else {
		_, err = r.onContext(in.Context, func(b *chatctx.Batch) { b.RemoveTool(in.Tool) })
	}
	if err != nil {
		return ToolGone{}, err
	}
	return ToolGone{in.Tool, contract.WhereOf(r.Done)}, nil
}
