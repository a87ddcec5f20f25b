package chatctx

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/pool"
)

// guardedActs are what an agent's calls depend on, as the library does it.
func guardedActs(t *testing.T, s *Store, c *record.Call) map[string]func() error {
	at := &ChatContext{ID: c.Context, store: s}
	ctx := t.Context()
	decide := func(v record.Verdict) func() error {
		return batch1(t, at, func(b *Batch) { b.Decide(c.Ref(), v) })
	}
	settings := map[string]json.RawMessage{"calls.folder": json.RawMessage(`"/"`)}
	return map[string]func() error{
		"approve":         decide(record.Verdict{Status: pool.Approved}),
		"approve as rule": decide(record.Verdict{Status: pool.Approved, Kind: record.ByRule}),
		"deny":            decide(record.Verdict{Status: pool.Denied}),
		"cancel":          decide(record.Verdict{Status: pool.Denied, Kind: record.ByCancel}),
		"expire":          batch1(t, at, func(b *Batch) { b.ExpireCall(c.Ref(), 1) }),
		"allow":           batch1(t, at, func(b *Batch) { b.AddRule(record.Rule{Effect: record.Allow, Tool: "*"}, record.RuleScope{}) }),
		"allow, store":    func() error { return second(s.AddRule(ctx, record.Rule{Effect: record.Allow, Tool: "*"})) },
		"a tool":          batch1(t, at, func(b *Batch) { b.PutTool(record.Tool{Name: "Bash", Command: []string{"true"}}) }),
		"a tool, store":   func() error { return second(s.PutTool(ctx, record.Tool{Name: "Bash", Command: []string{"true"}})) },
		"settings":        batch1(t, at, func(b *Batch) { b.SetContextSettings(settings) }),
		"settings, store": func() error { return second(s.SetSettings(ctx, settings)) },
		"trash":           func() error { return second(s.Trash(ctx, c.Context.String())) },
		"purge":           func() error { return second(s.Maintenance().PurgeContext(ctx, c.Context.String(), PurgeOptions{})) },
		"a token, decide": func() error { return second(grant.Add(ctx, base.Of(s), "d", []string{"decide"})) },
		"a token, admin":  func() error { return second(grant.Add(ctx, base.Of(s), "a", []string{"admin"})) },
		"a weaker mode": func() error {
			return base.ChangeGate(ctx, s.at(), func(g *base.GateState) error { g.Modes["claude-code"] = record.GateRecord; return nil })
		},
		"another level": func() error {
			return base.ChangeGate(ctx, s.at(), func(g *base.GateState) error { g.Level = record.LevelApart; return nil })
		},
		"another password": func() error { return grant.SetPhrase(ctx, s.at(), []byte("of the agent")) },
	}
}

// TestNobodyApprovesHimself: without the passphrase the library refuses whatever an agent's calls depend on, and the call stays as it was.
func TestNobodyApprovesHimself(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		s.at().Judge = byName{}
		c := ensure(t, s, askedBy("s1", "toolu_1", `{"command":"ls"}`)).Call
		noErr(t, grant.SetPhrase(t.Context(), s.at(), []byte("correct horse")))
		for name, act := range guardedActs(t, s, c) {
			if err := act(); !errors.Is(err, ErrDecider) {
				t.Errorf("%s: %v", name, err)
			}
		}
		now, err := s.Call(t.Context(), c.Context.String(), "", c.Ref())
		if err != nil || now.State() != "pending/none" || now.Expires != 0 {
			t.Errorf("the call is now %+v, %v", now, err)
		}
		for _, word := range []string{"", "correct hors", "correct horse "} {
			if _, err := grant.Prove(t.Context(), s.at(), []byte(word)); !errors.Is(err, ErrDecider) {
				t.Errorf("%q: %v", word, err)
			}
		}
		ctx, err := grant.Prove(t.Context(), s.at(), []byte("correct horse"))
		noErr(t, err)
		b := s.Begin(c.Context.String(), "")
		b.Decide(c.Ref(), record.Verdict{Status: pool.Approved})
		_, err = b.Commit(ctx)
		noErr(t, err)
	})
}
