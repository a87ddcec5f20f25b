package operation

import (
	"context"
	"iter"
	"path/filepath"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Filters select conversations by their properties. On the command line they may stand in place of names.
type Filters struct {
	Labels    []string   `json:"labels,omitempty" flag:"label" doc:"only conversations with the {LABEL}; may be given again"`
	Folder    string     `json:"folder,omitempty" flag:"folder" doc:"only conversations that were held in the folder {DIR}"`
	OlderThan *time.Time `json:"-" flag:"older-than" doc:"only those last changed before {WHEN}"`
	Words     string     `json:"words,omitempty" flag:"words" doc:"only those in which search finds {WORDS}"`
	Empty     bool       `json:"empty,omitempty" flag:"empty" doc:"only those without a message"`
	Untitled  bool       `json:"untitled,omitempty" flag:"untitled" doc:"only those that nobody gave a title"`
}

// Given reports whether there is a filter.
func (f *Filters) Given() bool {
	return len(f.Labels) > 0 || f.Folder != "" || f.OlderThan != nil || f.Words != "" || f.Empty || f.Untitled
}

// options are those of the filters, without the words.
func (f *Filters) options() record.ListOptions {
	return record.ListOptions{Labels: f.Labels, Folders: FolderNames(f.Folder), Until: timeOf(f.OlderThan), Empty: f.Empty, Untitled: f.Untitled}
}

// FolderNames returns the names of a folder: as it was given, from the root, and without links. None for "".
func FolderNames(dir string) (names []string) {
	if dir == "" {
		return nil
	}
	names = []string{dir}
	if full, err := filepath.Abs(dir); err == nil {
		names = append(names, full)
		if real, err := filepath.EvalSymlinks(full); err == nil {
			names = append(names, real)
		}
	}
	return names
}

// Listed returns the conversations that fit, in the order of ls.
func (f *Filters) Listed(ctx context.Context, st *chatctx.Store) iter.Seq2[*record.ContextInfo, error] {
	o := f.options()
	o.Orderly = true
	return listed(ctx, st, o, f.Words)
}

// listed returns the conversations that fit options and in which search finds the words, unless there are none.
func listed(ctx context.Context, st *chatctx.Store, o record.ListOptions, words string) iter.Seq2[*record.ContextInfo, error] {
	if words == "" {
		return st.Contexts(ctx, o)
	}
	return func(yield func(*record.ContextInfo, error) bool) {
		has := map[chatctx.ID]bool{}
		for h, err := range st.Search(ctx, record.SearchOptions{Text: words, Trash: o.Trash}) {
			if err != nil {
				yield(nil, err)
				return
			}
			has[h.Context] = true
		}
		for info, err := range st.Contexts(ctx, o) {
			if (err != nil || has[info.ID]) && !yield(info, err) {
				return
			}
		}
	}
}

// Chooser are parameters of an operation for several conversations that knows which of them it concerns, of those that were chosen. filtered means that filters
// found them, and nobody named them.
type Chooser interface {
	Concerned(r *Request, chosen []*record.ContextInfo, filtered bool) ([]*record.ContextInfo, error)
}

// Finder are parameters of an operation of which a command names several. Find returns an error if what they name is not there, so that all is known before the
// first is changed.
type Finder interface {
	Find(r *Request) error
}

// Together are parameters of an operation for several conversations that is one operation for all of them.
type Together interface {
	ForAll(ids []string)
}

// infos returns the conversations that refs name, each once.
func (r *Request) infos(refs []string) (all []*record.ContextInfo, err error) {
	seen := map[chatctx.ID]bool{}
	for _, ref := range refs {
		c, err := r.Store.Context(r.Ctx, ref)
		if err != nil {
			return nil, err
		}
		if seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		info, err := c.Info(r.Ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// Choose returns the conversations that names mean, each once and also in the trash, or without names those that fit the filters.
func (f *Filters) Choose(r *Request, names []string) (all []*record.ContextInfo, err error) {
	if len(names) > 0 {
		return r.infos(names)
	}
	for info, err := range f.Listed(r.Ctx, r.Store) {
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// withThoseBelow adds the conversations below those of all, which go into the trash with them.
func (r *Request) withThoseBelow(all []*record.ContextInfo) ([]*record.ContextInfo, error) {
	chosen := map[chatctx.ID]bool{}
	for _, info := range all {
		chosen[info.ID] = true
	}
	below := map[chatctx.ID][]*record.ContextInfo{}
	for info, err := range r.Store.Contexts(r.Ctx, record.ListOptions{}) {
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
