package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func replayCommands() []*command {
	return []*command{
		{name: "replay", does: "ask a branch's questions again, with other models or another prompt, each on a new branch", scope: onBranch, run: in(doReplay),
			more: "Each model gets one question after the other. A call of the same tool with the same arguments gets the recorded result, in order, each result once, marked as replayed; the first call that differs waits, and ends the replay there: nothing is run and nothing decided. The command first says what it will cost. One undo takes all back. Exit code 8: some failed; 7: all failed; 6: a call waits.",
			json: "branch, model, questions, answered, partial{outcome: number}, waiting, operation, error; a line each model; with --dry-run: dry_run, model, questions, input_tokens, output_tokens, cost_nano, currency", example: `chatctx replay main --models gpt-5,claude-sonnet-4-5 --dry-run
chatctx replay main --start u3 --system "Answer in one line." --yes`},
		{name: "bisect", does: "find the turn at which a branch went wrong", scope: onBranch, run: in(doBisect),
			more: "It halves the turns of the range, or of the branch, until one is found. CMD gets the branch up to a turn as JSON on standard input: context, branch, turn, messages; it ends with 0 for good, 1 for bad, and anything else stops the search. Without CMD each turn is shown and you are asked. No model is asked and nothing is changed.",
			json: "context, branch, turn, message, position, tried[{turn, good, outcome}]; turn, message and position are null where the last turn is good", example: `chatctx bisect --test ./judge
chatctx bisect u2..@`},
	}
}

// replayJSON is the result of a replay with one model.
type replayJSON struct {
	Branch    string `json:"branch,omitempty"` // empty if none was made
	Model     string `json:"model"`
	Questions int    `json:"questions"`
	Answered  int    `json:"answered"` // with a whole answer
	// Partial are the answers that are not whole, by how they ended.
	Partial   map[pool.Outcome]int `json:"partial,omitempty"`
	Waiting   int                  `json:"waiting"`
	Operation string               `json:"operation,omitempty"`
	Error     string               `json:"error,omitempty"`
}

// counts adds the answer to a question, if there is one and no call of it waits.
func (v *replayJSON) counts(out *turn.Outcome) {
	m := out.Reply()
	if m == nil || out.Waiting > 0 || errors.Is(turn.Refusal(m), turn.ErrNothing) {
		return
	}
	outcome := pool.OutcomeOf(m)
	if outcome == pool.Answered {
		v.Answered++
		return
	}
	if v.Partial == nil {
		v.Partial = map[pool.Outcome]int{}
	}
	v.Partial[outcome]++
}

// partial returns how many answers are not whole.
func (v *replayJSON) partial() (n int) {
	for _, c := range v.Partial {
		n += c
	}
	return n
}

// partialText words how these answers ended.
func (v *replayJSON) partialText() string {
	var words []string
	for _, o := range slices.Sorted(maps.Keys(v.Partial)) {
		words = append(words, count(v.Partial[o], "answer")+" "+o.Words())
	}
	return strings.Join(words, ", ")
}

type replayIn struct {
	Branch string `arg:"BRANCH"`
	askFlags
	modelsFlag
	setFlag
	From   record.Ref `flag:"start" old:"from" doc:"begin with the question of the turn of {REF}; else with the first"`
	System *string    `flag:"system" doc:"the system prompt {TEXT}, - for standard input"`
	yesFlag
	dryRunFlag
}

func doReplay(r *run, in *replayIn) error {
	if _, err := r.writer(); err != nil {
		return err
	}
	c, err := r.st.Context(r.ctx, r.contextRef())
	if err != nil {
		return contextHint(err)
	}
	snap, err := c.Snapshot(r.ctx, in.Branch)
	if err != nil {
		return err
	}
	p, err := r.toReplay(snap, in.From)
	if err != nil {
		return err
	}
	var system *string
	if in.System != nil {
		text, err := r.text(*in.System, rawFlag{})
		if err != nil {
			return err
		}
		system = &text
	}
	askers, err := r.askers(&turn.Turn{Context: c, Branch: snap.Info.Name}, in.askFlags, manyFlags{modelsFlag: in.modelsFlag, setFlag: in.setFlag})
	if err != nil {
		return err
	}
	for _, a := range askers {
		if err := r.replayBill(p, a, snap, in.DryRun); err != nil {
			return err
		}
	}
	if in.DryRun {
		return nil
	}
	if err := r.confirm(in.yesFlag, fmt.Sprintf("Ask %s of %s?", count(p.Questions()*len(askers), "question"), count(len(askers), "model")), usagef("replay asks again and costs money")); err != nil {
		return err
	}
	return r.replayAll(p, in.Branch, askers, system)
}

// toReplay reads the questions to ask again.
func (r *run) toReplay(snap *chatctx.Snapshot, ref record.Ref) (*turn.Replay, error) {
	from := 1
	if ref != "" {
		e, err := snap.Place(r.ctx, ref)
		if err != nil {
			return nil, err
		}
		q, err := snap.Place(r.ctx, record.Ref("branch:"+snap.Info.Name+"@u"+strings.TrimLeft(e.Turn, "ua")))
		if err != nil {
			return nil, err
		}
		from = q.Position
	}
	return turn.ReadReplay(r.ctx, snap, from)
}

// replayBill says about what a replay costs: each request has the messages before its question, at their original length, and answers are as long as the
// old ones.
func (r *run) replayBill(p *turn.Replay, a *asker, snap *chatctx.Snapshot, dry bool) error {
	probe := *a.Turn
	probe.Branch = snap.Info.Name
	req, err := probe.Request(r.ctx, pool.NewText(pool.User, "?"))
	if err != nil {
		return talkHint(err)
	}
	if _, _, err := probe.NewClient(r.ctx, req.Provider); err != nil {
		return talkHint(err)
	}
	var input int64
	for _, pos := range p.Positions {
		input += int64(window.Of(req).Forecast.Tokens) * int64(pos) / int64(max(snap.Len(), 1))
	}
	v := struct {
		DryRun    bool        `json:"dry_run"`
		Model     string      `json:"model"`
		Questions int         `json:"questions"`
		Input     int64       `json:"input_tokens"`
		Output    int64       `json:"output_tokens"`
		Cost      *cost.Money `json:"cost_nano"`
		Currency  string      `json:"currency,omitempty"`
	}{dry, req.Model, p.Questions(), input, p.Output, nil, ""}
	price := "cost unknown"
	if b := req.Bill(); b.Price != nil {
		sum := b.Price.Of(cost.Usage{Input: input, Output: p.Output})
		v.Cost, v.Currency = &sum, b.Price.Currency
		price = "about " + sum.Short() + " " + clean(v.Currency)
	}
	line := fmt.Sprintf("%s: %s, about %d tokens in, %d out; %s", clean(req.Model), count(p.Questions(), "question"), input, p.Output, price)
	if !dry {
		r.note("%s", line)
		return nil
	}
	return r.emit(v, func() { r.printf("%s\n", line) })
}

// replayed says what became of a replay of a branch, the made-th of the command that has one of its own.
func (r *run) replayed(v *replayJSON, of string, made int) {
	if v.Branch == "" {
		return
	}
	r.printf("%s: %d of %s answered", clean(v.Branch), v.Answered, count(v.Questions, "question"))
	if v.partial() > 0 {
		r.printf("; %s", v.partialText())
	}
	if v.Waiting > 0 {
		r.printf("; %s that was not made before: it waits", count(v.Waiting, "call"))
	}
	r.printf("\n")
	all := ""
	if made > 1 {
		all = fmt.Sprintf("all %d ", made)
	}
	r.note("compare: %s   undo %swith: %s", r.again("compare "+quote(of)+" "+quote(v.Branch)), all, r.again("undo --branch "+quote(v.Branch)))
}

// replayAll asks one model after the other.
func (r *run) replayAll(p *turn.Replay, of string, askers []*asker, system *string) error {
	var failed error
	var waits waitsError
	done := 0
	var first *chatctx.Batch // all are one command
	made := 0
	for _, a := range askers {
		a.PartOf = first
		outcomes, err := p.Run(r.ctx, a.Turn, system)
		v := replayJSON{Model: plainValue(a.Settings["model"]), Questions: p.Questions()}
		for _, out := range outcomes {
			v.counts(out)
			v.Waiting, v.Operation = out.Waiting, out.Operation
		}
		if a.PartOf != first { // else another program's branch may have the name
			first = cmp.Or(first, a.PartOf)
			if err == nil || v.Answered+v.partial() > 0 || v.Waiting > 0 { // else it is gone again
				v.Branch = a.Branch
				made++
			}
		}
		if v.Waiting > 0 {
			_, w, openErr := r.openOn(a.Context, a.Branch)
			err = errors.Join(err, openErr)
			waits.Join(w.Open)
			waits.goOn = append(waits.goOn, r.goesOn(a.Turn))
		}
		switch {
		case err != nil:
			v.Error = err.Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", a.label, err))
		case v.partial() > 0:
			failed = errors.Join(failed, fmt.Errorf("%s: %w: %s", a.label, pool.ErrNotWhole, v.partialText()))
			if v.Answered > 0 {
				done++
			}
		case v.Answered > 0 || v.Waiting > 0:
			done++
		}
		printErr := r.emit(v, func() { r.replayed(&v, of, made) })
		if printErr != nil || r.ctx.Err() != nil {
			return errors.Join(printErr, err)
		}
	}
	switch {
	case failed != nil && done > 0:
		return contract.Partly(failed, fmt.Sprintf("%d of %d replays came to an end", done, len(askers)))
	case failed != nil:
		return talkHint(failed)
	case waits.All() > 0:
		return &waits
	}
	return nil
}
