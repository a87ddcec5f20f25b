package cli

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, titleLooks) }

func titleLooks() map[string]look {
	l := preparing(func(r *run, in *operation.Titling) error {
		switch {
		case !in.Auto:
			return &usageError{"title takes --auto: a model finds the title", "to give one yourself: chatctx rename CTX TITLE"}
		case in.All && (len(in.Contexts) > 0 || r.contextRef() != ""):
			return usagef("title takes --untitled or the CTX, not both")
		case len(in.Contexts) > 0 && r.contextRef() != "":
			return usagef("title takes the CTX as an argument or as --context, not both")
		}
		return nil
	}, as(func(r *run, _ *operation.Titling, v operation.GivenTitle) {
		r.printf("%s  %s\n", short(v.Context), clean(v.Title))
	}))
	l.why = "title asks a model and costs money"
	l.ask = func(_ *run, plan any) string {
		return "Ask for " + count(len(plan.(operation.Titles).Bill), "title") + "?"
	}
	l.plan = func(r *run, in, plan any) { r.titleBill(plan.(operation.Titles).Bill, in.(*operation.Titling).Dry()) }
	l.then = func(r *run, _, out any) error { return r.entitled(out.(operation.Titles).TitleRun) }
	return map[string]look{"titles.find": orFails(l, func(r *run, _ *operation.Titling, err error) error {
		var has *operation.TitledError
		if errors.As(err, &has) {
			return &hinted{base.Says(chatctx.ErrConflict, "%s has its title already", titled(has.Title, has.Context)), r.onStore("rename " + short(has.Context) + " TITLE")}
		}
		return talkHint(err)
	})}
}

// titleBill says what the titles cost at most, by model.
func (r *run) titleBill(bill []operation.TitleCost, dry bool) {
	var models []string
	sums := map[string]*operation.TitleCost{}
	numbers := map[string]int{}
	for _, v := range bill {
		sum := sums[v.Model]
		if numbers[v.Model]++; sum == nil {
			models, sums[v.Model] = append(models, v.Model), &v
			continue
		}
		sum.Input, sum.Output = sum.Input+v.Input, sum.Output+v.Output
		if sum.Cost != nil && v.Cost != nil {
			both := *sum.Cost + *v.Cost
			sum.Cost = &both
		}
	}
	for _, model := range models {
		v := sums[model]
		price := "cost unknown"
		if v.Cost != nil {
			price = "at most " + v.Cost.Short() + " " + clean(v.Currency)
		}
		line := fmt.Sprintf("%s: %s, about %d tokens in, at most %d out; %s", clean(model), count(numbers[model], "title"), v.Input, v.Output, price)
		if dry {
			r.printf("%s\n", line)
		} else {
			r.note("%s", line)
		}
	}
}

// entitled says how all titles are taken back, and returns the error of those that are missing.
func (r *run) entitled(v *operation.TitleRun) error {
	if v == nil { // nothing was asked
		return nil
	}
	if v.Last != "" {
		r.note("undo with: %s", r.onStore("undo "+v.Last))
	}
	var failed error
	for _, f := range v.Failed {
		failed = errors.Join(failed, fmt.Errorf("%s: %w", titled(f.Title, f.Context), f.Err))
	}
	if failed != nil && v.Count > 0 {
		return contract.Partly(failed, fmt.Sprintf("%d of %s", v.Count, count(v.Wanted(), "title"))+map[bool]string{true: " is", false: " are"}[v.Count == 1]+" there")
	}
	return talkHint(failed)
}
