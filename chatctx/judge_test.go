package chatctx

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// byName is a judge whose rules are about one tool each, by its name.
type byName struct{}

func (byName) Rule(r *record.Rule) error {
	if r.Effect == "" {
		return base.Invalid("a rule needs an effect")
	}
	return nil
}

func (byName) Tool(t *record.Tool) error {
	if t.Name == "refused" {
		return base.Invalid("a tool of that name is refused")
	}
	return nil
}

func (byName) Arguments(_, arguments json.RawMessage) error {
	if string(arguments) == `{"no":1}` {
		return base.Invalid("it does not fit")
	}
	return nil
}

func (byName) Judge(rules []*record.Rule, q *record.Question) *record.Ruling {
	r := &record.Ruling{Effect: record.Ask}
	for _, rule := range rules {
		if rule.Tool == q.Tool && (r.Rule == nil || rule.Effect == record.Deny) || rule.Default && r.Rule == nil {
			r.Effect, r.Rule = rule.Effect, rule
		}
	}
	return r
}

// TestRulesNeedAJudge: without one no rule comes in, and where there are some nothing is decided or claimed.
func TestRulesNeedAJudge(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "go")
	appendTo(t, c, "", asks("x"))
	s.at().Judge = nil
	if _, err := s.AddRule(t.Context(), record.Rule{Effect: record.Allow, Tool: "look"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a rule without a judge gives %v", err)
	}
	s.at().Judge = byName{}
	if _, err := s.AddRule(t.Context(), record.Rule{Tool: "look"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a rule that the judge refuses gives %v", err)
	}
	if _, err := s.PutTool(t.Context(), record.Tool{Name: "refused"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a tool that the judge refuses gives %v", err)
	}
	if _, err := s.AddRule(t.Context(), record.Rule{Effect: record.Deny, Tool: "other"}); err != nil {
		t.Fatal(err)
	}
	s.at().Judge = nil
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an approval under rules that nobody can read gives %v", err)
	}
	if _, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a claim under rules that nobody can read gives %v", err)
	}
	s.at().Judge = byName{}
}

// TestADenyRuleStandsAbovePeople: nobody approves what a rule denies, and what was approved before it came is not claimed. A default denies where nobody decides.
func TestADenyRuleStandsAbovePeople(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "go")
		appendTo(t, c, "", asks("x"))
		appendTo(t, c, "", asks("y"))
		if _, err := decide(c, "", "y", record.Verdict{Status: pool.Approved}); err != nil {
			t.Fatal(err)
		}
		done, err := s.AddRule(t.Context(), record.Rule{Effect: record.Deny, Tool: "look"})
		if err != nil {
			t.Fatal(err)
		}
		id := done.Last().Rule.ID
		for what, err := range map[string]error{
			"an approval": second(decide(c, "", "x", record.Verdict{Status: pool.Approved})),
			"a program's": second(decide(c, "", "x", record.Verdict{Status: pool.Approved, Kind: record.ByProgram})),
			"a claim":     second(s.ClaimCall(t.Context(), "", "", "y", record.ClaimOptions{})),
		} {
			if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "rules rm "+record.Short(id)+" --global") {
				t.Errorf("%s gives %v", what, err)
			}
		}
		want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), "x pending/none main, y approved/none main")
		if _, err := s.RemoveRule(t.Context(), id.String()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddRule(t.Context(), record.Rule{Effect: record.Deny, Default: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
			t.Errorf("a person is told by a default: %v", err)
		}
		appendTo(t, c, "", asks("z"))
		if _, err := s.ClaimCall(t.Context(), "", "", "z", record.ClaimOptions{}); !errors.Is(err, ErrConflict) {
			t.Errorf("a claim that the default denies gives %v", err)
		}
		if z := findC(t, s, "", "", "z"); z.State() != "denied/none" || z.Decisions[0].Kind != record.ByRule {
			t.Errorf("the default leaves it %s", z.State())
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestAClaimAppliesRules: an outside program gets a call that a rule allows, and lists write nothing.
func TestAClaimAppliesRules(t *testing.T) {
	s, clock := clocked(t)
	c := newContext(t, s, "go")
	appendTo(t, c, "", asks("x"))
	b := c.Begin("")
	b.AddRule(record.Rule{Effect: record.Allow, Tool: "look"}, record.RuleScope{})
	commit(t, b)
	want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), "x pending/none main")
	if r, err := toolcall.Judge(t.Context(), base.Of(s), findC(t, s, "", "", "x")); err != nil || r.Effect != record.Allow {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(findC(t, s, "", "", "x").Decisions) != 0 {
		t.Error("a look wrote a decision")
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{})
	if err != nil || k.Call.State() != "approved/running" || k.Call.Decisions[0].Kind != record.ByRule {
		t.Fatalf("%+v, %v", k, err)
	}
	appendTo(t, c, "", asks("late"))
	b = c.Begin("")
	b.ExpireCall("late", clock.in(time.Minute))
	commit(t, b)
	clock.move(2 * time.Minute)
	if late := findC(t, s, "", "", "late"); late.State() != "denied/none" || len(late.Decisions) != 0 {
		t.Errorf("a look at what expired gives %s with %d steps on record", late.State(), len(late.Decisions))
	}
	if err := toolcall.SettleBranch(t.Context(), base.ContextOf(c.Store(), c.ID), ""); err != nil {
		t.Fatal(err)
	}
	if late := findC(t, s, "", "", "late"); len(late.Decisions) != 1 || late.Decisions[0].Kind != record.ByExpiry {
		t.Errorf("it is settled with %+v", late.Decisions)
	}
}

// TestExamplesHold: a change that breaks one is refused, but for a deny, which names it. One that was broken already is nobody's fault.
func TestExamplesHold(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "go")
	add := func(r record.Rule) (*Step, error) {
		b := c.Begin("")
		b.AddRule(r, record.RuleScope{})
		done, err := b.Commit(t.Context())
		if err != nil {
			return nil, err
		}
		return done.Last(), nil
	}
	allow, err := add(record.Rule{Effect: record.Allow, Tool: "read", Examples: []string{"read {} => allow", "write => ask"}})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"its own":   second(add(record.Rule{Effect: record.Ask, Tool: "write", Examples: []string{"write {} => allow"}})),
		"another's": second(add(record.Rule{Effect: record.Allow, Tool: "write"})),
		"for all":   second(s.AddRule(t.Context(), record.Rule{Effect: record.Allow, Tool: "write"})),
		"rm": func() error {
			b := c.Begin("")
			b.RemoveRule(allow.Rule.ID.String())
			return second(b.Commit(t.Context()))
		}(),
	} {
		if what == "rm" {
			if err != nil {
				t.Errorf("a rule with examples of its own cannot go: %v", err)
			}
			continue
		}
		if !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	deny, err := add(record.Rule{Effect: record.Deny, Tool: "read"})
	if err != nil || len(deny.Broken) != 1 || deny.Broken[0].Is != record.Deny || deny.Broken[0].Rule.ID != allow.Rule.ID {
		t.Fatalf("a deny gives %+v, %v", deny, err)
	}
	if _, err := add(record.Rule{Effect: record.Allow, Tool: "other"}); err != nil {
		t.Errorf("an example that was broken before keeps others out: %v", err)
	}
	guard, err := add(record.Rule{Effect: record.Deny, Tool: "rm", Examples: []string{"rm => deny"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := add(record.Rule{Effect: record.Ask, Tool: "x", Examples: []string{"rm => deny"}}); err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.RemoveRule(guard.Rule.ID.String())
	if _, err := b.Commit(t.Context()); !errors.Is(err, ErrConflict) {
		t.Errorf("a rule goes that another's example rests on: %v", err)
	}
}

// TestExamplesHoldAgainstUndo: undo and redo change rules, too, of the context and of the store, and are judged like any other change.
func TestExamplesHoldAgainstUndo(t *testing.T) {
	for _, where := range []string{"context", "store"} {
		t.Run(where, func(t *testing.T) {
			s := open(t, "")
			c := newContext(t, s, "go")
			add := func(r record.Rule) *record.Committed {
				t.Helper()
				made := func() (*record.Committed, error) { return s.AddRule(t.Context(), r) }
				if where == "context" {
					b := c.Begin("")
					b.AddRule(r, record.RuleScope{})
					made = func() (*record.Committed, error) { return b.Commit(t.Context()) }
				}
				done, err := made()
				if err != nil {
					t.Fatal(err)
				}
				return done
			}
			undo := func(op string, want error) *record.Undone {
				t.Helper()
				done, err := s.Undo(t.Context(), "", "", op)
				if !errors.Is(err, want) {
					t.Fatalf("undo of %q gives %v", op, err)
				}
				return done
			}
			deny := add(record.Rule{Effect: record.Deny, Tool: "rm"})
			add(record.Rule{Effect: record.Ask, Tool: "other", Examples: []string{"rm => deny"}})
			undo("", nil) // the example goes with its rule
			if _, err := s.Redo(t.Context(), "", ""); err != nil {
				t.Fatal(err)
			}
			if where == "context" {
				undo(deny.Operation, ErrConflict) // others stand on it
			}
			undo("", nil)
			undo("", nil) // the deny goes
			b := c.Begin("")
			b.AddRule(record.Rule{Effect: record.Ask, Tool: "mine", Examples: []string{"rm => ask"}}, record.RuleScope{Branch: true})
			commit(t, b)
			back, err := s.Redo(t.Context(), "", "")
			if where == "context" {
				if !errors.Is(err, ErrNotFound) {
					t.Errorf("redo after something else gives %v", err)
				}
				return
			}
			if err != nil || len(back.Broken) != 1 || back.Broken[0].Is != record.Deny || back.Broken[0].Example != "rm => ask" {
				t.Errorf("a deny that comes back names what it breaks: %+v, %v", back, err)
			}
		})
	}
}

// TestExamplesRestOnWhatStays: undo of a rule that another's example rests on is refused, in whatever order they came.
func TestExamplesRestOnWhatStays(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "go")
	deny, err := s.AddRule(t.Context(), record.Rule{Effect: record.Deny, Tool: "rm"})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.AddRule(record.Rule{Effect: record.Ask, Tool: "x", Examples: []string{"rm => deny"}}, record.RuleScope{})
	commit(t, b)
	if _, err := s.Undo(t.Context(), "", "", deny.Operation); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "rm => deny, but it would be ask") {
		t.Errorf("undo of the deny gives %v", err)
	}
	if rules, err := s.Rules(t.Context(), c.ID); err != nil || len(rules) != 2 {
		t.Errorf("the rules are %v, %v", rules, err)
	}
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), "", "", deny.Operation); err != nil {
		t.Fatal(err)
	}
	allow, err := s.AddRule(t.Context(), record.Rule{Effect: record.Allow, Tool: "read"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), "", "", allow.Operation); err != nil {
		t.Fatal(err)
	}
	b = c.Begin("")
	b.AddRule(record.Rule{Effect: record.Ask, Tool: "x", Examples: []string{"read => ask"}}, record.RuleScope{})
	commit(t, b)
	if _, err := s.Redo(t.Context(), "", ""); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "read => ask, but it would be allow") {
		t.Errorf("redo of an allow that an example speaks against gives %v", err)
	}
}

// TestExamplesHoldWhenRulesExpire: an example does not rest on a rule that goes by itself, and one goes with its rule.
func TestExamplesHoldWhenRulesExpire(t *testing.T) {
	s, clock := clocked(t)
	add := func(r record.Rule) (*record.Committed, error) { return s.AddRule(t.Context(), r) }
	if _, err := add(record.Rule{Effect: record.Deny, Tool: "rm", Expires: clock.in(time.Hour), Examples: []string{"rm => deny"}}); err != nil {
		t.Fatalf("its own example goes with a rule: %v", err)
	}
	if _, err := add(record.Rule{Effect: record.Allow, Tool: "x", Examples: []string{"rm => deny"}}); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "once rules have expired, at 2026-01-02T04:04:05Z") {
		t.Errorf("an example that rests on a rule that expires gives %v", err)
	}
	if _, err := add(record.Rule{Effect: record.Allow, Tool: "x", Examples: []string{"rm => deny"}, Expires: clock.in(time.Minute)}); err != nil {
		t.Errorf("one that goes before it gives %v", err)
	}
	named, err := add(record.Rule{Effect: record.Deny, Tool: "x", Examples: []string{"rm => deny"}})
	if err != nil || len(named.Last().Broken) != 1 || named.Last().Broken[0].At == 0 {
		t.Errorf("a deny names %+v, %v", named, err)
	}
	clock.move(2 * time.Hour)
	if _, err := add(record.Rule{Effect: record.Allow, Tool: "rm"}); err != nil {
		t.Errorf("the example of a rule that has expired keeps others out: %v", err)
	}
}

// TestOneDefaultAScope: a new one takes the place of the old one.
func TestOneDefaultAScope(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "go")
	for _, effect := range []string{record.Deny, record.Ask, record.Deny} {
		b := c.Begin("")
		b.AddRule(record.Rule{Default: true, Effect: effect}, record.RuleScope{})
		b.AddRule(record.Rule{Default: true, Effect: effect}, record.RuleScope{Branch: true})
		commit(t, b)
	}
	rules, err := s.Rules(t.Context(), c.ID)
	if err != nil || len(rules) != 2 || rules[0].Effect != record.Deny || rules[1].Effect != record.Deny {
		t.Errorf("%v, %v", rules, err)
	}
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	if rules, err = s.Rules(t.Context(), c.ID); err != nil || len(rules) != 2 || rules[0].Effect != record.Ask {
		t.Errorf("after undo %v, %v", rules, err)
	}
}

// TestALinkedContextIsAllowedNothing: what a parent denies and asks holds for a context that only says that it belongs there, what it allows for its tasks.
func TestALinkedContextIsAllowedNothing(t *testing.T) {
	s := open(t, "")
	root := newContext(t, s, "root")
	b := root.Begin("")
	for _, r := range []record.Rule{{Effect: record.Allow, Tool: "a"}, {Effect: record.Ask, Tool: "b"}, {Effect: record.Deny, Tool: "c"}, {Default: true, Effect: record.Deny}} {
		b.AddRule(r, record.RuleScope{})
	}
	commit(t, b)
	if _, err := s.AddRule(t.Context(), record.Rule{Effect: record.Allow, Tool: "all"}); err != nil {
		t.Fatal(err)
	}
	task, err := root.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Title: "task"}})
	if err != nil {
		t.Fatal(err)
	}
	linked, err := s.New(t.Context(), record.NewContext{Title: "linked", Parent: task.ID, Stay: true})
	if err != nil {
		t.Fatal(err)
	}
	below, err := linked.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Title: "below"}})
	if err != nil {
		t.Fatal(err)
	}
	answer := &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "t", Tool: "Agent"}}}
	main := []record.IncomingBranch{{Name: "main", Leaf: 1}}
	in, err := s.Import(t.Context(), []*record.Incoming{{Format: "f", Conversation: "p", Title: "parent", Branches: main, Nodes: []record.Node{{ID: "1", Message: answer}}}})
	if err != nil {
		t.Fatal(err)
	}
	parent, err := s.Context(t.Context(), in[0].Context.String())
	if err != nil {
		t.Fatal(err)
	}
	b = parent.Begin("")
	b.AddRule(record.Rule{Effect: record.Allow, Tool: "a"}, record.RuleScope{})
	b.AddRule(record.Rule{Effect: record.Ask, Tool: "b"}, record.RuleScope{})
	commit(t, b)
	in, err = s.Import(t.Context(), []*record.Incoming{{Format: "f", Conversation: "p/x", Title: "agent", Parent: &record.SourceLink{Format: "f", Conversation: "p"}, Answers: "t", Branches: main,
		Nodes: []record.Node{{ID: "1", Message: pool.NewText(pool.User, "dig")}}}})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := s.Context(t.Context(), in[0].Context.String())
	if err != nil {
		t.Fatal(err)
	}
	if task, err := agent.TaskInfo(t.Context()); err != nil || task.Parent != parent.ID || task.Index != 1 {
		t.Errorf("the task of an agent: %+v, %v", task, err)
	}
	for c, n := range map[*ChatContext]int{root: 5, task: 5, linked: 4, below: 4, parent: 3, agent: 2} {
		rules, err := s.Rules(t.Context(), c.ID)
		if err != nil || len(rules) != n {
			t.Errorf("%d rules hold, want %d: %v, %v", len(rules), n, rules, err)
		}
	}
}

// TestDiffOfRules: which calls on record would be decided otherwise, also those that ran. Nothing is written.
func TestDiffOfRules(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "go")
	for i := range 300 {
		appendTo(t, c, "", asks(fmt.Sprint("x", i)))
	}
	count := func(add *record.Rule, rm ID) (n int) {
		err := toolcall.DiffRule(t.Context(), base.Of(s), add, rm, func(d record.RuleDifference) error {
			if d.Before.Effect == d.After.Effect {
				t.Errorf("%s would not be decided otherwise", d.Call.ID)
			}
			n++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(&record.Rule{Effect: record.Deny, Tool: "look", Context: c.ID}, ID{}); n != 300 {
		t.Errorf("%d calls differ", n)
	}
	if n := count(&record.Rule{Effect: record.Deny, Tool: "other"}, ID{}) + count(&record.Rule{Effect: record.Deny, Tool: "look", Context: pool.NewID()}, ID{}); n != 0 {
		t.Errorf("%d calls differ by a rule that is not about them", n)
	}
	done, err := s.AddRule(t.Context(), record.Rule{Effect: record.Allow, Tool: "look"})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(nil, done.Last().Rule.ID); n != 300 {
		t.Errorf("%d calls differ without the rule", n)
	}
}

// TestArgumentsAreCanonical: what came is kept, and what is judged, hashed and claimed is one form. What nobody can read is not approved.
func TestArgumentsAreCanonical(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "go")
		raw := []string{`{ "b" : 1.0, "a":"\u0041\/" }`, `"{\"a\": 1}"`, `{"a":1,"a":2}`, `null`}
		m := &Message{Role: pool.Assistant}
		for i, r := range raw {
			m.Calls = append(m.Calls, pool.Call{ID: fmt.Sprint("k", i), Tool: "look", Arguments: json.RawMessage(r)})
		}
		appendTo(t, c, "", m)
		for i, canonical := range []string{`{"b":1.0,"a":"A/"}`, `{"a":1}`, "", `{}`} {
			ref := record.CallRef(fmt.Sprint("k", i))
			_, err := decide(c, "", ref, record.Verdict{Status: pool.Approved})
			if canonical == "" {
				if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "twice") {
					t.Errorf("arguments with a key twice give %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			k, err := s.ClaimCall(t.Context(), "", "", ref, record.ClaimOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want(t, string(k.Call.RunArguments()), canonical)
			for _, d := range k.Call.Decisions {
				if d.ArgsSHA256 != pool.Hash(sha256.Sum256([]byte(canonical))) {
					t.Errorf("%s was decided by another hash", ref)
				}
			}
		}
		want(t, string(findC(t, s, "", "", "k0").Arguments), raw[0])
		want(t, string(findC(t, s, "", "", "k1").Arguments), `{"a": 1}`)
		if _, err := decide(c, "", "k2", record.Verdict{Status: pool.Approved, Arguments: json.RawMessage(`{"a":1,"a":2}`)}); !errors.Is(err, ErrInvalid) {
			t.Errorf("other arguments with a key twice give %v", err)
		}
		if _, err := decide(c, "", "k2", record.Verdict{Status: pool.Approved, Arguments: json.RawMessage(`{"a":2}`)}); err != nil {
			t.Error(err)
		}
	})
}

// TestListsCoverNamesWithSlashes: in a pattern of tools' names a slash is a character like others.
func TestListsCoverNamesWithSlashes(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "go")
	m := asks("x")
	m.Calls[0].Tool = "a/b"
	appendTo(t, c, "", m)
	for pattern, found := range map[string]int{"*": 1, "a*": 1, "a/*": 1, "a?b": 1, "b*": 0, "": 1} {
		if n := len(openRefs(t, s, record.CallFilter{Tool: pattern})); n != found {
			t.Errorf("%q finds %d calls, want %d", pattern, n, found)
		}
	}
}
