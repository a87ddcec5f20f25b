package approval

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

func TestConditions(t *testing.T) {
	args := `{"path":"src/a/b.go","n":5,"f":2.5,"s":"5","on":true,"none":null,"deep":{"x":["p","q"],"a.b":"dots"},"a.b":"top","text":"one\ntwo"}`
	for _, c := range []struct {
		argument, op, value string
		want                answer
	}{
		{"path", Equals, "src/a/b.go", yes}, {"path", Equals, "src", no}, {"n", Equals, "5", yes}, {"s", Equals, "5", yes}, {"on", Equals, "true", yes},
		{"none", Equals, "null", yes}, {"missing", Equals, "", no}, {"deep.x.1", Equals, "q", yes}, {"deep.x.2", Equals, "q", no}, {"deep.x.-1", Equals, "q", no},
		{"deep.a.b", Equals, "dots", yes}, {"a.b", Equals, "top", yes}, {"deep.x", Equals, `["p","q"]`, yes},
		{"path", Prefix, "src/", yes}, {"path", Prefix, "lib/", no}, {"n", Prefix, "5", unsure},
		{"path", Glob, "src/**/*.go", yes}, {"path", Glob, "src/*.go", no}, {"path", Glob, "**/b.*", yes},
		{"path", Regexp, `src/.*\.go`, yes}, {"path", Regexp, `src/`, no}, {"path", Regexp, `.*b`, no}, {"text", Regexp, `one`, no},
		{"n", Range, "1..5", yes}, {"n", Range, "6..", no}, {"n", Range, "..4", no}, {"f", Range, "2.5..2.5", yes}, {"s", Range, "1..9", unsure}, {"on", Range, "0..", unsure},
	} {
		v, err := decodeArguments(json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		if got, why := holds(&chatctx.Condition{Argument: c.argument, Op: c.op, Value: c.value}, v, "/"); got != c.want {
			t.Errorf("%s %s %s is %d (%s), want %d", c.argument, c.op, c.value, got, why, c.want)
		}
	}
}

func TestRulesThatCannotBeMeant(t *testing.T) {
	for _, r := range []chatctx.Rule{
		{Effect: "maybe", Tool: "*"}, {Effect: chatctx.Allow, Tool: ""}, {Effect: chatctx.Allow, Tool: "["},
		{Effect: chatctx.Allow, Tool: "*", After: 1}, {Effect: chatctx.Ask, Tool: "*", After: -1},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "a", Op: "is", Value: "b"}}},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "", Op: Equals, Value: "b"}}},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "a", Op: Regexp, Value: "("}}},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "a", Op: Glob, Value: "["}}},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "a", Op: Range, Value: ".."}}},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "a", Op: Range, Value: "x..2"}}},
		{Effect: chatctx.Allow, Tool: "*", When: []chatctx.Condition{{Argument: "a", Op: Under, Value: ""}}},
	} {
		if err := CheckRule(&r); !errors.Is(err, chatctx.ErrInvalid) {
			t.Errorf("%+v gives %v", r, err)
		}
	}
}

// TestUnderFollowsLinks: a path that leads out of the folder by a link is not in it, one that leads in is.
func TestUnderFollowsLinks(t *testing.T) {
	top := t.TempDir()
	mk := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	for _, dir := range []string{mk("in", "sub"), mk("out", "deep")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		mk("in", "away"): mk("out"), mk("in", "rel"): "../out/deep", mk("out", "back"): mk("in"), mk("in", "nowhere"): mk("out", "notyet"), mk("in", "loop"): mk("in", "loop"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
		if at, err := os.Readlink(link); err != nil {
			t.Skip("a link that was made is none, as under Wine: ", at, err)
		}
	}
	for path, want := range map[string]answer{
		mk("in"): yes, mk("in", "x"): yes, "x": yes, "sub/../x": yes, "./sub//x": yes, mk("in") + "/new/deep/file": yes,
		mk("out"): no, "../out/x": no, "..": no, mk("inside"): no, mk("in") + "/../out": no,
		"away": no, "away/x": no, "rel/x": no, "nowhere": no, "nowhere/x": no, "new/../../out": no, "new/../away/x": no,
		mk("out", "back", "x"): yes,
		"rel/../x":             unsure, "away/../x": unsure, // one program reads it as x, another as what stands beside the folder that the link leads to
		"loop": unsure, "": unsure, "a\x00b": unsure,
	} {
		if got, why := under(path, mk("in"), mk("in")); got != want {
			t.Errorf("%q is %d, want %d: %s", path, got, want, why)
		}
	}
}

func TestJudge(t *testing.T) {
	here, parent, br, msg := pool.NewID(), pool.NewID(), pool.NewID(), pool.NewID()
	q := Question{Context: here, Branch: br, Message: msg, Index: 1, Tool: "fs_write", Arguments: json.RawMessage(`{"path":"/a/b","n":"x"}`), Mode: "plan"}
	in := func(effect, tool string, change func(*chatctx.Rule)) *chatctx.Rule {
		r := &chatctx.Rule{ID: pool.NewID(), Effect: effect, Tool: tool, Context: here}
		if change != nil {
			change(r)
		}
		return r
	}
	store := func(r *chatctx.Rule) { r.Context = chatctx.ID{} }
	above := func(r *chatctx.Rule) { r.Context = parent }
	onBranch := func(r *chatctx.Rule) { r.Branch = br }
	when := func(argument, op, value string) func(*chatctx.Rule) {
		return func(r *chatctx.Rule) {
			r.When = append(r.When, chatctx.Condition{Argument: argument, Op: op, Value: value})
		}
	}
	for name, c := range map[string]struct {
		rules []*chatctx.Rule
		want  int // the rule that decides; -1: none
	}{
		"no rule asks":                 {nil, -1},
		"another tool":                 {[]*chatctx.Rule{in("allow", "fs_read", nil)}, -1},
		"deny wins a tie":              {[]*chatctx.Rule{in("allow", "fs_*", nil), in("deny", "fs_*", nil), in("ask", "fs_*", nil)}, 1},
		"ask before allow":             {[]*chatctx.Rule{in("allow", "fs_*", nil), in("ask", "fs_*", nil)}, 1},
		"the exact name":               {[]*chatctx.Rule{in("deny", "fs_*", nil), in("allow", "fs_write", nil)}, 1},
		"the longer pattern":           {[]*chatctx.Rule{in("allow", "fs_w*", nil), in("deny", "*", nil)}, 0},
		"more conditions":              {[]*chatctx.Rule{in("deny", "fs_*", nil), in("allow", "fs_*", when("path", Prefix, "/a"))}, 1},
		"a condition that fails":       {[]*chatctx.Rule{in("allow", "fs_*", when("path", Prefix, "/z"))}, -1},
		"priority before all":          {[]*chatctx.Rule{in("deny", "fs_write", onBranch), in("allow", "*", func(r *chatctx.Rule) { store(r); r.Priority = 1 })}, 1},
		"the branch before the rest":   {[]*chatctx.Rule{in("deny", "fs_write", nil), in("allow", "*", onBranch)}, 1},
		"a call before all":            {[]*chatctx.Rule{in("deny", "*", onBranch), in("allow", "*", func(r *chatctx.Rule) { r.Message, r.Index = msg, 1 })}, 1},
		"another call":                 {[]*chatctx.Rule{in("allow", "*", func(r *chatctx.Rule) { r.Message, r.Index = msg, 2 })}, -1},
		"another branch":               {[]*chatctx.Rule{in("allow", "*", func(r *chatctx.Rule) { r.Branch = pool.NewID() })}, -1},
		"the parent before the store":  {[]*chatctx.Rule{in("deny", "*", store), in("allow", "*", above)}, 1},
		"the context before parents":   {[]*chatctx.Rule{in("deny", "*", above), in("allow", "*", nil)}, 1},
		"a mode that is not on":        {[]*chatctx.Rule{in("allow", "*", func(r *chatctx.Rule) { r.Mode = "act" })}, -1},
		"the mode":                     {[]*chatctx.Rule{in("allow", "*", func(r *chatctx.Rule) { r.Mode = "plan" })}, 0},
		"what cannot be told: allow":   {[]*chatctx.Rule{in("allow", "*", when("n", Range, "1..2"))}, -1},
		"what cannot be told: deny":    {[]*chatctx.Rule{in("deny", "*", when("n", Range, "1..2"))}, 0},
		"all conditions, not only one": {[]*chatctx.Rule{in("allow", "*", func(r *chatctx.Rule) { when("path", Prefix, "/a")(r); when("n", Equals, "y")(r) })}, -1},
	} {
		j := Judge(c.rules, q)
		if c.want < 0 {
			if j.Rule != nil || j.Effect != chatctx.Ask {
				t.Errorf("%s: %v decides", name, j.Rule)
			}
			continue
		}
		if j.Rule != c.rules[c.want] || j.Effect != c.rules[c.want].Effect {
			t.Errorf("%s: %v decides", name, j.Rule)
		}
	}
	two := []*chatctx.Rule{in("deny", "fs_*", nil), in("allow", "fs_write", nil)}
	if j := Judge(two, q); j.Without == nil || j.Without.Rule != two[0] || j.Without.Without.Rule != nil || len(j.Notes) != 2 {
		t.Errorf("what would be without the rule: %+v", j)
	}
	if j := Judge([]*chatctx.Rule{in("allow", "*", above)}, q); !j.Inherited {
		t.Error("a parent's rule is not said to be inherited")
	}
	q.Arguments = json.RawMessage(`{"path":`)
	if j := Judge([]*chatctx.Rule{in("allow", "*", when("path", Prefix, "/a"))}, q); j.Rule != nil {
		t.Error("arguments that are no JSON are allowed by a condition on them")
	}
}
