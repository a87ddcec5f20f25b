package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
)

const toolFields = "tool, description, schema, command, stdin, dashes, mcp, url, cwd, env[name], headers{name: variable}, timeout, repeatable, prune, store, left_out[{tool, why}], tools[{name, description, schema}]"

func toolCommands() []*command {
	return []*command{
		{name: "tools", does: "tools that the model may call, and how they are run", scope: onContext, subs: []*command{
			{name: "add", does: "add a tool: a command, or with --mcp the tools of an MCP server", scope: onContext, run: in(doToolsAdd),
				more: "The command is a list of arguments after --, never a shell's line. {name} in one stands for the call's argument of that name, {} for all of them as JSON; without that argument the call's result is an error, and {name?} leaves its element out instead. A value that begins with a dash is refused if the command could take it for a flag: put -- before it, or = as in --path={path}. The command's standard input is empty, its environment clean, its output the result; a status other than 0 is a failure. " +
					"A tool without a command is run by programs that have it. The tools of an MCP server are named NAME__TOOL; tools add asks the server for them, so add it again when they change. " +
					"spawn_task, added by its name alone, lets the model start sub-contexts.",
				json: toolFields + ", operation", example: "chatctx tools add read_file --schema read.json -- cat -- {path}\nchatctx tools add files --mcp -- npx some-mcp-server /srv\nchatctx tools add search --mcp https://mcp.example.com/mcp --store"},
			{name: "ls", does: "list the tools of the conversation and of the store", scope: onContext, run: in(doToolsLs), json: toolFields + "; a line each", example: "chatctx tools ls"},
			{name: "show", does: "show a tool", scope: onContext, run: in(doToolsShow), json: toolFields, example: "chatctx tools show read_file"},
			{name: "rm", does: "remove a tool", scope: onContext, run: in(doToolsRm), json: "tool, operation, context", example: "chatctx tools rm read_file"},
		}},
	}
}

type allToolsFlag struct {
	Store bool `flag:"store" doc:"for all conversations (name another store before the command: chatctx --store FILE tools)"`
}

type toolsAddIn struct {
	Name        string        `arg:"NAME"`
	Args        []string      `arg:"[ARG…],empty"`
	Schema      string        `flag:"schema" doc:"the {FILE} with the JSON Schema of the arguments, or - for standard input"`
	Description string        `flag:"description" doc:"the {TEXT} that tells the model what it is for"`
	Dir         string        `flag:"cwd" doc:"the {DIR} in which it runs; relative paths in rules begin there"`
	Env         []string      `flag:"env" doc:"a variable of its environment: {K=V}; may be given again. No command prints V"`
	Headers     []string      `flag:"header" doc:"a header for an MCP server with a URL, with the value of an environment variable: {K=env:NAME}; may be given again. The value is never stored"`
	Timeout     time.Duration `flag:"timeout" doc:"the {TIME} after which it and everything that it started are ended; else 2m"`
	Repeatable  bool          `flag:"repeatable" doc:"running it twice does no harm: it is run again after a crash"`
	Prune       string        `flag:"prune" doc:"{WHAT} becomes of old results: prune, summarise or keep"`
	Stdin       bool          `flag:"stdin" doc:"the arguments go to the command's standard input as JSON"`
	Dashes      bool          `flag:"dashes" doc:"arguments may begin with a dash wherever they stand"`
	MCP         bool          `flag:"mcp" doc:"an MCP server: its command after --, or its URL"`
	allToolsFlag
}

// newTool makes the tool that the command line describes.
func (r *run) newTool(in *toolsAddIn) (*chatctx.Tool, error) {
	t := &chatctx.Tool{Name: in.Name, Description: in.Description, Command: in.Args, MCP: in.MCP, Dir: in.Dir,
		Timeout: in.Timeout, Repeatable: in.Repeatable, Prune: in.Prune, Stdin: in.Stdin, Dashes: in.Dashes}
	if t.Dir != "" {
		var err error
		if t.Dir, err = filepath.Abs(t.Dir); err != nil {
			return nil, err
		}
	}
	if t.MCP && len(t.Command) == 1 && (strings.HasPrefix(t.Command[0], "http://") || strings.HasPrefix(t.Command[0], "https://")) {
		t.URL, t.Command = t.Command[0], nil
	}
	if err := in.values(t); err != nil {
		return nil, err
	}
	for _, text := range append([]string{t.Name, t.Description, t.Dir}, in.Args...) {
		if err := validText(text); err != nil {
			return nil, err
		}
	}
	if (t.Stdin || t.Dashes) && (t.MCP || len(t.Command) == 0) {
		return nil, usagef("--stdin and --dashes are for a command")
	}
	if t.MCP && in.Schema != "" {
		return nil, usagef("an MCP server brings its tools' schemas: --schema is for a command")
	}
	if err := r.readSchema(in.Schema, t); err != nil {
		return nil, err
	}
	known(t)
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, approval.Rules{}.Tool(t)
}

// values reads the variables and headers of a tool. No error shows a value, since it may be a secret.
func (in *toolsAddIn) values(t *chatctx.Tool) error {
	for _, pair := range in.Env {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return usagef("--env takes K=V: one has no =, or no name before it")
		}
		if err := validText(pair); err != nil {
			return err
		}
		if strings.ContainsRune(pair, 0) {
			return usagef("--env %s: the value holds a zero byte", clean(k))
		}
		if t.Env == nil {
			t.Env = map[string]string{}
		}
		t.Env[k] = v
	}
	for _, pair := range in.Headers {
		k, v, ok := strings.Cut(pair, "=")
		name, from := strings.CutPrefix(v, "env:")
		if !ok || !from {
			return &usageError{"--header takes K=env:NAME", "put the value into an environment variable: a header's value is not stored, and is not for the command line, where others can read it"}
		}
		if t.Headers == nil {
			t.Headers = map[string]string{}
		}
		t.Headers[k] = name
	}
	return nil
}

func (r *run) readSchema(file string, t *chatctx.Tool) error {
	if file == "" {
		return nil
	}
	var raw []byte
	var err error
	if file == "-" {
		raw, err = readLimited(r.con.in, maxText)
	} else {
		raw, err = readFile(r.ctx, file)
	}
	if err != nil {
		return err
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		return usagef("%s is not a JSON object", file)
	}
	t.Schema = compact(raw)
	return nil
}

// discoverTime bounds the wait for an MCP server.
const discoverTime = 30 * time.Second

func doToolsAdd(r *run, in *toolsAddIn) error {
	t, err := r.newTool(in)
	if err != nil {
		return err
	}
	var leftOut []approval.LeftOut
	if t.MCP {
		ctx, cancel := context.WithTimeout(r.ctx, discoverTime)
		defer cancel()
		if t.Remotes, leftOut, err = approval.Discover(ctx, t); err != nil {
			return err
		}
	}
	did := "added"
	if before, err := r.kept(in.Store); err == nil && slices.ContainsFunc(before, func(k chatctx.KeptTool) bool { return k.Name == t.Name && k.Store == in.Store }) {
		did = "replaced"
	}
	r.close()
	var done *chatctx.Committed
	if in.Store {
		st, err := r.creator()
		if err != nil {
			return err
		}
		if done, err = st.PutTool(r.ctx, *t); err != nil {
			return err
		}
	} else if done, err = r.change(func(b *chatctx.Batch) { b.PutTool(*t) }); err != nil {
		return err
	}
	v := toolToJSON(&chatctx.KeptTool{Tool: *t, Store: in.Store})
	v.Operation = done.Operation
	for _, one := range leftOut {
		v.LeftOut = append(v.LeftOut, leftOutJSON{Tool: one.Name, Why: one.Why})
		r.note("left out %s: %s", clean(one.Name), clean(one.Why))
	}
	what := ""
	if t.MCP {
		what = fmt.Sprintf(" with %s", count(len(t.Remotes), "tool"))
	}
	return r.made(done, v, "%s the tool %s%s", did, clean(t.Name), what)
}

// kept returns the tools that a command is about: those of all contexts, or also the current one's.
func (r *run) kept(all bool) ([]chatctx.KeptTool, error) {
	owner, err := r.owner(all)
	if err != nil {
		return nil, err
	}
	return r.st.Tools(r.ctx, owner)
}

func doToolsLs(r *run, in *allToolsFlag) error {
	tools, err := r.kept(in.Store)
	if err != nil {
		return err
	}
	for i := range tools {
		t := &tools[i]
		if err := r.emit(toolToJSON(t), func() { r.toolLine(t) }); err != nil {
			return err
		}
	}
	if len(tools) == 0 {
		r.note("no tools; %s", r.again("tools add NAME --schema FILE -- COMMAND…"))
	}
	return nil
}

func (r *run) toolLine(t *chatctx.KeptTool) {
	words := make([]string, len(t.Command))
	for i, w := range t.Command {
		words[i] = quote(w)
	}
	how := strings.Join(words, " ")
	switch {
	case t.URL != "":
		how = t.URL
	case how == "":
		how = "run by programs that have it"
	}
	if t.MCP {
		how += fmt.Sprintf(" (MCP, %s)", count(len(t.Remotes), "tool"))
	}
	if t.Store {
		how += ", for all conversations"
	}
	r.printf("%s  %s\n", r.paint(bold, clean(t.Name)), cut(oneLine(how), max(r.con.width-30, 30)))
	if t.Description != "" {
		r.printf("    %s\n", cut(oneLine(t.Description), max(r.con.width-4, 20)))
	}
}

type toolsShowIn struct {
	Tool string `arg:"TOOL"`
}

func doToolsShow(r *run, in *toolsShowIn) error {
	tools, err := r.kept(false)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(tools, func(t chatctx.KeptTool) bool { return t.Name == in.Tool })
	if i < 0 {
		return chatctx.NotFound("tool", in.Tool)
	}
	t := &tools[i]
	return r.emit(toolToJSON(t), func() {
		r.toolLine(t)
		if t.Schema != nil {
			r.printf("%s\n", pretty(t.Schema))
		}
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			r.printf("    %s is set\n", clean(name))
		}
		for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
			r.printf("    %s from $%s\n", clean(name), clean(t.Headers[name]))
		}
		for _, one := range t.Remotes {
			r.printf("  %s__%s  %s\n", clean(t.Name), clean(one.Name), cut(oneLine(one.Description), 60))
		}
	})
}

type toolsRmIn struct {
	Tool string `arg:"TOOL"`
	allToolsFlag
}

func doToolsRm(r *run, in *toolsRmIn) error {
	var done *chatctx.Committed
	var err error
	if in.Store {
		var st *chatctx.Store
		if st, err = r.writer(); err == nil {
			done, err = st.RemoveTool(r.ctx, in.Tool)
		}
	} else {
		done, err = r.change(func(b *chatctx.Batch) { b.RemoveTool(in.Tool) })
	}
	if err != nil {
		return err
	}
	v := struct {
		Tool string `json:"tool"`
		where
	}{in.Tool, whereOf(done)}
	return r.made(done, v, "removed the tool %s", clean(in.Tool))
}
