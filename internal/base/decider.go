package base

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// Nobody approves himself. What an agent's calls depend on is changed by three only: the gate itself (AsGate), whoever has shown to be a person (Store.Decides),
// and at the levels apart and served whoever opens the store. This is asked of each record that a transaction writes, so that no command, method, undo or import
// is a way around it. What only tightens is everybody's.

// Deciding says whether a handle's user may change what a gate guards.
type Deciding int

// The answers.
const (
	ByLevel Deciding = iota // at the levels apart and served, where the agent cannot open the store
	Decides                 // they have shown that they may
	DecidesNot
)

// ErrDecider means that a change needs somebody who may decide about an agent's calls.
var ErrDecider = record.ErrDecider

// undecided is the error of a change of what is guarded.
func unshown(what string) error {
	return Says(ErrDecider, "%s: an agent's calls depend on it, and no agent approves itself. Decide in chatctx calls review, chatctx ui or chatctx chat, which ask for the passphrase once", what)
}

type gateKey struct{}

type decidingKey struct{}

// WithDeciding returns a context for the requests of somebody else than who holds the handle: theirs counts.
func WithDeciding(ctx context.Context, d Deciding) context.Context {
	return context.WithValue(ctx, decidingKey{}, d)
}

func decidingOf(ctx context.Context, s *Store) Deciding {
	if d, is := ctx.Value(decidingKey{}).(Deciding); is {
		return d
	}
	return s.Deciding
}

// AsGate returns a context for what the gate itself writes: a call that the hook brings, a time that ran out, what a session's own file tells of its calls.
func AsGate(ctx context.Context) context.Context { return context.WithValue(ctx, gateKey{}, true) }

// KnowContext tells the transaction of an Update what it has read of a context, so that it need not read it again.
func KnowContext(tx kv.RwTx, id pool.ID, gated string) {
	if c, is := tx.(*changing); is && (gated != "" || !slices.Contains(c.plain, id)) {
		if gated == "" {
			c.plain = append(c.plain, id)
		} else if !slices.Contains(c.gated, id) {
			c.gated = append(c.gated, id)
		}
	}
}

// Decider reports whether a transaction of an Update is of somebody who may decide in a store with a gate.
func Decider(tx kv.RwTx) (bool, error) {
	c, is := tx.(*changing)
	if !is {
		return false, nil
	}
	raw, err := tx.Get(MetaBucket, MetaGate)
	if err != nil || raw == nil {
		return false, err
	}
	return c.may()
}

// MayDecide refuses a change of what is guarded in a store, or in some of its contexts. what begins the error.
func MayDecide(ctx context.Context, tx kv.Tx, s *Store, what string, contexts ...pool.ID) error {
	c := &changing{deciding: decidingOf(ctx, s), RwTx: reading{tx}}
	if len(contexts) == 0 {
		return c.ofStore(what)
	}
	for _, id := range contexts {
		if is, err := c.isGated(id); err != nil || is {
			return refuse(err, c.may, what)
		}
	}
	return nil
}

// reading is a transaction that only reads.
type reading struct{ kv.Tx }

func (reading) Put(string, []byte, []byte) error { return kv.ErrReadOnly }
func (reading) Delete(string, []byte) error      { return kv.ErrReadOnly }

func refuse(err error, may func() (bool, error), what string) error {
	if err != nil {
		return err
	}
	is, err := may()
	if err == nil && !is {
		err = unshown(what)
	}
	return err
}

// may reports whether the transaction's user decides.
func (c *changing) may() (bool, error) {
	if c.deciding != ByLevel {
		return c.deciding == Decides, nil
	}
	g, err := GateIn(c.RwTx)
	return err == nil && g.LevelOf() != record.LevelOwn, err
}

// ofStore refuses a change that concerns all gated contexts, if there is a gate.
func (c *changing) ofStore(what string) error {
	raw, err := c.RwTx.Get(MetaBucket, MetaGate)
	if err == nil && raw == nil {
		return nil
	}
	return refuse(err, c.may, what)
}

// isGated reports whether an agent's hook brings the calls of a context.
func (c *changing) isGated(id pool.ID) (bool, error) {
	if slices.Contains(c.gated, id) {
		return true, nil
	}
	if slices.Contains(c.plain, id) {
		return false, nil
	}
	rec, _, err := GetContext(c.RwTx, id)
	if err != nil || rec == nil {
		return false, err
	}
	KnowContext(c, id, rec.Gated)
	return rec.Gated != "", nil
}

// Put implements kv.RwTx.
func (c *changing) Put(bucket string, key, value []byte) error {
	if err := c.guard(bucket, key, value); err != nil {
		return err
	}
	return c.RwTx.Put(bucket, key, value)
}

// Delete implements kv.RwTx.
func (c *changing) Delete(bucket string, key []byte) error {
	if err := c.guard(bucket, key, nil); err != nil {
		return err
	}
	return c.RwTx.Delete(bucket, key)
}

// guard refuses a change of a record, to value or nil for none.
func (c *changing) guard(bucket string, key, value []byte) error {
	if c.deciding == Decides || c.gate || len(key) < len(pool.ID{}) && bucket != MetaBucket {
		return nil
	}
	switch bucket {
	case CallBucket:
		return c.guardCall(key, value)
	case ContextBucket:
		return c.guardContext(key, value)
	case RuleBucket:
		return c.guardRule(key, value)
	case ToolBucket:
		return c.guardOwned("a tool", key)
	case TokenBucket:
		return c.guardToken(value)
	case MetaBucket:
		return c.guardMeta(key, value)
	}
	return nil
}

// guardCall: a call's state is the gate's and a decider's. A new call that waits is everybody's.
func (c *changing) guardCall(key, value []byte) error {
	is, err := c.isGated(pool.ID(key[:16]))
	if err != nil || !is {
		return err
	}
	old, err := c.RwTx.Get(CallBucket, key)
	if err != nil {
		return err
	}
	was, err := DecodeCall(key, old)
	if err != nil {
		return err
	}
	now, err := DecodeCall(key, value)
	if err != nil {
		return err
	}
	switch {
	case was == nil && now == nil, was == nil && StateOf(now) == record.CallState(pool.Pending, pool.NotRun) && len(now.Decisions) == 0 && now.Gate == nil,
		was != nil && now != nil && StateOf(was) == StateOf(now) && len(was.Decisions) == len(now.Decisions) && was.Expires == now.Expires && bytes.Equal(was.Effective, now.Effective):
		return nil
	}
	return refuse(nil, c.may, "a call of an agent cannot be decided or changed here")
}

// guardContext: the mark of a gate stays, and the context outside the trash.
func (c *changing) guardContext(key, value []byte) error {
	id := pool.ID(key[:16])
	if value != nil && !slices.Contains(c.gated, id) {
		return nil
	}
	was, _, err := GetContext(c.RwTx, id)
	if err != nil || was == nil || was.Gated == "" {
		return err
	}
	if value == nil {
		return refuse(nil, c.may, "a conversation with an agent's calls cannot be erased here")
	}
	now, err := DecodeContext(id, value)
	switch {
	case err != nil:
		return err
	case now.Gated != was.Gated:
		return refuse(nil, c.may, "a conversation stays an agent's")
	case now.Trashed != 0 && was.Trashed == 0:
		return refuse(nil, c.may, "a conversation with an agent's calls cannot be moved to the trash here")
	case guardedSettings(was) != guardedSettings(now):
		return refuse(nil, c.may, "the settings of an agent's calls cannot be changed here")
	case now.Parent != was.Parent:
		return refuse(nil, c.may, "a conversation with an agent's calls cannot get another parent here")
	}
	return nil
}

// guardedSettings are those of a context on which the answers of rules depend.
func guardedSettings(rec *ContextRecord) string {
	return string(rec.Settings["mode"]) + "\x00" + string(rec.Settings["calls.folder"])
}

// guardOwned refuses a change of something that a context, or for the zero id the store, has and its sub-contexts inherit.
func (c *changing) guardOwned(what string, key []byte) error {
	id := pool.ID(key[:16])
	if id == (pool.ID{}) {
		return c.ofStore(what + " of the store cannot be changed here")
	}
	is, err := c.governs(id)
	if err != nil || !is {
		return err
	}
	return refuse(nil, c.may, what+" cannot be changed here")
}

// governs reports whether a context or one below it is gated.
func (c *changing) governs(id pool.ID) (bool, error) {
	is, err := c.isGated(id)
	if err != nil || is {
		return is, err
	}
	if raw, err := c.RwTx.Get(MetaBucket, MetaGate); err != nil || raw == nil {
		return false, err
	}
	parents, gated := map[pool.ID]pool.ID{}, []pool.ID{}
	err = c.RwTx.Scan(ContextBucket, kv.Range{}, func(key, value []byte) error {
		rec, err := DecodeContext(pool.ID(key), value)
		if err != nil {
			return err
		}
		if parents[pool.ID(key)] = rec.Parent; rec.Gated != "" {
			gated = append(gated, pool.ID(key))
		}
		return nil
	})
	for _, below := range gated {
		for up, n := parents[below], 0; up != (pool.ID{}) && n <= len(parents); up, n = parents[up], n+1 {
			if up == id {
				return true, err
			}
		}
	}
	return false, err
}

// guardRule: rules that tighten are everybody's, those that let more pass a decider's.
func (c *changing) guardRule(key, value []byte) error {
	old, err := c.RwTx.Get(RuleBucket, key)
	if err != nil {
		return err
	}
	was, err := ruleOf(key, old)
	if err != nil {
		return err
	}
	now, err := ruleOf(key, value)
	if err != nil || !loosens(was, now) {
		return err
	}
	return c.guardOwned("a rule that lets more pass", key)
}

// ruleOf decodes a rule, nil for none.
func ruleOf(key, raw []byte) (*record.Rule, error) {
	if raw == nil {
		return nil, nil
	}
	r := &record.Rule{}
	if err := stored.Unmarshal(raw, r); err != nil {
		return nil, Damaged("the rule %x: %v", key, err)
	}
	return r, nil
}

// loosens reports whether calls may pass after a change of a rule that did not before: one that allows comes, or one that does not goes. Of the defaults the
// nearest counts, so one that asks may stand before one that denies.
func loosens(was, now *record.Rule) bool {
	switch {
	case now == nil:
		return was != nil && was.Effect != record.Allow
	case was != nil, now.Default:
		return now.Effect != record.Deny
	}
	return now.Effect == record.Allow
}

// guardToken: a token that decides, or that makes others that do, is made by a decider.
func (c *changing) guardToken(value []byte) error {
	t := &Token{}
	if value == nil {
		return nil
	}
	if err := DecodeKept(TokenBucket, value, t); err != nil {
		return err
	}
	if !slices.Contains(t.Scopes, "decide") && !slices.Contains(t.Scopes, "admin") {
		return nil
	}
	return c.ofStore("a token with decide or admin cannot be made here")
}

// guardMeta: the gate's own record is a decider's, once there is one, unless a mode becomes stricter. So are the store's settings on which rules depend.
func (c *changing) guardMeta(key, value []byte) error {
	if !bytes.Equal(key, MetaGate) && !bytes.Equal(key, MetaSettings) {
		return nil
	}
	old, err := c.RwTx.Get(MetaBucket, key)
	if err != nil {
		return err
	}
	if bytes.Equal(key, MetaSettings) {
		was, now := &ContextRecord{}, &ContextRecord{}
		for raw, into := range map[*[]byte]*ContextRecord{&old: was, &value: now} {
			if *raw != nil && err == nil {
				err = DecodeKept(MetaBucket, *raw, &into.Settings)
			}
		}
		if err != nil || guardedSettings(was) == guardedSettings(now) {
			return err
		}
		return c.ofStore("the settings of agents' calls cannot be changed here")
	}
	was, now := &GateState{}, &GateState{}
	if old == nil {
		return nil
	}
	if err = DecodeKept(MetaBucket, old, was); err == nil && value != nil {
		err = DecodeKept(MetaBucket, value, now)
	}
	if err != nil || value != nil && !now.looser(was) {
		return err
	}
	return refuse(nil, c.may, "the gate cannot be changed here")
}

// modes are those of a gate, the strictest last.
var modes = []string{record.GateRecord, record.GateRules, record.GateHold}

// looser reports whether a gate became weaker. An agent's first mode and a first passphrase do not make it so: it was not installed, and nobody could decide.
func (g *GateState) looser(was *GateState) bool {
	for _, agents := range []map[string]string{was.Modes, g.Modes} {
		for agent := range agents {
			if was.Modes[agent] != "" && slices.Index(modes, g.Mode(agent)) < slices.Index(modes, was.Mode(agent)) {
				return true
			}
		}
	}
	return g.LevelOf() != was.LevelOf() || was.Phrase != nil && !(bytes.Equal(g.Phrase, was.Phrase) && bytes.Equal(g.Salt, was.Salt))
}

// MarkGated notes that the store has gated contexts, so that what they inherit is guarded, and the mode in which an agent's first call came, "" for no agent.
func MarkGated(tx kv.RwTx, now pool.Time, agent, mode string) error {
	g, err := GateIn(tx)
	if err != nil || g.Since != 0 && (agent == "" || g.Modes[agent] != "") {
		return err
	}
	if g.Since = cmp.Or(g.Since, max(now, 1)); agent != "" {
		g.Modes = maps.Clone(g.Modes)
		if g.Modes == nil {
			g.Modes = map[string]string{}
		}
		g.Modes[agent] = mode
	}
	return PutRecord(tx, MetaBucket, MetaGate, g)
}
