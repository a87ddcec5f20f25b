package cost

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// By is what the replies of a group have in common.
type By string

// The ways to group replies.
const (
	ByNothing By = ""
	ByContext By = "context"
	ByBranch  By = "branch" // the branch on which a reply was written; a fork shows it too but has not paid for it
	ByModel   By = "model"
	ByDay     By = "day"
	ByKind    By = "kind"
)

// Grouping returns the ways to group, except ByNothing.
func Grouping() []By { return []By{ByContext, ByBranch, ByModel, ByDay, ByKind} }

// Query says which replies are added up, and how they are grouped. The zero Query is one sum over the whole store.
type Query struct {
	Since    time.Time  // replies that were complete at or after it; without those of unknown time
	Until    time.Time  // replies before it
	Context  chatctx.ID // replies of one conversation
	Branch   string     // with Context: replies that were written on the branch of this name
	By       By
	Location *time.Location // the time zone of days; nil means time.Local
	Prices   *Prices
}

// Sums is what replies took and cost together.
type Sums struct {
	Replies int `json:"replies"`
	Usage
	// Cost has the sum for each currency, over the replies whose cost is known.
	Cost map[string]Money `json:"cost_nano"`
	// Replies counts all of them. Estimated counts the replies whose figures another program estimated. WithoutUsage counts those without figures, Unpriced
	// those of models without a price; neither are in Cost.
	Estimated    int `json:"estimated"`
	WithoutUsage int `json:"without_usage"`
	Unpriced     int `json:"unpriced"`
}

func (s *Sums) add(r *Reply) {
	s.Replies++
	switch {
	case r.Origin == Missing:
		s.WithoutUsage++
		return
	case r.Price == nil:
		s.Unpriced++
	default:
		if s.Cost == nil {
			s.Cost = map[string]Money{}
		}
		s.Cost[r.Price.Currency] = s.Cost[r.Price.Currency].plus(r.Cost)
	}
	if r.Origin == Estimated {
		s.Estimated++
	}
	s.Usage.add(&r.Usage)
}

// Group is a part of the replies and what they have in common. The fields of other groupings are empty.
type Group struct {
	Context  chatctx.ID
	Title    string
	Trashed  bool
	Branch   string // "" if the branch is gone
	Removed  bool
	Provider string
	Model    string
	Day      string // 2026-01-31; "" if the time is unknown
	Kind     string
	Sums
}

// Report is the result of Spent.
type Report struct {
	Sums
	Groups []*Group // the dearest first, days in order
	Kinds  []*Group
	// Unpriced lists the models without a price, with what they took.
	Unpriced []*Group
	// Damaged counts the messages that could not be read.
	Damaged int
}

// Spent adds up what the replies of a store cost, each once: copies, in any conversation, and repeated imports do not count again. Replies in the trash, on
// removed branches or rewound away count; those that gc or purge removed are gone. It reads in short transactions: the whole store, or the query's conversation
// alone, unless that has copies whose originals are elsewhere. Of one conversation a reply counts even if another one imported it too.
func Spent(ctx context.Context, store *chatctx.Store, q Query) (*Report, error) {
	s := &spending{query: q, out: &Report{}, seen: map[string]bool{}, kinds: map[string]*Group{}, unpriced: map[string]*Group{}, groups: map[string]*Group{}}
	if s.query.Location == nil {
		s.query.Location = time.Local
	}
	if err := s.read(ctx, store); err != nil {
		return nil, err
	}
	slices.SortFunc(s.copies, func(a, b found) int { return slices.Compare(a.fact.ID[:], b.fact.ID[:]) })
	for _, f := range s.copies {
		s.take(f.info, f.fact)
	}
	s.out.Groups, s.out.Kinds, s.out.Unpriced = s.sorted(s.groups), s.sorted(s.kinds), s.sorted(s.unpriced)
	return s.out, nil
}

// spending is a sum in the making.
type spending struct {
	query                   Query
	out                     *Report
	seen                    map[string]bool // names of replies that were counted
	copies                  []found         // counted last, since their originals come first
	groups, kinds, unpriced map[string]*Group
}

type found struct {
	info *record.ContextInfo
	fact *record.Fact
}

// read reads the replies that count. Those of the query's conversation come first.
func (s *spending) read(ctx context.Context, store *chatctx.Store) error {
	own := s.query.Context
	if own != (chatctx.ID{}) {
		c, err := store.Context(ctx, own.String())
		if err != nil {
			return err
		}
		info, err := c.Info(ctx)
		if err == nil {
			err = s.conversation(ctx, store, info)
		}
		if err != nil || !s.needsOriginals() {
			return err
		}
	}
	for _, trash := range []bool{false, true} {
		for info, err := range store.Contexts(ctx, record.ListOptions{Trash: trash}) {
			if err == nil && info.ID != own {
				err = s.conversation(ctx, store, info)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// needsOriginals reports whether a copy that was read may be one of a reply that was not read.
func (s *spending) needsOriginals() bool {
	return slices.ContainsFunc(s.copies, func(f found) bool {
		return !slices.ContainsFunc(names(&f.fact.Facts), func(name string) bool { return s.seen[name] })
	})
}

func (s *spending) conversation(ctx context.Context, store *chatctx.Store, info *record.ContextInfo) error {
	c, err := store.Context(ctx, info.ID.String())
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil // purged meanwhile
	}
	if err == nil {
		c, err = c.Settled(ctx) // with what a program that was killed has left
	}
	if err != nil {
		return err
	}
	for f, err := range view.Facts(ctx, base.ContextOf(c.Store(), c.ID)) {
		switch {
		case f == nil && errors.Is(err, chatctx.ErrDamaged):
			s.out.Damaged++
		case err != nil:
			return err
		case s.query.Prices.reply(&f.Facts) == nil:
		case f.CopiedFrom != nil || f.Source != nil && f.Source.Format == chatctx.NativeFormat:
			s.copies = append(s.copies, found{info, f})
		default:
			s.take(info, f)
		}
	}
	return nil
}

// take counts a reply unless it was counted already.
func (s *spending) take(info *record.ContextInfo, f *record.Fact) {
	again := false
	for _, name := range names(&f.Facts) {
		again = again || s.seen[name]
		s.seen[name] = true
	}
	r := s.query.Prices.reply(&f.Facts)
	q := &s.query
	if again || q.Context != (chatctx.ID{}) && q.Context != info.ID || q.Branch != "" && q.Branch != f.Branch || !q.Since.IsZero() && r.At.Before(q.Since) || !q.Until.IsZero() && !r.At.Before(q.Until) {
		return
	}
	s.out.add(r)
	s.of(s.kinds, Group{Kind: r.Kind}).add(r)
	if r.Price == nil && r.Origin != Missing {
		s.of(s.unpriced, Group{Provider: r.Provider, Model: r.Model}).add(r)
	}
	if q.By != ByNothing {
		s.of(s.groups, s.group(info, f, r)).add(r)
	}
}

// names returns what identifies a reply: its id, that of its original, and its source.
func names(f *pool.Facts) []string {
	list := []string{string(f.ID[:])}
	if f.CopiedFrom != nil {
		list = append(list, string(f.CopiedFrom[:]))
	}
	if src := f.Source; src != nil && src.Node != "" {
		list = append(list, strings.Join([]string{src.Format, src.Conversation, src.Node}, "\x00"))
		if id := (pool.ID{}); src.Format == chatctx.NativeFormat && id.UnmarshalText([]byte(src.Node)) == nil {
			list = append(list, string(id[:]))
		}
	}
	return list
}

// group returns the group of a reply.
func (s *spending) group(info *record.ContextInfo, f *record.Fact, r *Reply) Group {
	switch s.query.By {
	case ByContext:
		return Group{Context: info.ID, Title: info.Title, Trashed: info.Trashed != 0}
	case ByBranch:
		return Group{Context: info.ID, Title: info.Title, Trashed: info.Trashed != 0, Branch: f.Branch, Removed: f.Removed}
	case ByModel:
		return Group{Provider: r.Provider, Model: r.Model}
	case ByDay:
		day := ""
		if !r.At.IsZero() {
			day = r.At.In(s.query.Location).Format(time.DateOnly)
		}
		return Group{Day: day}
	}
	return Group{Kind: r.Kind}
}

// of finds a group in a set, or adds it.
func (s *spending) of(set map[string]*Group, g Group) *Group {
	key := strings.Join([]string{string(g.Context[:]), g.Branch, g.Provider, g.Model, g.Day, g.Kind}, "\x00")
	if set[key] == nil {
		set[key] = &g
	}
	return set[key]
}

// sorted returns the groups of a set: days in order, others by cost, the largest first, and by size if their costs are equal or unknown.
func (s *spending) sorted(set map[string]*Group) []*Group {
	out := make([]*Group, 0, len(set))
	for _, g := range set {
		out = append(out, g)
	}
	sum := func(g *Group) (n Money) {
		for _, m := range g.Cost {
			n = n.plus(m)
		}
		return n
	}
	slices.SortFunc(out, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(sum(b), sum(a)), cmp.Compare(AllInput(b.Usage)+b.Output, AllInput(a.Usage)+a.Output),
			strings.Compare(a.Title, b.Title), strings.Compare(a.Branch, b.Branch), strings.Compare(a.Model, b.Model), strings.Compare(a.Kind, b.Kind),
			slices.Compare(a.Context[:], b.Context[:]))
	})
	return out
}
