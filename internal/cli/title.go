package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/journal"
)

func titleCommand() *command {
	return &command{name: "title", does: "let a model give titles to conversations that have none of their own", scope: onContext, run: in(doTitle),
		more: "The model reads the beginning of each. It is the one that --model names, else that of the setting compact.model, else the conversation's own. The command first says what it will cost. It never replaces a title that a person or a file gave; rename does. One undo takes all titles of one command back. Exit code 8: some failed; 7: all failed.",
		json: "operation, context, title, was, model; a line each; with --dry-run: dry_run, context, title, model, input_tokens, output_tokens, cost_nano, currency", example: "chatctx title --auto --all --dry-run"}
}

// untitled is a conversation that will get a title.
type untitled struct {
	info *record.ContextInfo
	*turn.Titling
}

type titleIn struct {
	Contexts []string `arg:"[CTX…]"`
	whomFlags
	Auto bool `flag:"auto" doc:"let a model find the title"`
	All  bool `flag:"all" doc:"all conversations without a title, in place of CTX"`
	yesFlag
	dryRunFlag
}

func doTitle(r *run, in *titleIn) error {
	switch {
	case !in.Auto:
		return &usageError{"title takes --auto: a model finds the title", "to give one yourself: chatctx rename CTX TITLE"}
	case in.All && (len(in.Contexts) > 0 || r.contextRef() != ""):
		return usagef("title takes --all or the CTX, not both")
	case len(in.Contexts) > 0 && r.contextRef() != "":
		return usagef("title takes the CTX as an argument or as --context, not both")
	}
	if _, err := r.changer(in.dryRunFlag); err != nil {
		return err
	}
	all, err := r.toTitle(in)
	if err != nil {
		return err
	}
	if err := r.titleBill(all, in.DryRun); err != nil || in.DryRun {
		return err
	}
	if err := r.confirm(in.yesFlag, "Ask for "+count(len(all), "title")+"?", usagef("title asks a model and costs money")); err != nil {
		return err
	}
	return r.entitle(all)
}

// toTitle makes the questions, the oldest conversation first, which keeps their order in ls.
func (r *run) toTitle(in *titleIn) ([]*untitled, error) {
	var infos []*record.ContextInfo
	names := in.Contexts
	if len(names) == 0 {
		names = []string{r.contextRef()}
	}
	if in.All {
		names = nil
		for info, err := range r.st.Contexts(r.ctx, record.ListOptions{Untitled: true}) {
			if err != nil {
				return nil, err
			}
			infos = append([]*record.ContextInfo{info}, infos...)
		}
	}
	for _, name := range names {
		c, err := r.st.Context(r.ctx, name)
		if err != nil {
			return nil, contextHint(err)
		}
		info, err := c.Info(r.ctx)
		if err != nil {
			return nil, err
		}
		if info.Title != "" && !info.Derived {
			return nil, &hinted{base.Says(chatctx.ErrConflict, "%s has its title already", titled(info.Title, info.ID)), r.onStore("rename " + short(info.ID) + " TITLE")}
		}
		infos = append(infos, info)
	}
	var all []*untitled
	for _, info := range infos {
		c, err := r.st.Context(r.ctx, info.ID.String())
		if err != nil {
			return nil, err
		}
		t := &turn.Turn{Context: c, Branch: info.Active, Settings: r.asked()}
		question, err := t.Titling(r.ctx)
		if errors.Is(err, chatctx.ErrEmpty) && in.All {
			continue
		}
		if err != nil {
			return nil, talkHint(err)
		}
		all = append(all, &untitled{info, question})
	}
	if len(all) == 0 {
		return nil, base.Says(chatctx.ErrNotFound, "every conversation with words in it has a title")
	}
	return all, nil
}

// titleJSON is a title that would be asked for.
type titleJSON struct {
	DryRun   bool        `json:"dry_run"`
	Context  chatctx.ID  `json:"context"`
	Title    string      `json:"title"`
	Model    string      `json:"model"`
	Input    int         `json:"input_tokens"`
	Output   int         `json:"output_tokens"`
	Cost     *cost.Money `json:"cost_nano"`
	Currency string      `json:"currency,omitempty"`
}

// titleBill says what the titles cost at most, by model.
func (r *run) titleBill(all []*untitled, dryRun bool) error {
	var models []string
	sums := map[string]*titleJSON{}
	numbers := map[string]int{}
	for _, u := range all {
		v := titleJSON{dryRun, u.info.ID, u.info.Title, u.Model, u.Tokens, u.Most, nil, ""}
		if u.Price != nil {
			sum := u.Price.Of(cost.Usage{Input: int64(u.Tokens), Output: int64(u.Most)})
			v.Cost, v.Currency = &sum, u.Price.Currency
		}
		if dryRun && r.json() {
			if err := r.printJSON(v); err != nil {
				return err
			}
		}
		sum := sums[u.Model]
		if numbers[u.Model]++; sum == nil {
			models, sums[u.Model] = append(models, u.Model), &v
			continue
		}
		sum.Input, sum.Output = sum.Input+v.Input, sum.Output+v.Output
		if sum.Cost != nil && v.Cost != nil {
			*sum.Cost += *v.Cost
		}
	}
	if dryRun && r.json() {
		return nil
	}
	for _, model := range models {
		v := sums[model]
		price := "cost unknown"
		if v.Cost != nil {
			price = "at most " + v.Cost.Short() + " " + clean(v.Currency)
		}
		line := fmt.Sprintf("%s: %s, about %d tokens in, at most %d out; %s", clean(model), count(numbers[model], "title"), v.Input, v.Output, price)
		if dryRun {
			r.printf("%s\n", line)
		} else {
			r.note("%s", line)
		}
	}
	return nil
}

// entitle asks for the titles one after the other, and stores each as it comes.
func (r *run) entitle(all []*untitled) error {
	titles := journal.NewTitles(base.Of(r.st))
	var failed error
	done, last := 0, ""
	for _, u := range all {
		c, err := r.entitleOne(titles, u)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", titled(u.info.Title, u.info.ID), err))
			if r.ctx.Err() != nil {
				break
			}
			continue
		}
		done, last = done+1, c.Operation
		err = r.emit(struct {
			namedContext
			Was   string `json:"was"`
			Model string `json:"model"`
		}{namedContext{Where: whereOf(c), Title: c.Title}, u.info.Title, u.Model}, func() { r.printf("%s  %s\n", short(c.Context), clean(c.Title)) })
		if err != nil {
			return err
		}
	}
	if last != "" {
		r.note("undo with: %s", r.onStore("undo "+last))
	}
	if failed != nil && done > 0 {
		return contract.Partly(failed, fmt.Sprintf("%d of %s", done, count(len(all), "title"))+map[bool]string{true: " is", false: " are"}[done == 1]+" there")
	}
	return talkHint(failed)
}

// entitleOne asks for a title and stores it, even after an interrupt, since it is paid for.
func (r *run) entitleOne(titles *journal.Titles, u *untitled) (*record.Committed, error) {
	answer, err := u.Ask(r.ctx)
	if err != nil {
		return nil, err
	}
	done, err := titles.Give(context.WithoutCancel(r.ctx), u.info.ID.String(), answer.Text, answer.Paid)
	if err != nil {
		return nil, errors.Join(err, u.Lose(r.ctx, answer))
	}
	return done, nil
}
