package operation

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

func init() { Register(Group{Heading: "Conversations", Of: titleOperations}) }

func titleOperations() []*Operation {
	return []*Operation{
		Define("titles.find", "", Run, "let a model give titles to conversations that have none of their own", findTitles).Fails(asking...).Fails("not_found", "ambiguous", "purged", "empty").
			As("title", "chatctx title --auto --untitled --dry-run").
			With("The model reads the beginning of each. It is the one that --model names, else that of the setting compact.model, else the conversation's own. The command first says what it will cost. It never replaces a title that a person or a file gave; rename does. One undo takes all titles of one command back. Exit code 8: some failed; 7: all failed."),
	}
}

// Titling says which conversations get titles.
type Titling struct {
	Conversation
	Contexts []string `json:"contexts,omitempty" arg:"[CTX…]"`
	Whom
	Auto bool `json:"-" flag:"auto" doc:"let a model find the title"`
	All  bool `json:"all,omitempty" flag:"untitled" old:"all" doc:"only those that nobody gave a title"`
	Unasked
	DryRun
	found []*untitled // before the question
}

// Titles are titles that a model found, a line each as they come, or what they would cost.
type Titles struct {
	GivenTitle `json:"-"`
	*TitleRun
	Bill []TitleCost `json:"-" when:"dry-run"`
}

// GivenTitle is a title that a model found.
type GivenTitle struct {
	contract.Named
	Was   string `json:"was"`
	Model string `json:"model"`
}

// TitleCost is a title that would be asked for.
type TitleCost struct {
	DryRun   bool        `json:"dry_run"`
	Context  chatctx.ID  `json:"context"`
	Title    string      `json:"title"`
	Model    string      `json:"model"`
	Input    int         `json:"input_tokens"`
	Output   int         `json:"output_tokens"`
	Cost     *cost.Money `json:"cost_nano"`
	Currency string      `json:"currency,omitempty"`
}

// untitled is a conversation that will get a title.
type untitled struct {
	info *record.ContextInfo
	*turn.Titling
}

func findTitles(r *Request, in *Titling) (v Titles, err error) {
	if in.found == nil {
		if in.found, err = r.toTitle(in); err != nil {
			return v, err
		}
	}
	if in.Dry() {
		v.Bill = []TitleCost{}
		for _, u := range in.found {
			v.Bill = append(v.Bill, u.bill())
		}
		return v, nil
	}
	v.TitleRun = &TitleRun{r: r, found: in.found}
	return v, nil
}

// bill says what a title costs at most.
func (u *untitled) bill() TitleCost {
	v := TitleCost{true, u.info.ID, u.info.Title, u.Model, u.Tokens, u.Most, nil, ""}
	if u.Price != nil {
		sum := u.Price.Of(cost.Usage{Input: int64(u.Tokens), Output: int64(u.Most)})
		v.Cost, v.Currency = &sum, u.Price.Currency
	}
	return v
}

// TitledError means that a conversation has its title already. It is an ErrConflict.
type TitledError struct {
	Title   string
	Context chatctx.ID
}

func (e *TitledError) Error() string { return fmt.Sprintf("%q has its title already", e.Title) }

func (e *TitledError) Unwrap() error { return chatctx.ErrConflict }

// toTitle makes the questions, the oldest conversation first, which keeps their order in ls.
func (r *Request) toTitle(in *Titling) (all []*untitled, err error) {
	infos, err := r.untitledOnes(in)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		c, err := r.Store.Context(r.Ctx, info.ID.String())
		if err != nil {
			return nil, err
		}
		question, err := r.turnOn(c, info.Active).Titling(r.Ctx)
		if errors.Is(err, chatctx.ErrEmpty) && in.All {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, &untitled{info, question})
	}
	if len(all) == 0 {
		return nil, base.Says(chatctx.ErrNotFound, "every conversation with words in it has a title")
	}
	return all, nil
}

// untitledOnes returns the conversations that were named, or all that have no title.
func (r *Request) untitledOnes(in *Titling) (infos []*record.ContextInfo, err error) {
	if in.All {
		for info, err := range r.Store.Contexts(r.Ctx, record.ListOptions{Untitled: true}) {
			if err != nil {
				return nil, err
			}
			infos = append([]*record.ContextInfo{info}, infos...)
		}
		return infos, nil
	}
	names := in.Contexts
	if len(names) == 0 {
		names = []string{in.Context}
	}
	for _, name := range names {
		c, err := r.Store.Context(r.Ctx, name)
		if err != nil {
			return nil, err
		}
		info, err := c.Info(r.Ctx)
		if err != nil {
			return nil, err
		}
		if info.Title != "" && !info.Derived {
			return nil, &TitledError{info.Title, info.ID}
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// TitleRun asks for titles one after the other, and stores each as it comes.
type TitleRun struct {
	Count  int            `json:"-"` // how many are there
	Last   string         `json:"-"` // the operation of the newest
	Failed []UngivenTitle `json:"-"`
	r      *Request
	found  []*untitled
}

// UngivenTitle is a conversation that got no title, and why.
type UngivenTitle struct {
	Title   string
	Context chatctx.ID
	Err     error
}

// Each asks for the titles, and calls fn with each that is stored.
func (v Titles) Each(fn func(any) error) error {
	titles := journal.NewTitles(base.Of(v.r.Store))
	for _, u := range v.found {
		c, err := v.r.entitle(titles, u)
		if err != nil {
			v.Failed = append(v.Failed, UngivenTitle{u.info.Title, u.info.ID, err})
			if v.r.Ctx.Err() != nil {
				return nil
			}
			continue
		}
		v.Count, v.Last = v.Count+1, c.Operation
		if err := fn(GivenTitle{contract.Named{Where: contract.WhereOf(c), Title: c.Title}, u.info.Title, u.Model}); err != nil {
			return err
		}
	}
	return nil
}

// Wanted returns how many titles are asked for.
func (v *TitleRun) Wanted() int { return len(v.found) }

// entitle asks for a title and stores it, even after an interrupt, since it is paid for.
func (r *Request) entitle(titles *journal.Titles, u *untitled) (*record.Committed, error) {
	answer, err := u.Ask(r.Ctx)
	if err != nil {
		return nil, err
	}
	done, err := titles.Give(context.WithoutCancel(r.Ctx), u.info.ID.String(), answer.Text, answer.Paid)
	if err != nil {
		return nil, errors.Join(err, u.Lose(r.Ctx, answer))
	}
	return done, nil
}
