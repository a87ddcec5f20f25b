package chatctx

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

func askedBy(session, id, arguments string) *toolcall.Asked {
	return &toolcall.Asked{Gate: record.Gate{Agent: "claude-code", Session: session, Folder: "/srv/p", Level: record.LevelOwn}, Mode: record.GateHold, CallID: id, Tool: "Bash",
		Arguments: []byte(arguments), Wait: time.Minute}
}

func ensure(t *testing.T, s *Store, in *toolcall.Asked) *toolcall.Said {
	t.Helper()
	said, err := toolcall.Ensure(t.Context(), s.at(), in)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// verdict decides about a hook's call as a person does.
func verdict(t *testing.T, s *Store, c *record.Call, v record.Verdict) error {
	b := s.Begin(c.Context.String(), c.Branch)
	b.Decide(c.Ref(), v)
	_, err := b.Commit(base.WithDeciding(t.Context(), base.Decides))
	return err
}

// TestAGatedCallIsLetOnce: a call waits, is on no branch and in the list, a decision lets it once, and its end is recorded.
func TestAGatedCallIsLetOnce(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		in := askedBy("s1", "toolu_1", `{"command":"ls"}`)
		said := ensure(t, s, in)
		if said.Say != toolcall.SayWait || !said.New || said.Call.Context != base.SourceContext("claude-code", "s1") {
			t.Fatalf("the hook is told %+v", said)
		}
		want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), "toolu_1 pending/none main")
		if again := ensure(t, s, in); again.New || again.Say != toolcall.SayWait || again.Call.Message != said.Call.Message {
			t.Errorf("asked again it is told %+v", again)
		}
		if err := verdict(t, s, said.Call, record.Verdict{Status: pool.Approved}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ClaimCall(t.Context(), said.Call.Context.String(), "", "toolu_1", record.ClaimOptions{}); !errors.Is(err, ErrConflict) {
			t.Errorf("a claim by another program gives %v", err)
		}
		let, err := toolcall.Collect(t.Context(), s.at(), in, said.Call, toolcall.EndNot, "")
		if err != nil || let.Say != toolcall.SayAllow || let.Call.State() != "approved/running" {
			t.Fatalf("%+v, %v", let, err)
		}
		for range 2 {
			if again := ensure(t, s, in); again.Say != toolcall.SayDeny || !strings.Contains(again.Reason, "ran already") {
				t.Errorf("a call that was let is told %+v", again)
			}
		}
		in.Token = let.Token
		if again := ensure(t, s, in); again.Say != toolcall.SayAllow {
			t.Errorf("the same waiter is told %+v", again)
		}
		end, err := toolcall.Close(t.Context(), s.at(), in, toolcall.Outcome{Text: "a\nb"})
		if err != nil || end.Past || end.Call.State() != "approved/done" {
			t.Fatalf("%+v, %v", end, err)
		}
		if again := ensure(t, s, in); again.Say != toolcall.SayDeny {
			t.Errorf("a call that ran is told %+v", again)
		}
		want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), "")
		steps, err := toolcall.CallLog(t.Context(), s.at(), said.Call.Context)
		if err != nil || len(steps) != 4 || steps[1].Kind != record.ByPerson {
			t.Errorf("its steps are %+v, %v", steps, err)
		}
	})
}

// TestWhatAHookIsTold: rules, denials, time, leaving it to the agent, and a call that ran without an answer.
func TestWhatAHookIsTold(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		s.at().Judge = byName{}
		for tool, effect := range map[string]string{"Read": record.Allow, "Web": record.Deny} {
			if _, err := s.AddRule(t.Context(), record.Rule{Effect: effect, Tool: tool}); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct{ mode, tool, say, state string }{
			{record.GateHold, "Read", toolcall.SayAllow, "approved/running"},
			{record.GateHold, "Web", toolcall.SayDeny, "denied/none"},
			{record.GateHold, "Bash", toolcall.SayWait, "pending/none"},
			{record.GateRules, "Read", toolcall.SayAllow, "approved/running"},
			{record.GateRules, "Web", toolcall.SayDeny, "denied/none"},
			{record.GateRules, "Bash", toolcall.SayLeft, "left/none"},
			{record.GateRecord, "Web", toolcall.SayLeft, "left/none"},
		} {
			in := askedBy("s2", c.mode+c.tool, `{}`)
			in.Mode, in.Tool = c.mode, c.tool
			if said := ensure(t, s, in); said.Say != c.say || said.Call.State() != c.state {
				t.Errorf("%s %s: %s, %s", c.mode, c.tool, said.Say, said.Call.State())
			}
		}
		for end, state := range map[string]string{toolcall.EndDeny: "denied/none", toolcall.EndLeave: "left/none", toolcall.EndKeep: "pending/none", toolcall.EndIsGone: "withdrawn/none"} {
			in := askedBy("s2", "end"+end, `{}`)
			c := ensure(t, s, in).Call
			said, err := toolcall.Collect(t.Context(), s.at(), in, c, end, "not decided in 3 s")
			if err != nil || said.Call.State() != state {
				t.Errorf("%s: %+v, %v", end, said, err)
			}
			if err := verdict(t, s, c, record.Verdict{Status: pool.Approved}); (err == nil) != (end == toolcall.EndKeep) {
				t.Errorf("after %s an approval gives %v", end, err)
			}
		}
		past, err := toolcall.Close(t.Context(), s.at(), askedBy("s2", "never", `{"a":1}`), toolcall.Outcome{Failed: true})
		if err != nil || !past.Past || past.Call.State() != "left/failed" || !past.Call.Gate.Past {
			t.Errorf("a call that no hook brought: %+v, %v", past, err)
		}
		other := ensure(t, s, askedBy("s2", "never", `{"a":2}`))
		if !other.Changed || !other.New || other.Say != toolcall.SayWait {
			t.Errorf("a known id with other arguments: %+v", other)
		}
	})
}

// TestAWaiterThatIsGone: nobody decides for it, and a call of an agent without ids is the next one only while the waiter of the one before lives.
func TestAWaiterThatIsGone(t *testing.T) {
	s, clock := clocked(t)
	in := askedBy("s3", "", `{"x":1}`)
	in.PID = 1 << 30 // no process has it
	one := ensure(t, s, in)
	if pgtest.Asked() { // on a server only the lease says whether a waiter is gone
		clock.move(2 * time.Minute)
	}
	if err := verdict(t, s, one.Call, record.Verdict{Status: pool.Approved}); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("an approval for a waiter that is gone gives %v", err)
	}
	in.PID = 0
	two := ensure(t, s, in)
	three := ensure(t, s, in)
	if two.Call.ID == one.Call.ID || three.Call.ID == two.Call.ID {
		t.Errorf("equal calls are %s, %s, %s", one.Call.ID, two.Call.ID, three.Call.ID)
	}
	clock.move(2 * time.Minute)
	if four := ensure(t, s, in); four.Call.ID != two.Call.ID {
		t.Errorf("after the leases ended it is %s, not %s", four.Call.ID, two.Call.ID)
	}
	if err := toolcall.EndSession(t.Context(), s.at(), in, true); err != nil {
		t.Fatal(err)
	}
	want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), two.Call.ID+" pending/none main")
}

// sessionOf is the file of the session: a call, and its result if there is one.
func sessionOf(agent, session string, call pool.Call, result *pool.Result) []*record.Incoming {
	in := &record.Incoming{Format: agent, Conversation: session, Title: "Work", Branches: []record.IncomingBranch{{Name: "main", Leaf: 2}}, Nodes: []record.Node{
		{ID: "u", Message: says("do it")[0]}, {ID: "a", Parent: 1, Message: &Message{Role: pool.Assistant, Calls: []pool.Call{call}}}}}
	if result != nil {
		in.Nodes = append(in.Nodes, record.Node{ID: "r", Parent: 2, Message: &Message{Role: pool.ToolRole, Result: result}})
		in.Branches[0].Leaf = 3
	}
	return []*record.Incoming{in}
}

// TestAnImportTakesAGatedCall: the hook's call and the message's become one, whichever comes first, with and without ids, and undo of the import parts them.
func TestAnImportTakesAGatedCall(t *testing.T) {
	for name, c := range map[string]struct {
		agent, id, tool, args string // of the hook
		end                   string // what happens before the import
		result                *pool.Result
		want                  string
		past                  bool
	}{
		"done":           {"claude-code", "c1", "Bash", `{"command":"ls"}`, "done", &pool.Result{RequestID: "c1", Text: "a"}, "approved/done", false},
		"other words":    {"codex", "c1", "Bash", `{"command":"ls"}`, "done", &pool.Result{RequestID: "c1", Text: "a"}, "approved/done", false},
		"no id":          {"gemini", "", "run", `{"command":"ls"}`, "done", &pool.Result{RequestID: "c1", Text: "a"}, "approved/done", false},
		"it runs":        {"claude-code", "c1", "Bash", `{"command":"ls"}`, "let", nil, "approved/running", false},
		"its end":        {"claude-code", "c1", "Bash", `{"command":"ls"}`, "let", &pool.Result{RequestID: "c1", Text: "a", IsError: true}, "approved/failed", false},
		"it waits":       {"claude-code", "c1", "Bash", `{"command":"ls"}`, "", nil, "pending/none", false},
		"it went on":     {"claude-code", "c1", "Bash", `{"command":"ls"}`, "", &pool.Result{RequestID: "c1", Text: "no", IsError: true}, "withdrawn/none", false},
		"denied":         {"claude-code", "c1", "Bash", `{"command":"ls"}`, "deny", &pool.Result{RequestID: "c1", Text: "hook: not that", IsError: true}, "denied/none", false},
		"denied by text": {"codex", "c1", "Bash", `{"command":"ls"}`, "deny", &pool.Result{RequestID: "c1", Text: "blocked: not that. Command: ls"}, "denied/none", false},
		"ran past it":    {"claude-code", "c1", "Bash", `{"command":"ls"}`, "deny", &pool.Result{RequestID: "c1", Text: "a"}, "left/done", true},
		"while it waits": {"claude-code", "c1", "Bash", `{"command":"ls"}`, "", &pool.Result{RequestID: "c1", Text: "a"}, "left/done", true},
	} {
		for _, first := range []string{"hook", "file", "half"} {
			if first == "file" && c.result != nil && c.id == "" {
				continue
			}
			s := open(t, "")
			call := pool.Call{ID: "c1", Tool: c.tool, Arguments: []byte(c.args)}
			if c.agent == "codex" {
				call.Tool, call.Arguments = "exec_command", []byte(`{"cmd":"ls"}`)
			}
			put := func(result *pool.Result) {
				if _, err := s.Import(t.Context(), sessionOf(c.agent, "s", call, result)); err != nil {
					t.Fatal(err)
				}
			}
			if first == "half" { // the file had the call already, and no result
				put(nil)
			}
			in := &toolcall.Asked{Gate: record.Gate{Agent: c.agent, Session: "s"}, Mode: record.GateHold, CallID: c.id, Tool: c.tool, Arguments: []byte(c.args), Wait: time.Minute}
			said := ensure(t, s, in)
			switch c.end {
			case "done", "let":
				if err := verdict(t, s, said.Call, record.Verdict{Status: pool.Approved}); err != nil {
					t.Fatal(err)
				}
				if _, err := toolcall.Collect(t.Context(), s.at(), in, said.Call, "", ""); err != nil {
					t.Fatal(err)
				}
				if c.end == "done" {
					if _, err := toolcall.Close(t.Context(), s.at(), in, toolcall.Outcome{Text: "a"}); err != nil {
						t.Fatal(err)
					}
				}
			case "deny":
				if err := verdict(t, s, said.Call, record.Verdict{Status: pool.Denied, Reason: "not that"}); err != nil {
					t.Fatal(err)
				}
			}
			put(c.result)
			put(c.result)
			cc := &ChatContext{ID: base.SourceContext(c.agent, "s"), store: s}
			if first == "half" {
				cc.ID = said.Call.Context
			}
			var got *pool.Message
			look, err := cc.Snapshot(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range look.Entries(t.Context(), 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if len(e.Calls) > 0 {
					got = e.Message
				}
			}
			if got == nil || record.CallState(got.Calls[0].Status, got.Calls[0].Execution) != c.want {
				t.Fatalf("%s, %s first: the message has %+v", name, first, got)
			}
			now := findC(t, s, cc.ID.String(), "", "c1")
			if now.Message != got.ID || now.State() != c.want || now.Gate == nil || now.Gate.Past != c.past {
				t.Errorf("%s, %s first: the call is %s, %+v", name, first, now.State(), now.Gate)
			}
			if (c.agent == "codex") != (string(now.Gate.Arguments) == c.args && now.Gate.Tool == "Bash") {
				t.Errorf("%s: beside the message's call it keeps %+v", name, now.Gate)
			}
			if info, err := cc.Info(t.Context()); err != nil || info.Branches != 1 {
				t.Errorf("%s, %s first: %+v, %v", name, first, info, err)
			}
			if first == "hook" && now.Execution != pool.Running {
				if _, err := s.Undo(t.Context(), cc.ID.String(), "", ""); err != nil {
					t.Errorf("%s: undo of the import: %v", name, err)
				}
			}
		}
	}
}
