package chatctx_test

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// prompted is a door of a prompt. of returns what the branch has of it.
func prompted(name string, of func(*record.BranchInfo) string, fn func(*place, string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		b, err := p.c.Branch(p.t.Context(), "")
		if err != nil {
			return "", err
		}
		return of(b), nil
	}}
}

func systemOf(b *record.BranchInfo) string { return b.System }
func promptOf(b *record.BranchInfo) string { return b.Prompt }

// promptedBy is a door of a prompt that is a command.
func promptedBy(name string, set, get []string) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		var out struct{ Text string }
		err := p.commands(&out, []string{"new", "before"}, append(set, v), get)
		return out.Text, err
	}}
}

// notEmpty: a command refuses an empty prompt; --rm removes it.
var notEmpty = map[string]string{"none": "!" + usage}

var prompts = &thing{
	name: "prompt", member: "system prompt",
	takes: func(method, leaf string, typ reflect.Type) bool {
		return isText(typ) && (leaf == "System" || leaf == "Prompt" || leaf == "text" && (method == "Batch.SetSystem" || method == "Batch.SetPrompt"))
	},
	checks: []check{{"some", "Ünder \"quotes\" \U0001f680", ""}, {"two lines", "a\nb\r\n", ""}, {"escape", "a\x1b[31mb", ""}, {"NUL", "a\x00b", ""}, {"space", " a ", ""},
		{"long", strings.Repeat("x", 70_000), ""}, {"none", "", ""}, {"not UTF-8", cutText, usage}},
	doors: []door{
		prompted("Batch.SetSystem", systemOf, func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.SetSystem(v) }) }),
		prompted("Batch.SetPrompt", promptOf, func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.SetPrompt(v) }) }),
		prompted("Batch.AppendWith", systemOf, func(p *place, v string) error {
			return p.batch(func(b *chatctx.Batch) { b.AppendWith(chatctx.AppendOptions{System: v}, user("hello")) })
		}),
		prompted("ChatContext.BeginReply", systemOf, func(p *place, v string) error {
			_, err := p.c.BeginReply(p.t.Context(), "", chatctx.AppendOptions{System: v}, user("hello"))
			return err
		}),
		prompted("Store.New", systemOf, func(p *place, v string) error {
			return p.made(p.store.New(p.t.Context(), record.NewContext{System: v}))
		}),
		prompted("Store.New of a prompt", promptOf, func(p *place, v string) error {
			return p.made(p.store.New(p.t.Context(), record.NewContext{Prompt: v}))
		}),
		prompted("ChatContext.StartTask", systemOf, func(p *place, v string) error {
			return p.made(p.c.StartTask(p.t.Context(), "", record.NewTask{NewContext: record.NewContext{System: v}, Task: record.Task{Goal: "g"}}))
		}),
		prompted("Store.Import", systemOf, func(p *place, v string) error { return p.incoming(&record.Incoming{System: v}) }),
		prompted("Store.Import of a prompt", promptOf, func(p *place, v string) error { return p.incoming(&record.Incoming{Prompt: v}) }),
		prompted("Store.Import of a branch", systemOf, func(p *place, v string) error {
			return p.incoming(&record.Incoming{Nodes: []record.Node{{ID: "1", Message: user("hello")}}, Branches: []record.IncomingBranch{{Leaf: 1, System: v}}})
		}),
		prompted("NativeImport.Branch", systemOf, func(p *place, v string) error {
			return p.nativeWith(record.Native{}, record.NativeBranch{System: v}, nil)
		}),
		prompted("NativeImport.Branch of a prompt", promptOf, func(p *place, v string) error {
			return p.nativeWith(record.Native{}, record.NativeBranch{Prompt: v}, nil)
		}),
		prompted("prompts.set", systemOf, func(p *place, v string) error {
			return p.post("branches/main/prompts", `{"system":`+quoted(v)+`}`, nil)
		}),
		prompted("prompts.set of a prompt", promptOf, func(p *place, v string) error {
			return p.post("branches/main/prompts", `{"prompt":`+quoted(v)+`}`, nil)
		}),
		prompted("contexts.new", systemOf, func(p *place, v string) error { return p.postMade("/contexts", `{"system":`+quoted(v)+`}`) }),
		prompted("contexts.new of a prompt", promptOf, func(p *place, v string) error { return p.postMade("/contexts", `{"prompt":`+quoted(v)+`}`) }),
		prompted("tasks.start", systemOf, func(p *place, v string) error {
			return p.postMade("branches/main/tasks", `{"goal":"g","system":`+quoted(v)+`}`)
		}),
		prompted("a native file", systemOf, func(p *place, v string) error {
			return p.file(native(`,"title":"t"`, `,"system":`+quoted(v), nativeMessage("hello")))
		}).mending(),
		promptedBy("chatctx system", []string{"system", "--"}, []string{"system"}).but(notEmpty),
		promptedBy("chatctx prompt", []string{"prompt", "--"}, []string{"prompt"}).but(notEmpty),
		promptedBy("chatctx new --system", []string{"new", "t", "--system"}, []string{"system"}).but(notEmpty),
	},
	beside: map[string]string{"ImportRun.Import": "it is Store.Import", "ImportRun.Ready": "it is the first half of Import"},
}

// ruled is a door of a rule: the value is one, as JSON. It is kept if the rule that was stored has the same members.
func ruled(name string, of func(*place) chatctx.ID, fn func(*place, record.Rule) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		var rule record.Rule
		if err := json.Unmarshal([]byte(v), &rule); err != nil {
			p.t.Fatal(err)
		}
		each(&rule, func(s *string) { *s = strings.ReplaceAll(*s, "CUT", cutText) }) // JSON cannot say it
		if err := fn(p, rule); err != nil {
			return "", err
		}
		all, err := p.store.Rules(p.t.Context(), of(p))
		if err != nil || len(all) != 1 {
			return "", err
		}
		again := record.Rule{Effect: all[0].Effect, Tool: all[0].Tool, When: all[0].When, Unless: all[0].Unless, Examples: all[0].Examples, Default: all[0].Default,
			Mode: all[0].Mode, Reason: all[0].Reason}
		if own := all[0]; own.Context != of(p) || own.Branch != (chatctx.ID{}) || own.Message != (chatctx.ID{}) || own.ID == (chatctx.ID{}) || own.By == "" || own.By == "evil" {
			p.t.Errorf("%s: the rule was stored as %+v", v, own)
		}
		_, err = p.store.RemoveRule(p.t.Context(), all[0].ID.String())
		if of(p) != (chatctx.ID{}) {
			err = p.batch(func(b *chatctx.Batch) { b.RemoveRule(all[0].ID.String()) })
		}
		if reflect.DeepEqual(again, plain(rule)) {
			return v, err
		}
		raw, _ := json.Marshal(again)
		return string(raw), err
	}}
}

// plain is a rule without its place and maker, which its door says.
func plain(r record.Rule) record.Rule {
	r.ID, r.Context, r.Branch, r.Message, r.Index, r.By, r.Created = chatctx.ID{}, chatctx.ID{}, chatctx.ID{}, chatctx.ID{}, 0, "", 0
	return r
}

// each does something with all texts of a rule.
func each(r *record.Rule, do func(*string)) {
	for _, s := range []*string{&r.Tool, &r.Mode, &r.Reason} {
		do(s)
	}
	for i := range r.Examples {
		do(&r.Examples[i])
	}
	for _, list := range [][]record.Condition{r.When, r.Unless} {
		for i := range list {
			do(&list[i].Argument)
			do(&list[i].Value)
		}
	}
}

func (p *place) itself() chatctx.ID { return p.c.ID }
func (p *place) noID() chatctx.ID   { return chatctx.ID{} }

// ruleBody is a rule as a request has it.
func ruleBody(r record.Rule, context string) string {
	body := map[string]any{"effect": r.Effect, "tool": r.Tool, "when": r.When, "unless": r.Unless, "examples": r.Examples, "default": r.Default, "mode": r.Mode, "reason": r.Reason}
	if context != "" {
		body["context"] = context
	}
	raw, _ := json.Marshal(body)
	return strings.ReplaceAll(string(raw), `\ufffd`, cutText[len(cutText)-1:])
}

// ruleFlags is a rule as arguments of the command.
func ruleFlags(r record.Rule) []string {
	args := []string{"rules", "add"}
	for _, c := range r.When {
		args = append(args, "--when", c.String())
	}
	for _, c := range r.Unless {
		args = append(args, "--unless", c.String())
	}
	for _, e := range r.Examples {
		args = append(args, "--example", e)
	}
	if r.Mode != "" {
		args = append(args, "--mode", r.Mode)
	}
	if r.Reason != "" {
		args = append(args, "--reason", r.Reason)
	}
	return append(args, "--", r.Effect, r.Tool)
}

var rules = &thing{
	name: "rule", member: "effect always",
	takes: func(_, _ string, typ reflect.Type) bool { return typ == reflect.TypeFor[record.Rule]() },
	checks: []check{
		{"some", `{"effect":"allow","tool":"read_*","when":[{"argument":"path","op":"prefix","value":"/Ünder"}],"unless":[{"op":"tool","value":"x"}],"examples":["sh {} => ask"],"mode":"plan","reason":"r"}`, ""},
		{"deny", `{"effect":"deny","tool":"*"}`, ""}, {"no effect", `{"tool":"x"}`, usage}, {"another effect", `{"effect":"maybe","tool":"x"}`, usage}, {"no tool", `{"effect":"ask"}`, usage},
		{"another condition", `{"effect":"ask","tool":"x","when":[{"argument":"a","op":"like","value":"b"}]}`, usage}, {"a range without numbers", `{"effect":"ask","tool":"x","when":[{"argument":"a","op":"range","value":"b"}]}`, usage},
		{"a broken pattern", `{"effect":"ask","tool":"x","when":[{"argument":"a","op":"regexp","value":"("}]}`, usage}, {"a broken example", `{"effect":"ask","tool":"x","examples":["x"]}`, usage},
		{"tool not UTF-8", `{"effect":"ask","tool":"CUT"}`, usage}, {"value not UTF-8", `{"effect":"ask","tool":"x","when":[{"argument":"a","op":"equals","value":"CUT"}]}`, usage},
		{"argument not UTF-8", `{"effect":"ask","tool":"x","when":[{"argument":"CUT","op":"equals","value":"b"}]}`, usage}, {"mode not UTF-8", `{"effect":"ask","tool":"x","mode":"CUT"}`, usage},
		{"reason not UTF-8", `{"effect":"ask","tool":"x","reason":"CUT"}`, usage}, {"example not UTF-8", `{"effect":"ask","tool":"x","examples":["x {\"a\":\"CUT\"} => ask"]}`, usage},
		{"an example that does not hold", `{"effect":"ask","tool":"x","examples":["x {} => deny"]}`, "conflict"},
		{"another's place", `{"effect":"ask","tool":"x","branch_id":"01890000-0000-7000-8000-000000000001","context":"01890000-0000-7000-8000-000000000002","by":"evil"}`, ""},
	},
	doors: []door{
		ruled("Batch.AddRule", (*place).itself, func(p *place, r record.Rule) error {
			r.Message, r.Index = pool.NewID(), 1
			return p.batch(func(b *chatctx.Batch) { b.AddRule(r, record.RuleScope{}) })
		}),
		ruled("Store.AddRule", (*place).noID, func(p *place, r record.Rule) error {
			r.Message, r.Index = pool.NewID(), 1
			_, err := p.store.AddRule(p.t.Context(), r)
			return err
		}),
		ruled("rules.add", (*place).noID, func(p *place, r record.Rule) error { return p.post("/rules", ruleBody(r, ""), nil) }),
		ruled("rules.add to a conversation", (*place).itself, func(p *place, r record.Rule) error {
			return p.post("/rules", ruleBody(r, p.c.ID.String()), nil)
		}),
		{name: "chatctx rules add", put: func(p *place, v string) (string, error) {
			var rule, stored record.Rule
			if err := json.Unmarshal([]byte(v), &rule); err != nil {
				return "", err
			}
			each(&rule, func(s *string) { *s = strings.ReplaceAll(*s, "CUT", cutText) })
			if err := p.commands(&stored, []string{"new", "before"}, ruleFlags(rule), []string{"rules", "ls"}); err != nil {
				return "", err
			}
			stored = plain(stored)
			if len(stored.When) == 0 {
				stored.When = nil
			}
			if reflect.DeepEqual(stored, plain(rule)) {
				return v, nil
			}
			raw, err := json.Marshal(stored)
			return string(raw), err
		}},
	},
	beside: map[string]string{"calls.approve": "it takes one of the rules that the call offers", "rules.default": "it takes one of two words, and its rule passes rules.add"},
}
