package cli

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// whichFlags select contexts by their properties, in ls and in place of names.
type whichFlags struct {
	Label     []string `flag:"label" doc:"only those with the {LABEL}; may be given again"`
	OlderThan instant  `flag:"older-than" doc:"only those last changed before {WHEN}: 2025-01-31, 2025-01-31T10:00:00Z, 12h, 90d"`
	Words     string   `flag:"words" doc:"only those in which search finds {WORDS}"`
	Empty     bool     `flag:"empty" doc:"only those without a message"`
	Untitled  bool     `flag:"untitled" doc:"only those that nobody gave a title"`
}

// given reports whether there is a filter.
func (w *whichFlags) given() bool {
	return len(w.Label) > 0 || w.OlderThan != 0 || w.Words != "" || w.Empty || w.Untitled
}

// options are those of the filters, without the words.
func (w *whichFlags) options() chatctx.ListOptions {
	return chatctx.ListOptions{Labels: w.Label, Until: pool.Time(w.OlderThan), Empty: w.Empty, Untitled: w.Untitled, Orderly: true}
}

// listed yields the contexts that fit and in which search finds the words, in the order of ls.
func (r *run) listed(o chatctx.ListOptions, words string, yield func(*record.ContextInfo) error) error {
	var has map[chatctx.ID]bool
	if words != "" {
		has = map[chatctx.ID]bool{}
		for h, err := range r.st.Search(r.ctx, record.SearchOptions{Text: words, Trash: o.Trash}) {
			if err != nil {
				return err
			}
			has[h.Context] = true
		}
	}
	for info, err := range r.st.Contexts(r.ctx, o) {
		if err != nil {
			return err
		}
		if has != nil && !has[info.ID] {
			continue
		}
		if err := yield(info); err != nil || r.stopped() {
			return err
		}
	}
	return nil
}

// chosen returns the contexts that arguments name, each once, or without arguments those that fit the filters. Names also find contexts in the trash.
func (r *run) chosen(names []string, which whichFlags) ([]*record.ContextInfo, error) {
	if len(names) > 0 && which.given() {
		return nil, usagef("%s takes names or filters, not both", r.name)
	}
	var all []*record.ContextInfo
	if len(names) == 0 {
		err := r.listed(which.options(), which.Words, func(info *record.ContextInfo) error { all = append(all, info); return nil })
		return all, err
	}
	for _, name := range names {
		c, err := r.st.Context(r.ctx, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(i *record.ContextInfo) bool { return i.ID == c.ID }) {
			continue
		}
		info, err := c.Info(r.ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// withThoseBelow adds the contexts below those of all, which go into the trash with them.
func (r *run) withThoseBelow(all []*record.ContextInfo) ([]*record.ContextInfo, error) {
	chosen := map[chatctx.ID]bool{}
	for _, info := range all {
		chosen[info.ID] = true
	}
	below := map[chatctx.ID][]*record.ContextInfo{}
	for info, err := range r.st.Contexts(r.ctx, chatctx.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if info.Parent != (chatctx.ID{}) && !chosen[info.ID] {
			below[info.Parent] = append(below[info.Parent], info)
		}
	}
	for i := 0; i < len(all); i++ {
		all = append(all, below[all[i].ID]...)
	}
	return all, nil
}

// needsNames refuses a command line that selects no context.
func (r *run) needsNames(names []string, which whichFlags, example string) error {
	if len(names) == 0 && !which.given() {
		return &usageError{r.name + " needs the CTX, or a filter", example}
	}
	return nil
}

// wouldDo prints what a command would do to contexts, a line for each.
func (r *run) wouldDo(all []*record.ContextInfo, what string) error {
	for _, info := range all {
		err := r.emit(struct {
			DryRun bool `json:"dry_run"`
			*record.ContextInfo
		}{true, info}, func() {
			r.printf("would %s %s: %s, %s\n", what, named(info.Title, info.ID), count(info.Messages, "message"), count(info.Branches, "branch"))
		})
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		r.note("no conversation fits")
	}
	return nil
}
