package view

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/fold"
	"github.com/chatctx/chatctx/pool"
)

// The labels with a meaning in lists: pinned contexts come first, archived ones are left out.
const (
	Pinned   = "pinned"
	Archived = "archived"
)

// InfoOf describes a context of which the record has been read.
func InfoOf(s *base.Store, tx kv.Tx, id pool.ID, rec *base.ContextRecord) (*record.ContextInfo, error) {
	current, err := CurrentContext(s, tx)
	if err != nil {
		return nil, err
	}
	if err := s.Placed(id, rec); err != nil {
		return nil, err
	}
	active, err := branchstore.NameOf(tx, id, rec.Active)
	info := &record.ContextInfo{Branches: int(rec.Branches), ContextFacts: record.ContextFacts{ID: id, Title: rec.Title, Derived: rec.Derived, Current: id == current, Active: active,
		Messages: int(rec.Messages), Created: rec.Created, Updated: rec.Updated, Listed: rec.ListedAt(), Trashed: rec.Trashed, Parent: rec.Parent,
		Settings: rec.Settings, AppData: rec.AppData, Labels: slices.Clone(rec.Labels), Revision: rec.Revision}}
	if err == nil && rec.Parent != (pool.ID{}) {
		parent, _, err := base.GetContext(tx, rec.Parent)
		if err != nil {
			return nil, err
		}
		info.ParentGone = parent == nil
	}
	return info, err
}

// Info reads the description of the context.
func Info(ctx context.Context, c *base.Conversation) (*record.ContextInfo, error) {
	var info *record.ContextInfo
	err := At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) (err error) {
		info, err = InfoOf(c.Store, tx, c.ID, rec)
		return err
	})
	return info, err
}

// listRange returns the part of the index of last changes that may have contexts of the list. What was changed before Until may stand anywhere there, if a
// clock was wrong.
func listRange(o *record.ListOptions) kv.Range {
	var r kv.Range
	if o.Since > 0 {
		r.From = base.RecentKey(o.Since, pool.ID{})
	}
	if o.After != nil {
		r.To = base.RecentKey(max(o.After.Listed, o.After.Updated), o.After.ID)
	}
	return r
}

func listTakes(o *record.ListOptions, info *record.ContextInfo) bool {
	return (o.Trash == (info.Trashed != 0)) && (o.Since == 0 || info.Updated >= o.Since) && (o.Until == 0 || info.Updated < o.Until) &&
		(o.Parent == pool.ID{} || info.Parent == o.Parent) &&
		(!o.Empty || info.Messages == 0) && (!o.Untitled || info.Title == "" || info.Derived) && listTakesLabels(o, info) &&
		(o.Word == "" || strings.Contains(fold.String(info.Title), fold.String(o.Word)))
}

func listTakesLabels(o *record.ListOptions, info *record.ContextInfo) bool {
	for _, l := range o.Labels {
		if !slices.Contains(info.Labels, l) {
			return false
		}
	}
	return !o.Orderly || o.Trash || slices.Contains(o.Labels, Archived) || !slices.Contains(info.Labels, Archived)
}

// Numbers of contexts that one transaction reads: at the beginning of a list, which may be all that the caller looks at, and at most.
const (
	firstPage = 64
	listBatch = 256
)

// Contexts returns contexts, the last changed first. They are read in short transactions; one that changes meanwhile is returned once, in its state at that
// time.
func Contexts(ctx context.Context, s *base.Store, o record.ListOptions) iter.Seq2[*record.ContextInfo, error] {
	return func(yield func(*record.ContextInfo, error) bool) {
		if len(o.Labels) > 0 {
			infos, few, err := withLabels(ctx, s, &o)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, info := range infos {
				if listTakes(&o, info) && !yield(info, nil) {
					return
				}
			}
			if few {
				return
			}
		}
		if o.After == nil || !o.Orderly {
			if err := pages(ctx, s, &o, func(info *record.ContextInfo) bool { return !listTakes(&o, info) || yield(info, nil) }); err != nil {
				yield(nil, err)
			}
			return
		}
		ids, err := listed(ctx, s, &o)
		for len(ids) > 0 && err == nil {
			n := min(len(ids), listBatch)
			var infos []*record.ContextInfo
			if infos, err = described(ctx, s, ids[:n], o.Folders); err != nil {
				break
			}
			for _, info := range infos {
				if listTakes(&o, info) && !yield(info, nil) {
					return
				}
			}
			ids = ids[n:]
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// unsteady is how far the clocks of writers may differ, or go back, while a list is read: contexts that change meanwhile are looked for from that long
// before the newest one of the list. A clock may also stand still for some milliseconds, as on Windows; then ids alone order the changes.
const unsteady = pool.Time(time.Minute / time.Microsecond)

// pages gives contexts in the list's order, a page at a time, so that a caller who wants only the first ones reads no more. Contexts that change meanwhile
// move to a part of the list that was read already; they are given at its end.
func pages(ctx context.Context, s *base.Store, o *record.ListOptions, give func(*record.ContextInfo) bool) error {
	given := map[pool.ID]bool{}
	each := func(ids []pool.ID, order func(a, b *record.ContextInfo) int) (more bool, err error) {
		ids = slices.DeleteFunc(ids, func(id pool.ID) bool { return given[id] })
		infos, err := described(ctx, s, ids, o.Folders)
		if order != nil {
			slices.SortStableFunc(infos, order)
		}
		for _, info := range infos {
			given[info.ID] = true
			if !give(info) {
				return false, nil // the caller has stopped, so nobody would get an error
			}
		}
		return err == nil, err
	}
	if o.Orderly {
		pinned, err := labelled(ctx, s, Pinned)
		if err != nil {
			return err
		}
		newest := func(a, b *record.ContextInfo) int { return cmp.Compare(b.Listed, a.Listed) }
		if more, err := each(slices.Collect(maps.Keys(pinned)), newest); !more {
			return err
		}
	}
	within, end, began := listRange(o), false, []byte(nil)
	for page := firstPage; !end; page = min(2*page, listBatch) {
		keys, err := RecentPage(ctx, s, within, page)
		if err != nil {
			return err
		}
		if began == nil && len(keys) > 0 {
			began = base.RecentKey(max(base.RecentTime(keys[0])-unsteady, 0), pool.ID{})
		}
		if more, err := each(IDsOf(keys), nil); !more {
			return err
		}
		if end = len(keys) < page; !end {
			within.To = keys[len(keys)-1]
		}
	}
	if began == nil {
		return nil
	}
	changed, err := RecentIn(ctx, s, kv.Range{From: began, To: listRange(o).To})
	if err != nil {
		return err
	}
	_, err = each(changed, nil)
	return err
}

// listed returns the contexts that may be on a list, in its order.
func listed(ctx context.Context, s *base.Store, o *record.ListOptions) ([]pool.ID, error) {
	in := *o
	var pinned map[pool.ID]bool
	if o.Orderly {
		var err error
		if pinned, err = labelled(ctx, s, Pinned); err != nil {
			return nil, err
		}
	}
	if len(pinned) > 0 {
		in.After = nil // its last change does not give its place in the list
	}
	ids, err := RecentIn(ctx, s, listRange(&in))
	for _, l := range o.Labels {
		if err != nil {
			return nil, err
		}
		var has map[pool.ID]bool
		has, err = labelled(ctx, s, l)
		ids = slices.DeleteFunc(ids, func(id pool.ID) bool { return !has[id] })
	}
	if len(pinned) == 0 || err != nil {
		return ids, err
	}
	slices.SortStableFunc(ids, func(a, b pool.ID) int { return rank(pinned[b]) - rank(pinned[a]) })
	if o.After != nil {
		if at := slices.Index(ids, o.After.ID); at >= 0 {
			ids = ids[at+1:]
		}
	}
	return ids, nil
}

// fewLabelled is the largest number of contexts with a label for which a list by labels starts from the labels. Above it, the list starts from the last
// changes, among which labelled contexts come soon.
const fewLabelled = 2000

// withLabels returns the contexts that have all labels, in the list's order. few is false if the first label has so many that the list should start from
// the last changes.
func withLabels(ctx context.Context, s *base.Store, o *record.ListOptions) (infos []*record.ContextInfo, few bool, err error) {
	var ids []pool.ID
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		ids = ids[:0]
		return tx.Scan(base.LabelBucket, kv.Prefix(base.LabelPrefix(o.Labels[0])), func(key, _ []byte) error {
			if len(ids) > fewLabelled {
				return kv.ErrStop
			}
			if l, id, ok := base.OfLabelKey(key); ok && l == o.Labels[0] {
				ids = append(ids, id)
			}
			return nil
		})
	})
	if err != nil || len(ids) > fewLabelled {
		return nil, false, err
	}
	for part := range slices.Chunk(ids, listBatch) {
		more, err := described(ctx, s, part, o.Folders)
		if err != nil {
			return nil, false, err
		}
		infos = append(infos, more...)
	}
	first := func(i *record.ContextInfo) bool { return o.Orderly && slices.Contains(i.Labels, Pinned) }
	slices.SortFunc(infos, func(a, b *record.ContextInfo) int {
		return cmp.Or(rank(first(b))-rank(first(a)), bytes.Compare(base.RecentKey(b.Listed, b.ID), base.RecentKey(a.Listed, a.ID)))
	})
	if o.After == nil {
		return infos, true, nil
	}
	if at := slices.IndexFunc(infos, func(i *record.ContextInfo) bool { return i.ID == o.After.ID }); o.Orderly && at >= 0 {
		return infos[at+1:], true, nil
	}
	before := base.RecentKey(max(o.After.Listed, o.After.Updated), o.After.ID)
	return slices.DeleteFunc(infos, func(i *record.ContextInfo) bool {
		return !o.Orderly && bytes.Compare(base.RecentKey(i.Listed, i.ID), before) >= 0
	}), true, nil
}

// labelled returns the contexts that have a label.
func labelled(ctx context.Context, s *base.Store, label string) (map[pool.ID]bool, error) {
	var out map[pool.ID]bool
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		out = map[pool.ID]bool{}
		return tx.Scan(base.LabelBucket, kv.Prefix(base.LabelPrefix(label)), func(key, _ []byte) error {
			if l, id, ok := base.OfLabelKey(key); ok && l == label {
				out[id] = true
			}
			return nil
		})
	})
	return out, err
}

// Labels returns the labels of all contexts, in the trash or not, with the number of contexts that have each.
func Labels(ctx context.Context, s *base.Store) (map[string]int, error) {
	var out map[string]int
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		out = map[string]int{}
		return tx.Scan(base.LabelBucket, kv.Range{}, func(key, _ []byte) error {
			if l, _, ok := base.OfLabelKey(key); ok {
				out[l]++
			}
			return nil
		})
	})
	return out, err
}

func described(ctx context.Context, s *base.Store, ids []pool.ID, folders []string) ([]*record.ContextInfo, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out []*record.ContextInfo
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		out = out[:0]
		if err := fetchInfos(s, tx, ids); err != nil {
			return err
		}
		for _, id := range ids {
			rec, _, err := base.GetContext(tx, id)
			if err != nil {
				return err
			}
			if rec == nil {
				continue
			}
			if len(folders) > 0 {
				if in, err := base.InFolder(tx, rec, folders); err != nil || !in {
					if err != nil {
						return err
					}
					continue
				}
			}
			info, err := InfoOf(s, tx, id, rec)
			if err != nil {
				return err
			}
			out = append(out, info)
		}
		return nil
	})
	return out, err
}

// fetchInfos reads at once what infoOf reads of contexts, in as few steps as possible.
func fetchInfos(s *base.Store, tx kv.Tx, ids []pool.ID) error {
	keys := []kv.Key{{Bucket: base.MetaBucket, Key: base.MetaCurrent}}
	for i := range ids {
		keys = append(keys, kv.Key{Bucket: base.ContextBucket, Key: ids[i][:]})
	}
	if err := kv.Fetch(tx, keys...); err != nil {
		return err
	}
	keys = nil
	for _, id := range ids {
		rec, _, err := base.GetContext(tx, id)
		if err != nil {
			return err
		}
		if rec == nil {
			continue
		}
		on, err := s.Active(id, rec)
		if err != nil {
			return err
		}
		keys = append(keys, kv.Key{Bucket: branchstore.Bucket, Key: branchstore.Key(id, on)})
		if rec.Parent != (pool.ID{}) {
			keys = append(keys, kv.Key{Bucket: base.ContextBucket, Key: rec.Parent[:]})
		}
	}
	return kv.Fetch(tx, keys...)
}
