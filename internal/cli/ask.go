package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// maxAsked bounds how many answers one command asks for, since each is a request that costs money.
const maxAsked = 32

// manyFlags are the flags to ask several models, or one several times.
type manyFlags struct {
	modelsFlag
	N *int `flag:"times" old:"n" doc:"ask each model {N} times"`
	setFlag
}

type modelsFlag struct {
	Models string `flag:"models" doc:"ask all of these {MODELS}, separated by commas, at once, each on a new branch"`
}

type setFlag struct {
	Set []string `flag:"set" doc:"a setting for one of the models: {MODEL:KEY=VALUE}; may be given again"`
}

func (f *modelsFlag) several() bool { return f.Models != "" }

// many reports whether the command line asks for answers on branches of their own: of several models, or several answers of one.
func (r *run) many(one askFlags, m manyFlags) bool {
	return r.name == "ask" || m.Models != "" || m.N != nil || len(m.Set) > 0 || len(one.Model) > 1
}

func doAsk(r *run, in *askIn) error {
	if in.none() {
		if _, err := r.writer(); err != nil {
			return err
		}
		return r.askAgain(in.askFlags, in.manyFlags)
	}
	return doSend(r, &sendIn{askIn: *in})
}

// askAgain lets each model answer the last user message of the branch again.
func (r *run) askAgain(one askFlags, many manyFlags) error {
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	question, _, err := r.question(c, name)
	if err != nil {
		return err
	}
	return r.askMany(r.turn(c, name), one, many, nil, record.RefTo(question.ID))
}

// asker is one of those that answer: a turn with settings of its own, on the branch for its answer.
type asker struct {
	*turn.Turn
	label string
}

func turnsOf(askers []*asker) []*turn.Turn {
	turns := make([]*turn.Turn, len(askers))
	for i, a := range askers {
		turns[i] = a.Turn
	}
	return turns
}

// askMany asks several models at once. The message, if there is one, goes on the turn's branch; each answer goes on a new branch from there, or from the
// message at. The active branch stays.
func (r *run) askMany(t *turn.Turn, one askFlags, many manyFlags, m *chatctx.Message, at record.Ref) error {
	askers, err := r.askers(t, one, many)
	if err != nil {
		return err
	}
	turns, names, labels := turnsOf(askers), make([]string, len(askers)), map[*turn.Turn]string{}
	for i, a := range askers {
		names[i], labels[a.Turn] = clean(a.label), a.label
	}
	r.compactFirst(t)
	live := r.watching(turns, labels)
	answers, err := turn.Ask(r.ctx, t.Branch, m, at, turns, func() { r.note("asking %s", strings.Join(names, ", ")) }, func(a *turn.Answer) {
		live.ended(a, func() {
			if a.Err == nil {
				r.answeredApart(a.Turn, a.Outcome)
				a.Err = refusal(a.Outcome.Reply())
			}
			if a.Err == nil || r.ctx.Err() != nil { // askedAll says what is kept of a stopped answer
				return
			}
			a.Err = fmt.Errorf("%s: %w", labels[a.Turn], a.Err)
			if left := r.leftOf(a); left != "" {
				r.note("%s; %s", clean(a.Err.Error()), left)
			} else {
				r.note("%s", clean(a.Err.Error()))
			}
		})
	})
	if err != nil {
		return r.notTaken(err)
	}
	return r.askedAll(answers)
}

// leftOf says where that is which came of an answer that failed, "" if nothing came.
func (r *run) leftOf(a *turn.Answer) string {
	if a.Outcome == nil || a.Outcome.Reply() == nil || a.Stopped {
		return ""
	}
	switch outcome := pool.OutcomeOf(a.Outcome.Reply()); {
	case outcome != pool.Answered && outcome != pool.BrokenOff: // it is on its branch
		return ""
	case a.Kept():
		return "what came is on " + quote(a.Turn.Branch) + ": " + r.goesOn(a.Turn)
	}
	return "what came is on no branch, until gc: " + r.again("show "+short(a.Outcome.Reply().ID))
}

// models returns the models that the command line names, or one empty name, for the branch's own, if it names none.
func (r *run) models(one askFlags, many manyFlags) ([]string, error) {
	named := one.Model
	if many.Models != "" {
		if len(named) > 0 {
			return nil, usagef("%s takes --model or --models, not both", r.name)
		}
		named = strings.Split(many.Models, ",")
	}
	var models []string
	for _, m := range named {
		m = strings.TrimSpace(m)
		if m == "" || slices.Contains(models, m) {
			return nil, &usageError{fmt.Sprintf("%q: a model is empty or stands there twice", strings.Join(named, ",")), "one model several times: -n"}
		}
		models = append(models, m)
	}
	if len(models) == 0 {
		models = []string{""}
	}
	return models, nil
}

// askers returns whom to ask, with free names for their branches.
func (r *run) askers(t *turn.Turn, one askFlags, many manyFlags) ([]*asker, error) {
	times := 1
	if many.N != nil {
		times = *many.N
	}
	models, err := r.models(one, many)
	if err != nil {
		return nil, err
	}
	if models[0] == "" && r.name != "replay" { // replay is called after the branch, whose questions it asks
		if models[0], err = r.ownModel(t); err != nil {
			return nil, err
		}
	}
	if times < 1 || times*len(models) > maxAsked {
		return nil, usagef("-n takes a number of 1 or more, and one command gets at most %d answers", maxAsked)
	}
	set, err := settingsOf(models, many.Set)
	if err != nil {
		return nil, err
	}
	taken, err := turn.NamesOf(r.ctx, t.Context)
	if err != nil {
		return nil, err
	}
	var all []*asker
	for _, model := range models {
		for range times {
			own := *t
			own.Settings = r.asked()
			own.Branch = taken.Free(t.Branch, model)
			a := &asker{Turn: &own, label: model}
			if model == "" {
				a.label = own.Branch
			} else {
				own.Settings["model"] = jsontree.Quote(model)
			}
			for key, value := range set[model] {
				own.Settings[key] = value
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// ownModel returns the model that the branch asks, "" if none is set.
func (r *run) ownModel(t *turn.Turn) (string, error) {
	set, err := t.Context.Effective(r.ctx, t.Branch)
	if err != nil {
		return "", err
	}
	return plainValue(settings.WithEnv(set, os.Getenv)["model"]), nil
}

// settingsOf parses the MODEL:KEY=VALUE of --set, by model.
func settingsOf(models, given []string) (map[string]map[string]json.RawMessage, error) {
	out := map[string]map[string]json.RawMessage{}
	for _, s := range given {
		model := ""
		for _, m := range models {
			if m != "" && strings.HasPrefix(s, m+":") && len(m) > len(model) {
				model = m
			}
		}
		key, value, ok := strings.Cut(strings.TrimPrefix(s, model+":"), "=")
		if model == "" || !ok || key == "" || value == "" {
			return nil, &usageError{fmt.Sprintf("--set %q: it is MODEL:KEY=VALUE, with a model that is asked", s), "chatctx ask TEXT --models gpt-5,gpt-4o --set gpt-4o:temperature=0"}
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			raw = jsontree.Quote(value)
		}
		if out[model] == nil {
			out[model] = map[string]json.RawMessage{}
		}
		out[model][key] = raw
	}
	return out, nil
}

// askedAll reports all results.
func (r *run) askedAll(answers []*turn.Answer) error {
	var failed error
	var done, kept, again []string
	var waits waitsError
	for _, a := range answers {
		if a.Stopped {
			kept = append(kept, quote(a.Turn.Branch))
		}
		if a.Err != nil {
			failed = errors.Join(failed, a.Err)
			again = append(again, modelOf(a.Turn))
			continue // the refusal is on its branch, but is no answer
		}
		done = append(done, quote(a.Turn.Branch))
		if a.Outcome.Waiting > 0 {
			calls, w, err := r.openAfter(a.Outcome)
			if err != nil {
				return err
			}
			r.tellWaiting(calls)
			waits.Join(w.Open)
			waits.goOn = append(waits.goOn, r.goesOn(a.Turn))
		}
	}
	if len(done) > 1 {
		r.note("compare them: %s   take one: %s", r.again("compare "+strings.Join(done, " ")), r.again("take "+done[0]))
	}
	switch {
	case failed != nil && r.ctx.Err() != nil:
		return contract.Partly(r.ctx.Err(), keptText(done, kept)+"; "+r.askAgainHint(again))
	case failed != nil && len(done) > 0:
		return withHint(talkHint(contract.Partly(failed, fmt.Sprintf("%d of %d answers are there", len(done), len(answers)))), r.askAgainHint(again))
	case failed != nil:
		return withHint(talkHint(failed), "the message is on the branch; "+r.askAgainHint(again))
	case waits.All() > 0:
		return &waits
	}
	return nil
}

// goesOn returns the command that goes on with an answer whose calls wait: with the model that gave it.
func (r *run) goesOn(t *turn.Turn) string {
	rest := "send --continue"
	if model := modelOf(t); model != "" {
		rest += " --model " + quote(model)
	}
	return r.toAsk(rest, t.Context, t.Branch)
}

// keptText says what a stopped ask leaves: the names of the branches with answers, complete and unfinished.
func keptText(done, kept []string) string {
	var parts []string
	if len(done) > 0 {
		parts = append(parts, "there are the answers on "+strings.Join(done, ", "))
	}
	if len(kept) > 0 {
		parts = append(parts, "unfinished on "+strings.Join(kept, ", "))
	}
	if len(parts) == 0 {
		return "no answer is kept"
	}
	return strings.Join(parts, "; ")
}

// modelOf returns the model that a turn was told to ask, "" for the branch's own.
func modelOf(t *turn.Turn) (name string) {
	_ = json.Unmarshal(t.Settings["model"], &name)
	return name
}

// askAgainHint returns the command that asks those models again that gave no answer.
func (r *run) askAgainHint(models []string) string {
	slices.Sort(models)
	models = slices.DeleteFunc(slices.Compact(models), func(m string) bool { return m == "" })
	command := "ask"
	if len(models) > 0 {
		command += " --models " + quote(strings.Join(models, ","))
	}
	return "to ask again: " + r.again(command)
}
