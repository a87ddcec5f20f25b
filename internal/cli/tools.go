package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, toolLooks) }

func toolLooks() map[string]look {
	return map[string]look{
		"tools.put": preparing(readTool, as(func(r *run, in *operation.NewTool, v contract.Tool) {
			for _, one := range v.LeftOut {
				r.note("left out %s: %s", clean(one.Tool), clean(one.Why))
			}
			what := ""
			if v.MCP {
				what = fmt.Sprintf(" with %s", count(len(v.Remotes), "tool"))
			}
			r.printf("%s the tool %s%s\n", map[bool]string{true: "replaced", false: "added"}[v.Replaced], clean(v.Name), what)
		})),
		"tools.list": as(func(r *run, _ *operation.Scoped, v contract.Tool) { r.toolLine(&v.KeptTool) }).
			orNone(func(r *run) { r.note("no tools; %s", r.again("tools add NAME --schema FILE -- COMMAND…")) }),
		"tools.get": as(func(r *run, _ *operation.ToolRef, v contract.Tool) { r.toolShown(&v) }),
		"tools.remove": as(func(r *run, _ *operation.OldTool, v operation.ToolGone) {
			r.printf("removed the tool %s\n", clean(v.Tool))
		}),
	}
}

// readTool reads what a command line says of a tool in its own way: files, and pairs in texts.
func readTool(r *run, in *operation.NewTool) (err error) {
	if in.Dir != "" {
		if in.Dir, err = filepath.Abs(in.Dir); err != nil {
			return err
		}
	}
	if in.MCP && len(in.Command) == 1 && (strings.HasPrefix(in.Command[0], "http://") || strings.HasPrefix(in.Command[0], "https://")) {
		in.URL, in.Command = in.Command[0], nil
	}
	if err := readPairs(in); err != nil {
		return err
	}
	if (in.Stdin || in.Dashes) && (in.MCP || len(in.Command) == 0) {
		return usagef("--stdin and --dashes are for a command")
	}
	if in.MCP && in.SchemaFile != "" {
		return usagef("an MCP server brings its tools' schemas: --schema is for a command")
	}
	if err := r.readSchema(in.SchemaFile, in); err != nil {
		return err
	}
	_, err = in.Made()
	return err
}

// readPairs reads the variables and headers of a tool. No error shows a value, since it may be a secret.
func readPairs(in *operation.NewTool) error {
	in.Env, in.Headers = map[string]string{}, map[string]string{}
	for _, pair := range in.EnvPairs {
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
		in.Env[k] = v
	}
	for _, pair := range in.HeaderPairs {
		k, v, ok := strings.Cut(pair, "=")
		name, from := strings.CutPrefix(v, "env:")
		if !ok || !from {
			return &usageError{"--header takes K=env:NAME", "put the value into an environment variable: a header's value is not stored, and is not for the command line, where others can read it"}
		}
		in.Headers[k] = name
	}
	return nil
}

func (r *run) readSchema(file string, in *operation.NewTool) error {
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
	in.Schema = compact(raw)
	return nil
}

func (r *run) toolLine(t *record.KeptTool) {
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

func (r *run) toolShown(t *contract.Tool) {
	r.toolLine(&t.KeptTool)
	if t.Schema != nil {
		r.printf("%s\n", pretty(t.Schema))
	}
	for _, name := range t.Env {
		r.printf("    %s is set\n", clean(name))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		r.printf("    %s from $%s\n", clean(name), clean(t.Headers[name]))
	}
	for _, one := range t.Remotes {
		r.printf("  %s__%s  %s\n", clean(t.Name), clean(one.Name), cut(oneLine(one.Description), 60))
	}
}
