package approval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// cond reads a condition as the command line does.
func cond(t testing.TB, s string) record.Condition {
	t.Helper()
	argument, op, value, ok := SplitCondition(s)
	if !ok {
		t.Fatalf("the condition %q", s)
	}
	return record.Condition{Argument: argument, Op: op, Value: value}
}

// TestFindings: one rule, one call, what has to come of it. In testdata @raw N is a number as it is spelled, @string S arguments that are the string S.
func TestFindings(t *testing.T) {
	f, err := os.Open("testdata/rules.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		var c struct {
			Rule struct {
				Action, Tool string
				When, Unless []string
			}
			Call struct {
				Tool      string `json:"tool_name"`
				Arguments json.RawMessage
			}
			Schema    json.RawMessage
			Must, Why string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		r := &record.Rule{Effect: c.Rule.Action, Tool: c.Rule.Tool}
		for _, s := range c.Rule.When {
			r.When = append(r.When, cond(t, s))
		}
		for _, s := range c.Rule.Unless {
			r.Unless = append(r.Unless, cond(t, s))
		}
		if err := (Rules{}).Rule(r); err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		args := string(c.Call.Arguments)
		if at := strings.Index(args, `"@raw `); at >= 0 {
			number, rest, _ := strings.Cut(args[at+6:], `"`)
			args = args[:at] + number + rest
		}
		if s, ok := strings.CutPrefix(args, `"@string `); ok {
			args = `"` + s
		}
		q := &record.Question{Tool: c.Call.Tool, Arguments: json.RawMessage(args), Schema: c.Schema}
		if got := (Rules{}).Judge([]*record.Rule{r}, q); got.Effect != c.Must {
			t.Errorf("%s, want %s (%s): %v %s", got.Effect, c.Must, c.Why, r, args)
		}
	}
	if n < 16 || lines.Err() != nil {
		t.Errorf("read %d lines, %v", n, lines.Err())
	}
}

// TestConditions: what a condition surely says, and what it possibly says.
func TestConditions(t *testing.T) {
	args := `{"path":"src/a/b.go","n":5,"f":2.5,"s":"5","on":true,"none":null,"deep":{"x":["p","Q"],"a.b":"dots"},"a.b":"top","text":"one\ntwo","tool":"T","big":1e401,"up":"a/../b",
		"paths":["/srv/a","/etc/x"],"nest":[["a",["b"]]],"empty":[],"obj":{"k":"V"},"nfd":"e\u0301","tiny":0.10,"half":"a\ud800","list":[{"p":"q"}]}`
	for _, c := range []struct {
		condition string
		surely    bool
		possibly  answer
	}{
		{"path equals src/a/b.go", true, yes}, {"path equals SRC/a/b.go", false, yes}, {"Path equals src/a/b.go", false, yes}, {"path equals src", false, no},
		{"n equals 5", true, yes}, {"n equals 5.0", true, yes}, {"n equals 50e-1", true, yes}, {"n equals 6", false, no}, {`n equals "5"`, false, yes}, {"s equals 5", false, yes}, {`s equals "5"`, true, yes}, {"s equals 5.0", false, yes},
		{"big equals 1e401", false, unsure}, {"big equals 1", false, unsure}, {"big range 1..", false, unsure},
		{"on equals true", true, yes}, {"none equals null", true, yes}, {"missing equals x", false, no}, {"missing regexp .*", false, no},
		{"deep.x[0] equals p", true, yes}, {"deep.x[1] equals q", false, yes}, {"deep.x[2] equals q", false, no}, {"deep.x equals p", false, yes}, {`deep."a.b" equals dots`, true, yes}, {`"a.b" equals top`, true, yes}, {"a.b equals top", false, no},
		{`deep.x equals ["p","Q"]`, true, yes}, {`deep.x equals ["P","q"]`, false, yes}, {`deep equals {"a.b":"dots","x":["p","Q"]}`, true, yes}, {`deep equals {"a.b":"dots"}`, false, no},
		{`"tool" equals T`, true, yes}, {"tool R*", true, yes}, {"tool r*", false, yes}, {"tool x*", false, no},
		{"path prefix src/", true, yes}, {"path prefix SRC/", false, yes}, {"path prefix lib/", false, no}, {"n prefix 5", true, yes}, {"none prefix x", false, unsure}, {"up prefix a/", false, yes},
		{"path glob src/**/*.go", true, yes}, {"path glob src/*.go", false, yes}, {"path glob **/b.*", true, yes}, {"path glob SRC/**", false, yes}, {"up glob **", false, yes}, {"path glob {src,lib}/**", true, yes}, {"path glob [!a]rc/**", true, yes},
		{"text glob one*", true, yes}, {"text glob *o", true, yes}, {"text glob one", false, no},
		{`path regexp src/.*\.go`, true, yes}, {"path regexp src/", false, no}, {"path regexp .*b", false, no}, {"text regexp one.two", true, yes}, {"text regexp ONE.*", false, yes},
		{"n range 1..5", true, yes}, {"n range 6..", false, no}, {"n range ..4", false, no}, {"f range 2.5..2.5", true, yes}, {"s range 1..9", false, unsure}, {"on range 0..", false, unsure}, {"tiny range 0.1..0.1", true, yes},
		{"paths[*] prefix /srv", false, yes}, {"paths[*] prefix /", true, yes}, {"paths prefix /srv", false, yes}, {"empty[*] prefix x", false, no}, {"path[*] prefix src", false, yes},
		{"nest equals b", false, yes}, {"nest[*] equals b", false, yes}, {"obj equals v", false, yes}, {"list.p equals q", false, yes}, {"list[*].p equals q", true, yes}, {"nest[0][0] equals a", true, yes},
		{"nfd equals \u00e9", true, yes}, {"nfd regexp .", true, yes}, {"half prefix a", false, yes}, {"half equals a\ufffd", false, no}, {"half regexp b", false, unsure},
		{"path under /", false, unsure}, {"n under /", false, unsure}, {"paths[*] under /srv", false, yes},
		{`{} equals {"x":1}`, false, no},
	} {
		source := cond(t, c.condition)
		parsed, err := parseCondition(&source)
		if err != nil {
			t.Errorf("%s: %v", c.condition, err)
			continue
		}
		s := subjectOf(&record.Question{Tool: "Read/it", Arguments: json.RawMessage(args)})
		if s.err != nil {
			t.Fatal(s.err)
		}
		got, why := parsed.mayHold(s)
		if sure := parsed.holds(s); sure != c.surely || got != c.possibly {
			t.Errorf("%s: surely %t, possibly %d (%s); want %t and %d", c.condition, sure, got, why, c.surely, c.possibly)
		}
	}
}

func TestRulesThatCannotBeMeant(t *testing.T) {
	rules := []record.Rule{
		{Effect: "maybe", Tool: "*"}, {Effect: record.Allow, Tool: ""}, {Effect: record.Allow, Tool: "["}, {Effect: record.Allow, Tool: "{a"}, {Effect: record.Allow, Tool: `a\`},
		{Effect: record.Allow, Tool: "*", After: 1}, {Effect: record.Ask, Tool: "*", After: -1}, {Effect: record.Allow, Default: true}, {Effect: record.Ask, Default: true, Tool: "x"},
		{Effect: record.Ask, Tool: "*", Examples: []string{"x"}}, {Effect: record.Ask, Tool: "*", Examples: []string{"x {} => maybe"}}, {Effect: record.Ask, Tool: "*", Examples: []string{"x {a => ask"}},
	}
	for _, s := range []string{"a is b", "a regexp (", "a regexp x)|(y", "a glob [", "a range ..", "a range x..2", "a range 1e401..", "a under ", "a under ~/x", "a under $HOME", "a under file:///x", "tool equals x",
		"a..b equals x", "a[x] equals x", "a[-1] equals x", "a[01] equals x", `"a equals x`, "a]b equals x", `a each "x`, "a each  ", `a each ""`, "a each [", "[0] equals x", ".a equals x"} {
		argument, op, value, _ := SplitCondition(s)
		rules = append(rules, record.Rule{Effect: record.Allow, Tool: "*", When: []record.Condition{{Argument: argument, Op: op, Value: value}}},
			record.Rule{Effect: record.Deny, Tool: "*", Unless: []record.Condition{{Argument: argument, Op: op, Value: value}}})
	}
	for _, r := range rules {
		if err := (Rules{}).Rule(&r); !errors.Is(err, chatctx.ErrInvalid) {
			t.Errorf("%+v gives %v", r, err)
		}
	}
}

// TestUnderFollowsLinks: a path that leads out of the folder by a link is not in it, one that leads in is.
func TestUnderFollowsLinks(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mk := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	for _, dir := range []string{mk("in", "sub"), mk("out", "deep")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		mk("in", "away"): mk("out"), mk("in", "rel"): "../out/deep", mk("out", "back"): mk("in"), mk("in", "nowhere"): mk("out", "notyet"), mk("in", "loop"): mk("in", "loop"), mk("swapped"): mk("out"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
		if at, err := os.Readlink(link); err != nil {
			t.Skip("a link that was made is none, as under Wine: ", at, err)
		}
	}
	for path, want := range map[string]answer{
		mk("in"): yes, mk("in", "x"): yes, "x": yes, "sub/../x": yes, "./sub//x": yes, mk("in") + "/new/deep/file": yes, "%2e%2e/x": unsure, "a%20b": yes, "100%": yes, "~x/../y~": unsure, "a~": yes,
		mk("out"): no, "../out/x": no, "..": no, mk("inside"): no, mk("in") + "/../out": no,
		"away": no, "away/x": no, "rel/x": no, "nowhere": no, "nowhere/x": no, "new/../../out": no, "new/../away/x": no,
		mk("out", "back", "x"): yes,
		"rel/../x":             unsure, "away/../x": unsure, // one program reads it as x, another as what stands beside the folder that the link leads to
		"loop": unsure, "": unsure, "a\x00b": unsure, "~/x": unsure, "~": unsure, "$HOME/x": unsure, "${X}": unsure, "a/$X/b": unsure, "file:///etc/passwd": unsure, "file:x": unsure, "C:\\x": unsure, "C:/x": unsure,
		"..\\x": unsure, " x": unsure, "x ": unsure, "a\nb": unsure, "a$": yes,
	} {
		if got, why := under(path, mk("in"), mk("in"), false); got != want {
			t.Errorf("%q is %d, want %d: %s", path, got, want, why)
		}
	}
	for _, c := range []struct {
		path, folder, dir string
		folded            bool
		want              answer
	}{
		{"x", mk("in"), "", false, unsure},                     // relative to nobody knows what
		{mk("IN", "x"), mk("in"), "", true, yes},               // but for case
		{mk("IN", "x"), mk("in"), "", false, no},               //
		{mk("out", "x"), mk("swapped"), "", false, unsure},     // the rule's folder became a link
		{mk("swapped", "x"), mk("swapped"), "", false, unsure}, //
		{mk("in", "x"), "in", "", false, unsure},
	} {
		if got, why := under(c.path, c.folder, c.dir, c.folded); got != c.want {
			t.Errorf("%q under %q is %d, want %d: %s", c.path, c.folder, got, c.want, why)
		}
	}
	if runtime.GOOS == "linux" { // each program has links of its own there: who looks sees another folder than the tool
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/proc/self/cwd/x", "/proc/thread-self/cwd/x", "/proc/self/fd/../cwd/x", "/dev/fd/../cwd/x", "/dev/stdin", fmt.Sprintf("/proc/%d/cwd/x", os.Getpid())} {
			for _, folder := range []string{here, "/etc", "/"} {
				if got, why := under(path, folder, here, false); got != unsure {
					t.Errorf("%q under %q is %d, want that it cannot be told: %s", path, folder, got, why)
				}
			}
		}
	}
	r := &record.Rule{Effect: record.Allow, Tool: "*", When: []record.Condition{{Argument: "p", Op: Under, Value: "away"}}, Unless: []record.Condition{{Argument: "p", Op: Under, Value: mk("in", "rel")}}}
	if err := (Rules{Dir: mk("in")}).Rule(r); err != nil || r.When[0].Value != mk("out") || r.Unless[0].Value != mk("out", "deep") {
		t.Errorf("the rule is kept as %v, %v", r, err)
	}
}

// place is where the calls of TestJudge are.
type place struct{ here, parent, br, msg chatctx.ID }

func TestJudge(t *testing.T) {
	p := place{pool.NewID(), pool.NewID(), pool.NewID(), pool.NewID()}
	q := record.Question{Context: p.here, Branch: p.br, Message: p.msg, Index: 1, Tool: "fs_write", Arguments: json.RawMessage(`{"path":"/a/b","n":"x"}`), Mode: "plan"}
	rule := func(text string, change ...func(*record.Rule)) *record.Rule {
		words := strings.SplitN(text, " ", 3)
		r := &record.Rule{ID: pool.NewID(), Effect: words[0], Tool: words[1], Context: p.here}
		if len(words) == 3 {
			r.When = []record.Condition{cond(t, words[2])}
		}
		if words[1] == "default" {
			r.Tool, r.Default = "", true
		}
		for _, c := range change {
			c(r)
		}
		return r
	}
	unless := func(s string) func(*record.Rule) {
		return func(r *record.Rule) { r.Unless = append(r.Unless, cond(t, s)) }
	}
	also := func(s string) func(*record.Rule) {
		return func(r *record.Rule) { r.When = append(r.When, cond(t, s)) }
	}
	store := func(r *record.Rule) { r.Context = chatctx.ID{} }
	above := func(r *record.Rule) { r.Context = p.parent }
	onBranch := func(r *record.Rule) { r.Branch = p.br }
	for name, c := range map[string]struct {
		rules  []*record.Rule
		effect string
		by     int // the rule that decides; -1: none
	}{
		"no rule asks":                    {nil, "ask", -1},
		"another tool":                    {[]*record.Rule{rule("allow fs_read")}, "ask", -1},
		"deny beats the more specific":    {[]*record.Rule{rule("allow fs_write path prefix /a", onBranch), rule("deny *", store)}, "deny", 1},
		"ask beats allow":                 {[]*record.Rule{rule("allow fs_write", onBranch), rule("ask *", store)}, "ask", 1},
		"deny beats ask":                  {[]*record.Rule{rule("ask fs_write", onBranch), rule("deny *", store)}, "deny", 1},
		"the more specific is named":      {[]*record.Rule{rule("deny *", store), rule("deny fs_*"), rule("deny *")}, "deny", 1},
		"the exact name":                  {[]*record.Rule{rule("allow fs_*"), rule("allow fs_write")}, "allow", 1},
		"the branch is named":             {[]*record.Rule{rule("allow fs_write"), rule("allow *", onBranch)}, "allow", 1},
		"the call is named":               {[]*record.Rule{rule("deny *", onBranch), rule("deny *", func(r *record.Rule) { r.Message, r.Index = p.msg, 1 })}, "deny", 1},
		"the parent before the store":     {[]*record.Rule{rule("deny *", store), rule("deny *", above)}, "deny", 1},
		"another call":                    {[]*record.Rule{rule("allow *", func(r *record.Rule) { r.Message, r.Index = p.msg, 2 })}, "ask", -1},
		"another branch":                  {[]*record.Rule{rule("allow *", func(r *record.Rule) { r.Branch = pool.NewID() })}, "ask", -1},
		"a mode that is not on":           {[]*record.Rule{rule("deny *", func(r *record.Rule) { r.Mode = "act" })}, "ask", -1},
		"the mode":                        {[]*record.Rule{rule("deny *", func(r *record.Rule) { r.Mode = "plan" })}, "deny", 0},
		"a condition that fails":          {[]*record.Rule{rule("allow fs_* path prefix /z")}, "ask", -1},
		"all conditions":                  {[]*record.Rule{rule("allow * path prefix /a", also("n equals y"))}, "ask", -1},
		"any exception":                   {[]*record.Rule{rule("deny *", unless("n equals y"), unless("path prefix /a")), rule("allow *")}, "allow", 1},
		"an exception by tool":            {[]*record.Rule{rule("deny *", unless("tool fs_*")), rule("allow *")}, "allow", 1},
		"an exception that is not sure":   {[]*record.Rule{rule("deny *", unless("path prefix /A")), rule("allow *")}, "deny", 0},
		"an allow's exception may hold":   {[]*record.Rule{rule("allow *", unless("path prefix /A"))}, "ask", -1},
		"an allow's exception untold":     {[]*record.Rule{rule("allow *", unless("n range 1..2"))}, "ask", -1},
		"an untold allow":                 {[]*record.Rule{rule("allow * n range 1..2")}, "ask", -1},
		"an untold deny asks":             {[]*record.Rule{rule("deny * n range 1..2"), rule("allow *")}, "ask", 0},
		"a told deny beats an untold one": {[]*record.Rule{rule("deny fs_write n range 1..2", onBranch), rule("deny *", store)}, "deny", 1},
		"an untold deny where deny is":    {[]*record.Rule{rule("deny * n range 1..2"), rule("allow *"), rule("deny default", store)}, "deny", 0},
		"an untold ask":                   {[]*record.Rule{rule("ask * n range 1..2"), rule("allow *")}, "ask", 0},
		"a missing argument":              {[]*record.Rule{rule("deny * missing equals 1"), rule("allow *")}, "allow", 1},
		"the default":                     {[]*record.Rule{rule("deny default", store)}, "deny", 0},
		"the nearest default":             {[]*record.Rule{rule("deny default", store), rule("ask default"), rule("deny default", above)}, "ask", 1},
		"a default leaves asks":           {[]*record.Rule{rule("deny default"), rule("ask *")}, "ask", 1},
		"a default leaves allows":         {[]*record.Rule{rule("deny default"), rule("allow *")}, "allow", 1},
		"a deny for a tool but for case":  {[]*record.Rule{rule("deny FS_WRITE"), rule("allow *")}, "deny", 0},
		"an allow for a tool to a letter": {[]*record.Rule{rule("allow FS_WRITE")}, "ask", -1},
	} {
		j := Rules{}.Judge(c.rules, &q)
		if c.by < 0 && j.Rule != nil || c.by >= 0 && j.Rule != c.rules[c.by] || j.Effect != c.effect {
			t.Errorf("%s: %s by %v", name, j.Effect, j.Rule)
		}
	}
	two := []*record.Rule{rule("deny fs_*"), rule("allow fs_write")}
	if j := (Rules{}).Judge(two, &q); j.Without == nil || j.Without.Rule != two[1] || j.Without.Effect != "allow" || len(j.Notes) != 2 {
		t.Errorf("what would be without the rule: %+v", j)
	}
	if j := (Rules{}).Judge([]*record.Rule{rule("allow *", above)}, &q); !j.Inherited {
		t.Error("a parent's rule is not said to be inherited")
	}
}

// TestArgumentsThatNobodyCanTell: no allow holds for them, not even one without conditions; a deny with conditions asks.
func TestArgumentsThatNobodyCanTell(t *testing.T) {
	allow := &record.Rule{Effect: record.Allow, Tool: "*"}
	deny := &record.Rule{Effect: record.Deny, Tool: "*", When: []record.Condition{{Argument: "path", Op: Equals, Value: "x"}}}
	schema := json.RawMessage(`{"type":"object","properties":{"path":{},"a":{}},"patternProperties":{"^x-":{}}}`)
	for _, c := range []struct {
		args, schema string
		allow, deny  string
	}{
		{`{"path":"a","path":"b"}`, "", "ask", "ask"}, {`{"a":{"b":1,"b":1}}`, "", "ask", "ask"}, {`{"path":`, "", "ask", "ask"}, {`[1]`, "", "ask", "ask"}, {`"text"`, "", "ask", "ask"}, {`7`, "", "ask", "ask"},
		{`"\"{}\""`, "", "ask", "ask"}, {`{"a":1,"A":1}`, "", "ask", "ask"}, {`{"a":1,"A":1,"Path":"X"}`, "", "ask", "deny"}, {`{"a":[{"k":1,"K":2}]}`, "", "ask", "ask"}, {`{"\u212a":1,"k":2}`, "", "ask", "ask"},
		{``, "", "allow", "ask"}, {`null`, "", "allow", "ask"}, {`{}`, "", "allow", "ask"}, {`"{\"path\":\"x\"}"`, "", "allow", "deny"}, {`{"path":"X"}`, "", "allow", "deny"},
		{`{"a":1}`, "s", "allow", "ask"}, {`{"b":1}`, "s", "ask", "ask"}, {`{"A":1}`, "s", "ask", "ask"}, {`{"x-y":1}`, "s", "allow", "ask"}, {`{"yx-":1}`, "s", "ask", "ask"},
		{`{"b":1}`, `{"additionalProperties":true}`, "allow", "ask"}, {`{"b":1}`, `{"additionalProperties":{}}`, "allow", "ask"}, {`{"b":1}`, `{"additionalProperties":false}`, "ask", "ask"}, {`{"b":1}`, `{"type":"object"}`, "ask", "ask"},
		{`{"b":1}`, `{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"b":{}}}}}`, "allow", "ask"}, {`{"b":1}`, `{"allOf":[{"properties":{"b":{}}}]}`, "allow", "ask"}, {`{"b":1}`, `{"$ref":"#"}`, "ask", "ask"},
	} {
		q := &record.Question{Tool: "t", Arguments: json.RawMessage(c.args)}
		if q.Schema = json.RawMessage(c.schema); c.schema == "s" {
			q.Schema = schema
		} else if c.schema == "" {
			q.Schema = nil
		}
		if j := (Rules{}).Judge([]*record.Rule{allow}, q); j.Effect != c.allow {
			t.Errorf("%s with %s: %s, want %s", c.args, c.schema, j.Effect, c.allow)
		}
		if j := (Rules{}).Judge([]*record.Rule{deny}, q); j.Effect != c.deny {
			t.Errorf("%s denied: %s, want %s", c.args, j.Effect, c.deny)
		}
	}
}

// TestEachCommand: what a condition on a shell's text surely says, and what it possibly says.
// TestLookAlikePaths: what denies or asks sees a path behind its detours, and cannot tell where one goes that goes up.
func TestLookAlikePaths(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home folder: ", err)
	}
	home = filepath.ToSlash(home)
	for _, c := range []struct {
		condition, path, dir string
		want                 answer
	}{
		{"equals /etc/passwd", "//etc/passwd", "", yes}, {"glob /etc/passwd", "//etc/passwd", "", yes}, {"glob /etc/passwd", "/etc/./passwd", "", yes}, {"glob /etc/passwd", "/etc/x/../passwd", "", yes},
		{"glob /etc/**", "/srv/../etc/passwd", "", yes}, {"glob /etc/**", "/./etc/passwd", "", yes}, {"glob /etc/*", "//etc/passwd", "", yes}, {"prefix /etc/", "/x/../etc/passwd", "", yes},
		{"regexp /etc/.*", "///etc//passwd", "", yes}, {"glob secrets/*", "./secrets/a", "", yes}, {"glob **/secrets/*", "secrets/./x", "", yes}, {"glob /etc/ssh", "/etc/ssh/", "", yes},
		{"glob /etc/ssh/", "/etc/ssh", "", yes}, {"glob **/.env", "docs/.env/.", "", yes}, {"glob ~/.ssh/*", home + "/.ssh/id", "", yes}, {"glob " + home + "/.ssh/*", "~/.ssh/id", "", yes},
		{"glob " + home + "/.ssh/*", "$HOME/.ssh/id", "", yes}, {"glob /etc/*", "passwd", "/etc", yes}, {"glob /etc/*", "", "/etc", no}, {"glob /etc/*", "./passwd", "/etc", yes}, {"glob /srv/etc/*", "etc/x", "/srv", yes},
		{"glob secrets/*", "/srv/d/secrets/a", "/srv/d", yes}, {"glob ~/.ssh/*", "$HOME/.ssh/id", "", yes}, {"glob ~/.ssh/*", "${HOME}/.ssh/id", "", yes},
		{"prefix ~/.ssh", "$HOME/.ssh/id", "", yes}, {"glob $HOME/.ssh/*", "~/.ssh/id", "", yes}, {"glob $HOME/.ssh/*", home + "/.ssh/id", "", yes}, {"glob ~/.ssh/*", ".ssh/id", home, yes},
		{"glob /root/.ssh/*", "~root/.ssh/id", "", unsure}, {"glob /etc/passwd", "file:///etc/passwd", "", yes}, {"glob /etc/passwd", "file:/etc/%70asswd", "", yes}, {"glob /etc/*", "sftp://x/etc/y", "", unsure},
		{"glob /etc/*", "$X/passwd", "", unsure}, {"prefix rm /", "echo $X", "", no}, {"glob *x*", "$Y/z", "", no},
		{`glob /etc/*`, `\etc\passwd`, "", yes}, {"glob /etc/*", "../x", "", unsure}, {"equals /etc/passwd", "a/../../x", "", unsure}, {"glob *secret*", "../x", "", no}, {"glob /etc/*", "a..b", "", no},
		{"glob /etc/*", "/srv/etc/x", "", no}, {"prefix /etc/", "etc/x", "", no},
	} {
		source := cond(t, "path "+c.condition)
		parsed, err := parseCondition(&source)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]string{"path": c.path})
		if err != nil {
			t.Fatal(err)
		}
		s := subjectOf(&record.Question{Tool: "t", Arguments: raw})
		s.dir = c.dir
		if got, why := parsed.mayHold(s); got != c.want || got != yes && parsed.holds(s) {
			t.Errorf("%s on %s: %d (%s), want %d", c.condition, c.path, got, why, c.want)
		}
	}
}

func TestEachCommand(t *testing.T) {
	for _, c := range []struct {
		patterns, text string
		surely         bool
		possibly       answer
	}{
		{"ls cat", "ls -l | cat x", true, yes}, {"ls", "ls; rm x", false, yes}, {"ls", "ls $(rm x)", false, yes}, {"rm", "ls \"$(rm x)\"", false, yes}, {"rm", "echo a", false, no}, {"ls", "", false, no},
		{`"git status" ls`, "(git status -s) && ls", true, yes}, {`"git status"`, "git push", false, no}, {`"git *"`, "git", true, yes}, {"git*", "git push", true, yes}, {"GIT", "git push", false, yes}, {"*", "x y", true, yes},
		{"rm", "/bin/rm x", false, yes}, {"ls", "/tmp/ls", false, yes}, {"rm", "r''m x", true, yes}, {"rm", "\\rm x", true, yes}, {"rm", "$X x", false, unsure}, {"ls", "l*", false, unsure}, {"ls", "{ls,-l}", false, unsure},
		{"ls", "timeout 5 env nice -n 3 ls", true, yes}, {"ls", "bash -c 'ls; ls'", true, yes}, {"rm", "bash -c 'ls; rm x'", false, yes}, {"ls", "sudo ls", false, yes}, {`ls "sudo ls"`, "sudo ls", true, yes}, {"ls", "sh -x -c ls", true, yes},
		{"ls", "X=1 ls", false, yes}, {"ls", "ls > x", false, yes}, {"ls", "ls 2>&1 >/dev/null", true, yes}, {"ls", "eval ls", false, unsure}, {"ls", "ls | xargs rm", false, yes}, {"rm", "find . -exec rm {} +", false, yes}, {"find", "find . -name x", true, yes},
		{"ls", "f() { ls; }", true, yes}, {"ls", "cat <<E\n$(rm x)\nE", false, no}, {"ls", "ls # \\\nrm -rf x", false, yes}, {"ls", "ls \\\n -l", true, yes}, {"ls", "ls\rrm", false, yes}, {"ls", "ls '", false, unsure}, {"rm", "echo 'rm x'", false, no},
		{"ls", "for x in a; do ls; done", true, yes}, {"ls", "[[ 'a[$(rm x)]' -eq 0 ]] || ls", false, yes}, {"ls", "ls $((1))", true, yes}, {"ls", "echo rm | sh", false, unsure}, {"ls", "ls & ls", true, yes}, {`"rm -rf"`, "sudo -n timeout 5 rm -rf /", false, yes},
		// options that hide the words of a pattern
		{`"rm -rf"`, "rm -fr /", false, unsure}, {`"rm -rf"`, "rm -r -f /", false, unsure}, {`"rm -rf"`, "rm / -vRf", false, unsure}, {`"rm -rf"`, "/bin/rm -i -rf /", false, unsure}, {`"rm -rf"`, "rm -r x", false, no},
		{`"rm -rf"`, "rm x-rf", false, no}, {`"rm -rf"`, "ls -rf", false, no}, {`"rm -r"`, "rm --recursive=rr x", false, no}, {`"git push"`, "git -C /x push", false, unsure}, {`"git push"`, "git -c a=b --no-pager push", false, unsure},
		{`"git push"`, "git --git-dir=/x push -f", false, unsure}, {`"git push"`, "git -c push", false, unsure}, {`"git push"`, "git stash push", false, no}, {`"git push"`, "git commit -m push", false, no},
		{`"git push"`, "git -C push log", false, unsure}, {`"git push"`, "git -C", false, no}, {`"git push *"`, "git -C /x push", false, unsure}, {`"git push --force"`, "git push origin x --force", false, unsure},
		{`"git push --force"`, "git push origin x", false, no}, {`"git push --force"`, "git -C /x push -f", false, no},
		{`"git push"`, "git $(echo push)", false, unsure}, {`"git push"`, "git -C /x $(echo push)", false, unsure}, {`"git push"`, "git --no-pager $V", false, unsure}, {`"git push"`, "git log $V", false, no},
		{`"rm -rf"`, "rm -r $(echo -f) x", false, unsure}, {`"rm -rf"`, "rm x $V", false, unsure}, {`"git push"`, "$G -C /x push", false, unsure},
		// programs that start what they are given
		{`"./script *"`, "./script x", true, yes}, {"*", "./tools/watch", true, yes}, {"*", "arch", true, yes}, {"rm", "/usr/bin/watch rm x", false, unsure},
		{"rm", "stdbuf -oL rm x", false, unsure}, {"ls", "doas ls", false, unsure}, {"curl", "setsid -w curl x", false, unsure}, {"find", "find . -delete", false, yes}, {"find", "find . -fprintf /etc/x a", false, yes},
	} {
		parsed, err := parseCondition(&record.Condition{Argument: "c", Op: Each, Value: c.patterns})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]string{"c": c.text})
		if err != nil {
			t.Fatal(err)
		}
		s := subjectOf(&record.Question{Tool: "shell", Arguments: raw})
		got, why := parsed.mayHold(s)
		if sure := parsed.holds(s); sure != c.surely || got != c.possibly {
			t.Errorf("each %s of %q: surely %t, possibly %d (%s); want %t and %d", c.patterns, c.text, sure, got, why, c.surely, c.possibly)
		}
	}
}

// TestOffers: the rules that are offered for a call, the narrowest first, allow it, and what they do not cover they do not allow.
func TestOffers(t *testing.T) {
	work := t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, "sub", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := filepath.EvalSymlinks(work)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, args string
		like       string // what is offered for these values; "": nothing
		not        string // arguments that all but the last leave to a person
	}{
		{"read", `{"path":"/srv/a/x"}`, "path under /srv/a", `{"path":"/srv/b"}`},
		{"read", `{"path":"x"}`, "path under " + at, `{"path":"../x"}`},
		{"read", `{"path":"./sub/x"}`, "path under " + at + "/sub", `{"path":"x"}`},
		{"read", `{"path":"sub/deep"}`, "path under " + at + "/sub/deep", `{"path":"sub/x"}`},
		{"ls", `{"dir":"sub"}`, "dir under " + at + "/sub", `{"dir":"."}`},
		{"ls", `{"dir":"."}`, "dir under " + at, `{"dir":".."}`},
		{"read", `{"path":"../x"}`, "", `{"path":"../y"}`},
		{"read", `{"path":"sub/../x"}`, "", `{"path":"sub/../y"}`},
		{"read", `{"path":"/srv/a/../x"}`, "", `{"path":"/srv/x"}`},
		{"read", `{"path":"/x"}`, "", `{"path":"/y"}`},
		{"read", `{"path":"~/x"}`, "", `{"path":"/y"}`},
		{"read", `{"path":""}`, "", `{"path":"y"}`},
		{"read", `{"path":"/srv/a/x","file":"~/y"}`, "", `{"path":"/srv/a/x","file":"/etc/passwd"}`},
		{"read", `{"path":"/srv/a/x","file":"/srv/b/y"}`, "path under /srv/a when file under /srv/b", `{"path":"/srv/a/x","file":"/etc/passwd"}`},
		{"read", `{"path":"/srv/a/x","options":{"path":"/srv/a/y"}}`, "", `{"path":"/srv/a/x","options":{"path":"/etc/y"}}`},
		{"read", `{"path":["/srv/a/x"]}`, "", `{"path":["/srv/a/y"]}`},
		{"run", `{"command":"git push","cwd":"/srv/a/gone"}`, `command each "git push" when cwd under /srv/a/gone`, `{"command":"git push","cwd":"/srv/a"}`},
		{"run", `{"command":"$(x)","cwd":"/srv/a"}`, "", `{"command":"rm","cwd":"/srv/a"}`},
		{"sh*", `{"command":"git push -f | cat"}`, `command each "git push" "cat"`, `{"command":"git rm"}`},
		{"sh", `{"command":"FOO=1 ls -l > 'a b.txt'"}`, `command each "ls" when command writes "a b.txt" when command sets "FOO"`, `{"command":"ls > b"}`},
		{"sh", `{"command":"ls > \"$x\""}`, "", `{"command":"ls > b"}`},
		{"x", `{"n":1}`, "", `{"n":2}`},
		{"x", `{"command":"$(x)"}`, "", `{"command":"y"}`},
	} {
		q := record.Question{Tool: c.tool, Arguments: json.RawMessage(c.args), Dir: at}
		tool := "allow " + quoteGlob(c.tool)
		want := []string{tool + " when {} equals " + c.args}
		if c.like != "" {
			want = append(want, tool+" when "+c.like)
		}
		want = append(want, tool)
		offers := Offers(q)
		var said []string
		for i, r := range offers {
			said = append(said, r.String())
			if err := (Rules{}).Rule(r); err != nil {
				t.Error(err)
			}
			if j := (Rules{}).Judge([]*record.Rule{r}, &q); j.Effect != record.Allow {
				t.Errorf("%s does not allow %s: %s", r, c.args, j.Notes[0].Why)
			}
			other := q
			if other.Arguments = json.RawMessage(c.not); (Rules{}.Judge([]*record.Rule{r}, &other).Effect == record.Allow) != (i == len(offers)-1) {
				t.Errorf("%s and %s", r, c.not)
			}
		}
		if !slices.Equal(said, want) {
			t.Errorf("%s %s is offered %q, want %q", c.tool, c.args, said, want)
		}
	}
	if offers := Offers(record.Question{Tool: "read", Arguments: json.RawMessage(`{"path":"x"}`)}); len(offers) != 2 {
		t.Errorf("a path that is relative to nobody knows what is offered %v", offers)
	}
	if offers := Offers(record.Question{Tool: "read", Arguments: json.RawMessage(`{"path":"/srv/a","n":1}`), Schema: json.RawMessage(`{"properties":{"path":{}}}`)}); len(offers) != 1 {
		t.Errorf("what no allow can hold for is offered %v", offers)
	}
}
