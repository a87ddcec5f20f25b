package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// Hook is one run of an agent's hook: it reads one event, and answers it with one JSON object.
type Hook struct {
	Agent *Agent
	Event string        // its name, for agents that do not send it
	Wait  time.Duration // for a decision; then what Agent says happens
	Open  func(context.Context) (*base.Store, error)
	In    io.Reader
	Out   io.Writer
	Err   io.Writer
	Env   func(string) string
	Exit  func(code int) // ends the process when all else hangs

	once   sync.Once
	moment Moment
}

const (
	// Spare is how much longer than the wait the agent's own limit for a hook is.
	Spare = 30 * time.Second
	// overtime is how long a hook may take beyond its wait before it denies without having heard from the store.
	overtime = 10 * time.Second
	tick     = 200 * time.Millisecond
)

// Run answers the event and returns the exit code: 0 with an answer, or 2, which every agent takes for a denial.
func (h *Hook) Run(ctx context.Context) int {
	last := time.AfterFunc(h.Wait+overtime, func() { h.Exit(h.say(&answer{Say: toolcall.SayDeny, Reason: "the gate did not answer in time"})) })
	defer last.Stop()
	raw, err := io.ReadAll(io.LimitReader(h.In, maxEvent+1))
	if err == nil && len(raw) > maxEvent {
		err = fmt.Errorf("%w: more than %d bytes", errEvent, maxEvent)
	}
	if err != nil {
		return h.fail(err)
	}
	e, moment, err := h.Agent.readEvent(raw, h.Event)
	if h.moment = moment; err != nil {
		return h.fail(err)
	}
	s, err := h.Open(ctx)
	if err != nil {
		return h.fail(err)
	}
	if moment != Before {
		if err := h.note(ctx, s, e); err != nil {
			fmt.Fprintln(h.Err, "chatctx gate:", err)
		}
		return h.print(nothing)
	}
	a, err := h.before(ctx, s, e)
	if err != nil {
		return h.fail(err)
	}
	return h.say(a)
}

// fail denies a call that could not be stored. What is known to be another event is let pass.
func (h *Hook) fail(err error) int {
	fmt.Fprintln(h.Err, "chatctx gate:", err)
	switch h.moment {
	case "":
		return 2
	case Before:
		return h.say(&answer{Say: toolcall.SayDeny, Reason: "the gate could not answer: " + err.Error()})
	}
	return h.print(nothing)
}

func (h *Hook) say(a *answer) int { return h.print(h.Agent.answer(a)) }

// print writes one answer; of several, the first.
func (h *Hook) print(v any) int {
	code := 0
	h.once.Do(func() {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = h.Out.Write(append(b, '\n'))
		}
		if err != nil {
			code = 2
		}
	})
	return code
}

// before stores a call and waits for what becomes of it.
func (h *Hook) before(ctx context.Context, s *base.Store, e *event) (*answer, error) {
	state, err := base.ReadGate(ctx, s)
	if err != nil {
		return nil, err
	}
	in := e.asked(h.Agent)
	in.Mode, in.Level, in.Wait, in.AgentPID = state.Mode(h.Agent.Name), state.LevelOf(), h.Wait, agentPID()
	until := time.Now().Add(h.Wait)
	said, err := toolcall.Ensure(ctx, s, in)
	for err == nil && said.Say == toolcall.SayWait {
		said, err = h.wait(ctx, s, in, e, said, until)
	}
	if err != nil {
		return nil, err
	}
	a := &answer{Say: said.Say, Reason: said.Reason}
	switch {
	case said.Say == toolcall.SayAllow && said.Call.Effective != nil:
		a.Arguments = said.Call.RunArguments()
	case said.Say == toolcall.SayLeft && said.Reason == askReason:
		a.Say = sayAsk
	}
	return a, nil
}

// askReason is why a call that nobody decided in time is left to the agent.
const askReason = "nobody has decided in time: the agent asks"

// wait looks once more at a call that waits, a moment later.
func (h *Hook) wait(ctx context.Context, s *base.Store, in *toolcall.Asked, e *event, said *toolcall.Said, until time.Time) (*toolcall.Said, error) {
	c := said.Call
	left := time.Until(until)
	if left <= 0 {
		if h.asksItself(e) {
			return toolcall.Collect(ctx, s, in, c, toolcall.EndLeave, askReason)
		}
		return toolcall.Collect(ctx, s, in, c, toolcall.EndDeny, fmt.Sprintf("not decided in %d s", int(h.Wait.Seconds())))
	}
	select {
	case <-time.After(min(tick, left)):
	case <-ctx.Done():
		_, err := toolcall.Collect(context.WithoutCancel(ctx), s, in, c, toolcall.EndIsGone, "the hook was ended")
		return nil, errors.Join(ctx.Err(), err)
	}
	if gone(in.AgentPID) {
		return toolcall.Collect(ctx, s, in, c, toolcall.EndIsGone, "the agent is gone")
	}
	now, err := toolcall.ReadCall(ctx, s, c.Context.String(), "", c.Ref())
	if err != nil {
		return nil, err
	}
	if now.Status == pool.Pending {
		if r, err := toolcall.Judge(ctx, s, now); err != nil || r.Effect == record.Ask {
			return said, err
		}
	}
	return toolcall.Collect(ctx, s, in, c, toolcall.EndNot, "")
}

// asksItself reports whether the agent is known to put a question to the person at its terminal now.
func (h *Hook) asksItself(e *event) bool {
	return h.Env("CLAUDE_CODE_SESSION_ATTENDED") == "1" && slices.Contains(h.Agent.Closed, e.Mode)
}

// note records what an event after a call, or about the session, says.
func (h *Hook) note(ctx context.Context, s *base.Store, e *event) error {
	in := e.asked(h.Agent)
	in.Mode = record.GateHold
	state, err := base.ReadGate(ctx, s)
	if err != nil {
		return err
	}
	in.Level = state.LevelOf()
	switch h.moment {
	case After, Failed, Refused:
		return h.close(ctx, s, in, e)
	case Batch:
		for i := range e.Calls {
			one := *e
			one.Tool, one.Input, one.ID, one.Response = e.Calls[i].Tool, e.Calls[i].Input, e.Calls[i].ID, e.Calls[i].Response
			of := one.asked(h.Agent)
			of.Mode, of.Level = in.Mode, in.Level
			if err := h.close(ctx, s, of, &one); err != nil {
				return err
			}
		}
		return nil
	}
	return toolcall.EndSession(ctx, s, in, h.moment == Ended)
}

func (h *Hook) close(ctx context.Context, s *base.Store, in *toolcall.Asked, e *event) error {
	if in.Tool == "" {
		return nil
	}
	_, err := toolcall.Close(ctx, s, in, e.outcome(h.moment))
	return err
}
