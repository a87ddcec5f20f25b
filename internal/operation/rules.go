package operation

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Tools and their calls", Of: ruleOperations}) }

func ruleOperations() []*Operation {
	return []*Operation{
		Define("rules.list", "GET /rules", Read, "list the rules that apply to a conversation, or those of the store", listRules),
		Define("rules.add", "POST /rules", Admin, "add a rule to a conversation, one of its branches, or the store", addRule),
		Define("rules.remove", "POST /rules/{rule}/remove", Admin, "remove a rule", removeRule),
		Define("tools.list", "GET /tools", Read, "list the tools of a conversation and of the store", listTools),
		Define("tools.put", "POST /tools", Admin, "add a tool to a conversation or the store, or replace it", putTool),
		Define("tools.remove", "POST /tools/{tool}/remove", Admin, "remove a tool", removeTool),
	}
}

func listRules(r *Request, in *Scoped) (List[contract.Rule], error) {
	id, err := in.id(r)
	if err != nil {
		return List[contract.Rule]{}, err
	}
	rules, err := r.Store.Rules(r.Ctx, id)
	return ListEach(rules, err, contract.RuleOf)
}

type ruleParams struct {
	ScopedChange
	Branch   string              `json:"branch,omitempty" doc:"limit the rule to this branch of the conversation"`
	Effect   string              `json:"effect" doc:"allow, deny or ask"`
	Tool     string              `json:"tool" doc:"a pattern that the tool's name has to match"`
	When     []chatctx.Condition `json:"when,omitempty" doc:"conditions on the arguments, all of which must hold"`
	Unless   []chatctx.Condition `json:"unless,omitempty" doc:"conditions on the arguments, none of which may hold"`
	Examples []string            `json:"examples,omitempty" doc:"example calls with the expected decision, stored with the rule"`
	Default  bool                `json:"default,omitempty" doc:"apply the effect to all calls that no other rule decides"`
	Expires  *time.Time          `json:"expires,omitempty" doc:"when the rule ends; without it, never"`
	Mode     string              `json:"mode,omitempty" doc:"apply the rule only while the setting mode has this value"`
	Reason   string              `json:"reason,omitempty" doc:"why the rule exists, for people"`
}

func addRule(r *Request, in *ruleParams) (contract.Rule, error) {
	rule := chatctx.Rule{Effect: in.Effect, Tool: in.Tool, When: in.When, Unless: in.Unless, Examples: in.Examples, Default: in.Default, Expires: timeOf(in.Expires), Mode: in.Mode, Reason: in.Reason, By: r.By}
	var done *chatctx.Committed
	var err error
	switch {
	case in.Context != "":
		b := r.Store.Begin(in.Context, in.Branch)
		b.AddRule(rule, chatctx.RuleScope{Branch: in.Branch != ""})
		done, err = b.Commit(r.Ctx)
	case in.Branch != "":
		return contract.Rule{}, chatctx.Invalid("rules.add: branch needs context")
	default:
		done, err = r.Store.AddRule(r.Ctx, rule)
	}
	return ruled(done, err)
}

func ruled(done *chatctx.Committed, err error) (contract.Rule, error) {
	if err != nil {
		return contract.Rule{}, err
	}
	s := done.Last()
	v := contract.RuleOf(s.Rule)
	v.Operation, v.Broken = done.Operation, contract.BrokenOf(s.Broken)
	return v, nil
}

type ruleRef struct {
	ScopedChange
	Rule string `json:"rule" doc:"the rule's id"`
}

func removeRule(r *Request, in *ruleRef) (contract.Rule, error) {
	if in.Context == "" {
		return ruled(r.Store.RemoveRule(r.Ctx, in.Rule))
	}
	return ruled(r.onContext(in.Context, func(b *chatctx.Batch) { b.RemoveRule(in.Rule) }))
}

func listTools(r *Request, in *Scoped) (List[contract.Tool], error) {
	id, err := in.id(r)
	if err != nil {
		return List[contract.Tool]{}, err
	}
	tools, err := r.Store.Tools(r.Ctx, id)
	return ListEach(tools, err, func(t chatctx.KeptTool) contract.Tool { return contract.ToolOf(&t) }) // with only the names of its environment
}

type toolParams struct {
	ScopedChange
	Tool        string            `json:"tool" doc:"the tool's name"`
	Description string            `json:"description,omitempty" doc:"what the tool does, for the model"`
	Schema      json.RawMessage   `json:"schema,omitempty" doc:"the JSON Schema of the arguments"`
	Command     []string          `json:"command,omitempty" doc:"the command and its arguments: they run the tool, or start the MCP server"`
	Stdin       bool              `json:"stdin,omitempty" doc:"pass the call's arguments to the command's standard input"`
	Dashes      bool              `json:"dashes,omitempty" doc:"allow arguments that begin with a dash"`
	MCP         bool              `json:"mcp,omitempty" doc:"whether the tool is an MCP server"`
	URL         string            `json:"url,omitempty" doc:"the MCP server's address"`
	Dir         string            `json:"cwd,omitempty" doc:"the folder in which the command runs"`
	Env         map[string]string `json:"env,omitempty" doc:"additional environment variables of the command"`
	Timeout     string            `json:"timeout,omitempty" doc:"the time limit of a run, such as 90s or 5m"`
	Repeatable  bool              `json:"repeatable,omitempty" doc:"whether the tool may run twice for one call without harm"`
	Prune       string            `json:"prune,omitempty" doc:"what becomes of old results in requests: prune, summarise or keep"`
}

func putTool(r *Request, in *toolParams) (contract.Tool, error) {
	t := chatctx.Tool{Name: in.Tool, Description: in.Description, Schema: in.Schema, Command: in.Command, Stdin: in.Stdin, Dashes: in.Dashes, MCP: in.MCP, URL: in.URL, Dir: in.Dir,
		Env: in.Env, Repeatable: in.Repeatable, Prune: in.Prune}
	var err error
	if in.Timeout != "" {
		if t.Timeout, err = time.ParseDuration(in.Timeout); err != nil || t.Timeout < 0 {
			return contract.Tool{}, chatctx.Invalid("timeout is %q, and has to be a time as 90s or 5m", in.Timeout)
		}
	}
	var left []contract.LeftOut
	if t.MCP {
		remotes, out, err := approval.Discover(r.Ctx, &t)
		if err != nil {
			return contract.Tool{}, err
		}
		t.Remotes = remotes
		for _, l := range out {
			left = append(left, contract.LeftOut{Tool: l.Name, Why: l.Why})
		}
	}
	if err := (approval.Rules{}).Tool(&t); err != nil {
		return contract.Tool{}, err
	}
	var done *chatctx.Committed
	if in.Context == "" {
		done, err = r.Store.PutTool(r.Ctx, t)
	} else {
		done, err = r.onContext(in.Context, func(b *chatctx.Batch) { b.PutTool(t) })
	}
	if err != nil {
		return contract.Tool{}, err
	}
	v := contract.ToolOf(&chatctx.KeptTool{Tool: t, Store: in.Context == ""})
	v.Operation, v.LeftOut = done.Operation, left
	return v, nil
}

type toolRef struct {
	ScopedChange
	Tool string `json:"tool" doc:"the tool's name"`
}

func removeTool(r *Request, in *toolRef) (contract.Where, error) {
	if in.Context == "" {
		return where(r.Store.RemoveTool(r.Ctx, in.Tool))
	}
	return where(r.onContext(in.Context, func(b *chatctx.Batch) { b.RemoveTool(in.Tool) }))
}
