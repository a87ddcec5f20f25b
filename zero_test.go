package chatctx_test

import (
	"context"
	"io"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/machine"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

// functionsToCall are the functions of the public packages and of the rooms that take a store or a conversation.
func functionsToCall() map[string]any {
	return map[string]any{
		"approval.Offers": approval.Offers, "approval.Watch": approval.Watch, "approval.Discover": approval.Discover,
		"compare.Of": compare.Of, "compare.Text": compare.Text, "compare.Words": compare.Words,
		"cost.Parse": cost.Parse, "cost.Spent": cost.Spent,
		"window.Compact": window.Compact, "window.CompactStretch": window.CompactStretch, "window.PlanCompaction": window.PlanCompaction, "window.PlanFor": window.PlanFor,
		"window.PlanPruning": window.PlanPruning, "window.SetPruned": window.SetPruned, "window.Resume": window.Resume, "window.Standard": window.Standard,
		"window.SearchSessions": window.SearchSessions, "window.ListSessions": window.ListSessions, "window.ReadArtifact": window.ReadArtifact,
		"exchange.Export": exchange.Export, "exchange.Import": exchange.Import, "exchange.Look": exchange.Look, "exchange.Read": exchange.Read,
		"settings.Check": settings.Check, "settings.Parse": settings.Parse, "settings.InForce": settings.InForce, "settings.Hold": settings.Hold,
		"subtask.Abandon": subtask.Abandon, "subtask.Answer": subtask.Answer, "subtask.Digest": subtask.Digest, "subtask.List": subtask.List, "subtask.Return": subtask.Return,
		"subtask.Start": subtask.Start, "subtask.ByModel": subtask.ByModel,
		"tokens.NewCounter": tokens.NewCounter, "tokens.ForModel": tokens.ForModel, "tokens.Preview": tokens.Preview,
		"turn.Ask": turn.Ask, "turn.ReadReplay": turn.ReadReplay, "turn.NamesOf": turn.NamesOf, "turn.Question": turn.Question,
	}
}

// TestZeroArguments calls the library with zero values: every method of what a store gives, and the functions of the other packages. Whatever a caller left out, it
// gets an error or an answer, and no panic.
func TestZeroArguments(t *testing.T) {
	ctx := context.Background()
	for name, f := range functionsToCall() {
		t.Run(name, func(t *testing.T) {
			s, c := conversation(t)
			z := zeros{t: t, ctx: ctx, have: given(t, s, c)}
			z.call(name, reflect.ValueOf(f))
		})
	}
	receivers := map[string]func(s *chatctx.Store, c *chatctx.ChatContext) any{
		"Store":       func(s *chatctx.Store, c *chatctx.ChatContext) any { return s },
		"ChatContext": func(s *chatctx.Store, c *chatctx.ChatContext) any { return c },
		"Batch":       func(s *chatctx.Store, c *chatctx.ChatContext) any { return c.Begin("") },
		"Maintenance": func(s *chatctx.Store, c *chatctx.ChatContext) any { return s.Maintenance() },
		"Titles":      func(s *chatctx.Store, c *chatctx.ChatContext) any { return journal.NewTitles(base.Of(s)) },
		"ImportRun": func(s *chatctx.Store, c *chatctx.ChatContext) any {
			return intake.NewImportRun(base.Of(s), care.RemoveContext)
		},
		"Snapshot": func(s *chatctx.Store, c *chatctx.ChatContext) any {
			snap, err := c.Snapshot(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			return snap
		},
		"Reply": func(s *chatctx.Store, c *chatctx.ChatContext) any {
			begun, err := c.BeginReply(ctx, "", chatctx.AppendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return begun.Reply
		},
		"Draft": func(s *chatctx.Store, c *chatctx.ChatContext) any {
			d, err := c.Draft(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		"Turn":     func(s *chatctx.Store, c *chatctx.ChatContext) any { return &turn.Turn{Context: c} },
		"Executor": func(s *chatctx.Store, c *chatctx.ChatContext) any { return &approval.Executor{Context: c} },
		"Runner":   func(s *chatctx.Store, c *chatctx.ChatContext) any { return &subtask.Runner{} },
		"Pipeline": func(s *chatctx.Store, c *chatctx.ChatContext) any { return &window.Pipeline{} },
		"Window":   func(s *chatctx.Store, c *chatctx.ChatContext) any { return &window.Window{} },
		"Counter":  func(s *chatctx.Store, c *chatctx.ChatContext) any { return &tokens.Counter{} },
		"Model":    func(s *chatctx.Store, c *chatctx.ChatContext) any { return tokens.Model{} },
		"Prices":   func(s *chatctx.Store, c *chatctx.ChatContext) any { return &cost.Prices{} },
		"Money":    func(s *chatctx.Store, c *chatctx.ChatContext) any { return cost.Money(0) },
		"Message":  func(s *chatctx.Store, c *chatctx.ChatContext) any { return &pool.Message{} },
		"Branch":   func(s *chatctx.Store, c *chatctx.ChatContext) any { return &branch.Branch{} },
		"Follower": func(s *chatctx.Store, c *chatctx.ChatContext) any { return &machine.Follower{} },
		"Rules":    func(s *chatctx.Store, c *chatctx.ChatContext) any { return approval.Rules{} },
		"Once":     func(s *chatctx.Store, c *chatctx.ChatContext) any { return &window.Once{} },
	}
	for name, receiver := range receivers {
		_, c := conversation(t)
		of := reflect.TypeOf(receiver(c.Store(), c))
		for i := range of.NumMethod() {
			method := of.Method(i).Name
			t.Run(name+"."+method, func(t *testing.T) {
				s, c := conversation(t)
				z := zeros{t: t, ctx: ctx, have: given(t, s, c)}
				z.call(name+"."+method, reflect.ValueOf(receiver(s, c)).Method(i))
			})
		}
	}
}

// conversation is a store in memory with a short conversation.
func conversation(t *testing.T) (*chatctx.Store, *chatctx.ChatContext) {
	s, err := chatctx.OpenMemory(chatctx.Options{Judge: approval.Rules{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := s.New(context.Background(), record.NewContext{})
	if err == nil {
		_, err = c.Append(context.Background(), "", pool.NewText(pool.User, "A name for a boat?"), pool.NewText(pool.Assistant, "Petrel."))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// given are the arguments that have no useful zero value.
func given(t *testing.T, s *chatctx.Store, c *chatctx.ChatContext) []any {
	snap, err := c.Snapshot(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := snap.Find(context.Background(), "@")
	if err != nil {
		t.Fatal(err)
	}
	return []any{s, c, snap, e, &chatctx.DraftMessage{Entry: chatctx.Entry{Message: &pool.Message{}}}, tokens.NewCounter("", nil, nil)}
}

// zeros calls functions with zero values, except that they get its context, and a value of have whose type fits.
type zeros struct {
	t    *testing.T
	ctx  context.Context
	have []any
}

func (z *zeros) call(name string, f reflect.Value) {
	defer func() {
		if r := recover(); r != nil {
			z.t.Errorf("%s: %v\n%s", name, r, brief(string(debug.Stack())))
		}
	}()
	of := f.Type()
	in := make([]reflect.Value, of.NumIn())
	for i := range in {
		in[i] = z.value(of.In(i))
	}
	call := f.Call
	if of.IsVariadic() {
		call = f.CallSlice
	}
	for _, v := range call(in) {
		z.consume(v)
	}
}

func (z *zeros) value(of reflect.Type) reflect.Value {
	if of == reflect.TypeFor[context.Context]() {
		ctx, cancel := context.WithCancel(z.ctx)
		z.t.Cleanup(cancel)
		return reflect.ValueOf(ctx)
	}
	if of == reflect.TypeFor[io.Writer]() {
		return reflect.ValueOf(io.Discard)
	}
	for _, h := range z.have {
		if reflect.TypeOf(h) == of {
			return reflect.ValueOf(h)
		}
	}
	if of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
		return reflect.New(of.Elem())
	}
	return reflect.Zero(of)
}

// consume ranges over a sequence, since one does its work only then.
func (z *zeros) consume(v reflect.Value) {
	if v.Kind() == reflect.Func && v.Type().NumIn() == 1 && v.Type().In(0).Kind() == reflect.Func {
		if v.IsNil() {
			return
		}
		yield := v.Type().In(0)
		v.Call([]reflect.Value{reflect.MakeFunc(yield, func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(true)} })})
	}
}

func brief(stack string) string {
	var out []string
	for line := range strings.Lines(stack) {
		if strings.Contains(line, "chatctx/") && strings.HasPrefix(line, "\t") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "\n")
}
