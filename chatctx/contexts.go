package chatctx

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/cases"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/pool"
)

// ChatContext is one conversation with all its branches. It has only its id and its store.
type ChatContext struct {
	ID    ID
	store *Store
}

// Store returns the store of the context.
func (c *ChatContext) Store() *Store { return c.store }

// MainBranch is the branch with which every context begins.
const MainBranch = record.MainBranch

// NewContext describes a new context.
type NewContext = journal.NewContext

// New makes a context with the branch main.
func (s *Store) New(ctx context.Context, n NewContext) (*ChatContext, error) {
	if err := n.Ready(s.at); err != nil {
		return nil, err
	}
	id := pool.NewID()
	_, err := journal.StoreOperation(ctx, s.at, "new", func(st *journal.StoreTxn) error {
		t, err := st.NewContext(id, n.Title, n.Parent, n.Settings)
		if err != nil {
			return err
		}
		if err := st.BeginWith(t, &n); err != nil {
			return err
		}
		return st.Made(t, !n.Stay)
	})
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: s}, nil
}

// Context finds a context: the current one for "", else by its whole id, its title, or a part of its id (the first or last digits, four at least) or of its
// title, ignoring case. Of contexts whose titles fit equally well, those outside the trash take precedence. Errors to test for: ErrNotFound, and
// ErrAmbiguous if several fit. Programs that keep ids should pass the whole id: then one record is read.
func (s *Store) Context(ctx context.Context, ref string) (*ChatContext, error) {
	id, err := view.Find(ctx, s.at, ref)
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: s}, nil
}

// ContextInfo describes a context.
type ContextInfo struct {
	ID               ID
	Title            string
	Derived          bool // the title was made from the first message
	Current          bool
	Active           string // branch
	Branches         int
	Messages         int // in the pool
	Created, Updated pool.Time
	Trashed          pool.Time // zero: not in the trash
	Parent           ID
	ParentGone       bool
	Settings         map[string]json.RawMessage
	AppData          map[string]json.RawMessage
	Labels           []string // sorted
	// Revision grows with each change of the conversation itself, undo included: its title, labels, tags, marks, settings, rules, tools and active branch.
	// Branches have revisions of their own.
	Revision uint64
}

// The labels with a meaning in lists: pinned contexts come first, archived ones are left out.
const (
	Pinned   = "pinned"
	Archived = "archived"
)

func infoOf(s *record.Store, tx kv.Tx, id ID, rec *record.ContextRecord) (*ContextInfo, error) {
	current, err := view.CurrentContext(s, tx)
	if err != nil {
		return nil, err
	}
	if err := s.Placed(id, rec); err != nil {
		return nil, err
	}
	active, err := branch.NameOf(tx, id, rec.Active)
	info := &ContextInfo{ID: id, Title: rec.Title, Derived: rec.Derived, Current: id == current, Active: active, Branches: int(rec.Branches),
		Messages: int(rec.Messages), Created: rec.Created, Updated: rec.Updated, Trashed: rec.Trashed, Parent: rec.Parent,
		Settings: rec.Settings, AppData: rec.AppData, Labels: slices.Clone(rec.Labels), Revision: rec.Revision}
	if err == nil && rec.Parent != (ID{}) {
		parent, _, err := record.GetContext(tx, rec.Parent)
		if err != nil {
			return nil, err
		}
		info.ParentGone = parent == nil
	}
	return info, err
}

// Info reads the description of the context.
func (c *ChatContext) Info(ctx context.Context) (*ContextInfo, error) {
	var info *ContextInfo
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *record.ContextRecord) (err error) {
		info, err = infoOf(c.store.at, tx, c.ID, rec)
		return err
	})
	return info, err
}

// ListOptions narrow a list of contexts.
type ListOptions struct {
	Word         string    // in the title, ignoring case
	Since, Until pool.Time // last changed
	Trash        bool      // those in the trash instead
	Parent       ID        // only children of this context
	Labels       []string  // only those that have all of these
	Empty        bool      // only those without a message
	Untitled     bool      // only those without a title of their own: none, or one made from the first message
	Orderly      bool      // pinned contexts first; archived ones only if Labels asks for them, or in the trash
	// After, if not nil, is a context of an earlier list: only those after it are returned. Those before it are not read.
	After *ContextInfo
}

// within returns the part of the index of last changes that may have contexts of the list.
func (o *ListOptions) within() kv.Range {
	var r kv.Range
	if o.Since > 0 {
		r.From = record.RecentKey(o.Since, ID{})
	}
	if o.Until > 0 {
		r.To = record.RecentKey(o.Until, ID{})
	}
	if o.After != nil {
		if key := record.RecentKey(o.After.Updated, o.After.ID); r.To == nil || string(key) < string(r.To) {
			r.To = key
		}
	}
	return r
}

func (o *ListOptions) takes(fold cases.Caser, info *ContextInfo) bool {
	return (o.Trash == (info.Trashed != 0)) && (o.Since == 0 || info.Updated >= o.Since) && (o.Until == 0 || info.Updated < o.Until) &&
		(o.Parent == ID{} || info.Parent == o.Parent) &&
		(!o.Empty || info.Messages == 0) && (!o.Untitled || info.Title == "" || info.Derived) && o.takesLabels(info) &&
		(o.Word == "" || strings.Contains(fold.String(info.Title), fold.String(o.Word)))
}

func (o *ListOptions) takesLabels(info *ContextInfo) bool {
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
func (s *Store) Contexts(ctx context.Context, o ListOptions) iter.Seq2[*ContextInfo, error] {
	return func(yield func(*ContextInfo, error) bool) {
		fold := cases.Fold()
		if len(o.Labels) > 0 {
			infos, few, err := s.withLabels(ctx, &o)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, info := range infos {
				if o.takes(fold, info) && !yield(info, nil) {
					return
				}
			}
			if few {
				return
			}
		}
		if o.After == nil || !o.Orderly {
			if err := s.pages(ctx, &o, func(info *ContextInfo) bool { return !o.takes(fold, info) || yield(info, nil) }); err != nil {
				yield(nil, err)
			}
			return
		}
		ids, err := s.listed(ctx, &o)
		for len(ids) > 0 && err == nil {
			n := min(len(ids), listBatch)
			var infos []*ContextInfo
			if infos, err = s.infos(ctx, ids[:n]); err != nil {
				break
			}
			for _, info := range infos {
				if o.takes(fold, info) && !yield(info, nil) {
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
func (s *Store) pages(ctx context.Context, o *ListOptions, give func(*ContextInfo) bool) error {
	given := map[ID]bool{}
	each := func(ids []ID, order func(a, b *ContextInfo) int) (more bool, err error) {
		ids = slices.DeleteFunc(ids, func(id ID) bool { return given[id] })
		infos, err := s.infos(ctx, ids)
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
		pinned, err := s.labelled(ctx, Pinned)
		if err != nil {
			return err
		}
		newest := func(a, b *ContextInfo) int { return cmp.Compare(b.Updated, a.Updated) }
		if more, err := each(slices.Collect(maps.Keys(pinned)), newest); !more {
			return err
		}
	}
	within, end, began := o.within(), false, []byte(nil)
	for page := firstPage; !end; page = min(2*page, listBatch) {
		keys, err := view.RecentPage(ctx, s.at, within, page)
		if err != nil {
			return err
		}
		if began == nil && len(keys) > 0 {
			began = record.RecentKey(max(record.RecentTime(keys[0])-unsteady, 0), ID{})
		}
		if more, err := each(view.IDsOf(keys), nil); !more {
			return err
		}
		if end = len(keys) < page; !end {
			within.To = keys[len(keys)-1]
		}
	}
	if began == nil {
		return nil
	}
	changed, err := view.RecentIn(ctx, s.at, kv.Range{From: began, To: o.within().To})
	if err != nil {
		return err
	}
	_, err = each(changed, nil)
	return err
}

// listed returns the contexts that may be on a list, in its order.
func (s *Store) listed(ctx context.Context, o *ListOptions) ([]ID, error) {
	in := *o
	var pinned map[ID]bool
	if o.Orderly {
		var err error
		if pinned, err = s.labelled(ctx, Pinned); err != nil {
			return nil, err
		}
	}
	if len(pinned) > 0 {
		in.After = nil // its last change does not give its place in the list
	}
	ids, err := view.RecentIn(ctx, s.at, in.within())
	for _, l := range o.Labels {
		if err != nil {
			return nil, err
		}
		var has map[ID]bool
		has, err = s.labelled(ctx, l)
		ids = slices.DeleteFunc(ids, func(id ID) bool { return !has[id] })
	}
	if len(pinned) == 0 || err != nil {
		return ids, err
	}
	slices.SortStableFunc(ids, func(a, b ID) int { return rank(pinned[b]) - rank(pinned[a]) })
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
func (s *Store) withLabels(ctx context.Context, o *ListOptions) (infos []*ContextInfo, few bool, err error) {
	var ids []ID
	err = s.at.DB.View(ctx, func(tx kv.Tx) error {
		ids = ids[:0]
		return tx.Scan(record.LabelBucket, kv.Prefix(record.LabelPrefix(o.Labels[0])), func(key, _ []byte) error {
			if len(ids) > fewLabelled {
				return kv.ErrStop
			}
			if l, id, ok := record.OfLabelKey(key); ok && l == o.Labels[0] {
				ids = append(ids, id)
			}
			return nil
		})
	})
	if err != nil || len(ids) > fewLabelled {
		return nil, false, err
	}
	for part := range slices.Chunk(ids, listBatch) {
		more, err := s.infos(ctx, part)
		if err != nil {
			return nil, false, err
		}
		infos = append(infos, more...)
	}
	first := func(i *ContextInfo) bool { return o.Orderly && slices.Contains(i.Labels, Pinned) }
	slices.SortFunc(infos, func(a, b *ContextInfo) int {
		return cmp.Or(rank(first(b))-rank(first(a)), bytes.Compare(record.RecentKey(b.Updated, b.ID), record.RecentKey(a.Updated, a.ID)))
	})
	if o.After == nil {
		return infos, true, nil
	}
	if at := slices.IndexFunc(infos, func(i *ContextInfo) bool { return i.ID == o.After.ID }); o.Orderly && at >= 0 {
		return infos[at+1:], true, nil
	}
	before := record.RecentKey(o.After.Updated, o.After.ID)
	return slices.DeleteFunc(infos, func(i *ContextInfo) bool {
		return !o.Orderly && bytes.Compare(record.RecentKey(i.Updated, i.ID), before) >= 0
	}), true, nil
}

// labelled returns the contexts that have a label.
func (s *Store) labelled(ctx context.Context, label string) (map[ID]bool, error) {
	var out map[ID]bool
	err := s.at.DB.View(ctx, func(tx kv.Tx) error {
		out = map[ID]bool{}
		return tx.Scan(record.LabelBucket, kv.Prefix(record.LabelPrefix(label)), func(key, _ []byte) error {
			if l, id, ok := record.OfLabelKey(key); ok && l == label {
				out[id] = true
			}
			return nil
		})
	})
	return out, err
}

// Labels returns the labels of all contexts, in the trash or not, with the number of contexts that have each.
func (s *Store) Labels(ctx context.Context) (map[string]int, error) {
	var out map[string]int
	err := s.at.DB.View(ctx, func(tx kv.Tx) error {
		out = map[string]int{}
		return tx.Scan(record.LabelBucket, kv.Range{}, func(key, _ []byte) error {
			if l, _, ok := record.OfLabelKey(key); ok {
				out[l]++
			}
			return nil
		})
	})
	return out, err
}

func (s *Store) infos(ctx context.Context, ids []ID) ([]*ContextInfo, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out []*ContextInfo
	err := s.at.DB.View(ctx, func(tx kv.Tx) error {
		out = out[:0]
		if err := fetchInfos(s.at, tx, ids); err != nil {
			return err
		}
		for _, id := range ids {
			rec, _, err := record.GetContext(tx, id)
			if err != nil {
				return err
			}
			if rec == nil {
				continue
			}
			info, err := infoOf(s.at, tx, id, rec)
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
func fetchInfos(s *record.Store, tx kv.Tx, ids []ID) error {
	keys := []kv.Key{{Bucket: record.MetaBucket, Key: record.MetaCurrent}}
	for i := range ids {
		keys = append(keys, kv.Key{Bucket: record.ContextBucket, Key: ids[i][:]})
	}
	if err := kv.Fetch(tx, keys...); err != nil {
		return err
	}
	keys = nil
	for _, id := range ids {
		rec, _, err := record.GetContext(tx, id)
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
		keys = append(keys, kv.Key{Bucket: branch.Bucket, Key: branch.Key(id, on)})
		if rec.Parent != (ID{}) {
			keys = append(keys, kv.Key{Bucket: record.ContextBucket, Key: rec.Parent[:]})
		}
	}
	return kv.Fetch(tx, keys...)
}

// Use makes a context the current one: the store's, or this person's if Options.Place keeps that.
func (s *Store) Use(ctx context.Context, ref string) (*ContextInfo, error) {
	if s.at.Place != nil {
		return s.usePlace(ctx, ref)
	}
	var info *ContextInfo
	err := s.at.DB.Update(ctx, func(tx kv.RwTx) error {
		t, err := journal.Begin(s.at, tx, ref, "")
		if err != nil {
			return err
		}
		if err := tx.Put(record.MetaBucket, record.MetaCurrent, t.ID[:]); err != nil {
			return err
		}
		info, err = infoOf(s.at, tx, t.ID, t.Rec)
		return err
	})
	return info, err
}

func (s *Store) usePlace(ctx context.Context, ref string) (*ContextInfo, error) {
	c, err := s.Context(ctx, ref)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Trashed != 0 {
		return nil, record.Conflict("the conversation %q is in the trash: chatctx restore %s", info.Title, Short(info.ID))
	}
	info.Current = true
	return info, s.at.Place.Use(info.ID)
}

// Trash moves contexts to the trash with all contexts below them, as one operation. Nothing of them is lost. Each must be named: "" is an ErrInvalid here.
// The result's Context and Title are those of the last one.
func (s *Store) Trash(ctx context.Context, refs ...string) (*Committed, error) {
	return s.trash(ctx, "rm", s.at.Now(), refs)
}

// Restore takes contexts out of the trash, with those below them that were trashed together with them, as one operation.
func (s *Store) Restore(ctx context.Context, refs ...string) (*Committed, error) {
	return s.trash(ctx, "restore", 0, refs)
}

func (s *Store) trash(ctx context.Context, what string, at pool.Time, refs []string) (*Committed, error) {
	for _, ref := range refs {
		if ref == "" {
			return nil, record.Invalidf("name the context to trash or to restore")
		}
	}
	all, named, err := s.withThoseBelow(ctx, refs, at == 0)
	if err != nil {
		return nil, err
	}
	var last *journal.Txn // of those that were named
	done, err := journal.StoreOperation(ctx, s.at, what, func(st *journal.StoreTxn) error {
		for i, id := range all {
			t, err := journal.BeginAt(s.at, st.Tx, id)
			if err != nil {
				return err
			}
			there := (at == 0) == (t.Rec.Trashed == 0)
			if i < named {
				last = t
				if there {
					return record.Conflict("%q is %s already", t.Rec.Title, map[bool]string{true: "out of the trash", false: "in the trash"}[at == 0])
				}
			} else if there { // another program was faster
				continue
			}
			if at != 0 {
				if err := t.Unanswered(); err != nil {
					return err
				}
			}
			if err := st.Trash(t, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if last != nil {
		done.Context, done.Title = last.ID, last.Rec.Title
	}
	return done, nil
}

// withThoseBelow returns the contexts that refs name, each once, and after these all contexts below them: with trash those that were trashed at the same
// time, else those that are not in the trash.
func (s *Store) withThoseBelow(ctx context.Context, refs []string, trash bool) (all []ID, named int, err error) {
	err = s.at.DB.View(ctx, func(tx kv.Tx) error {
		all = nil
		seen := map[ID]bool{}
		add := func(id ID) {
			if !seen[id] {
				seen[id] = true
				all = append(all, id)
			}
		}
		for _, ref := range refs {
			id, err := view.ResolveContextIn(s.at, tx, ref, trash)
			if err != nil {
				return err
			}
			add(id)
		}
		named = len(all)
		trashed, below := map[ID]pool.Time{}, map[ID][]ID{}
		err := tx.Scan(record.ContextBucket, kv.Range{}, func(key, value []byte) error {
			id := ID(key)
			rec, err := record.DecodeContext(id, value)
			if err != nil {
				return err
			}
			trashed[id] = rec.Trashed
			if rec.Parent != (ID{}) {
				below[rec.Parent] = append(below[rec.Parent], id)
			}
			return nil
		})
		for i := 0; i < len(all); i++ {
			for _, id := range below[all[i]] {
				if trashed[id] == trashed[all[i]] {
					add(id)
				}
			}
		}
		return err
	})
	return all, named, err
}

// BranchInfo describes a branch.
type BranchInfo struct {
	ID             ID
	Name           string
	Active         bool
	Revision       uint64 // grows with each change, undo included: one number never names two states
	Messages       int
	Head           ID     // zero if the branch is empty
	From           string // the name of the branch from which it was forked; "" if it is no fork or that branch is gone
	At             ID     // the last message that both shared then
	Created        pool.Time
	System, Prompt string // the branch's system prompt and user prompt
	Settings       map[string]json.RawMessage
	AppData        map[string]json.RawMessage
	Sessions       []branch.Session
	Tokens         *branch.Tokens // figures that a program set; nil: none
}

func branchInfo(b *view.BranchInfo) *BranchInfo {
	return &BranchInfo{ID: b.ID, Name: b.Name, Active: b.Active, Revision: b.Revision, Messages: b.Messages, Head: b.Head, From: b.From, At: b.At, Created: b.Created,
		System: b.SystemText, Prompt: b.PromptText, Settings: b.Settings, AppData: b.AppData, Sessions: b.Sessions, Tokens: b.Tokens}
}

// Branches returns all branches in the order in which they were made; of those made in one operation main comes first.
func (c *ChatContext) Branches(ctx context.Context) ([]*BranchInfo, error) {
	var out []*BranchInfo
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *record.ContextRecord) error {
		all, err := view.BranchInfos(tx, c.ID, rec)
		out = out[:0]
		for _, b := range all {
			out = append(out, branchInfo(b))
		}
		return err
	})
	return out, err
}

// Branch returns one branch; "" means the active one.
func (c *ChatContext) Branch(ctx context.Context, name string) (*BranchInfo, error) {
	snap, err := c.Snapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	return snap.Info, nil
}

// Effective returns the settings in force on a branch: the store's, the context's and the branch's, where the later ones take precedence.
func (c *ChatContext) Effective(ctx context.Context, branchName string) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	err := view.On(ctx, c.at(), branchName, func(tx kv.Tx, rec *record.ContextRecord, b *branch.Branch) error {
		var err error
		out, err = view.Effective(tx, rec, b)
		return err
	}, view.SettingsKey)
	return out, err
}

// Ignored returns which settings of a branch, its context and the store are not in force, because this version does not know them, their values are not
// possible, or they do not count in their place. Each error is a *settings.Error of package settings.
func (c *ChatContext) Ignored(ctx context.Context, branchName string) ([]error, error) {
	var out []error
	err := view.On(ctx, c.at(), branchName, func(tx kv.Tx, rec *record.ContextRecord, b *branch.Branch) error {
		places, err := view.Places(tx, rec, b)
		out = settings.Ignored(places...)
		return err
	}, view.SettingsKey)
	return out, err
}

// Tags returns the context's tags: name to message.
func (c *ChatContext) Tags(ctx context.Context) (map[string]ID, error) {
	out := map[string]ID{}
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *record.ContextRecord) error {
		return tx.Scan(record.TagBucket, kv.Prefix(c.ID[:]), func(key, value []byte) error {
			out[string(key[16:])] = ID(value)
			return nil
		})
	})
	return out, err
}

// Marks returns the marks of the context's messages: pinned or excluded.
func (c *ChatContext) Marks(ctx context.Context) (map[ID]string, error) {
	var out map[ID]string
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *record.ContextRecord) (err error) {
		out, err = view.Marks(tx, c.ID)
		return err
	})
	return out, err
}

// Message reads one message of the context. It returns ErrNotFound if the context does not have it.
func (c *ChatContext) Message(ctx context.Context, id ID) (*Message, error) {
	var m *Message
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *record.ContextRecord) (err error) {
		if m, err = pool.Get(tx, c.ID, id); err != nil {
			return err
		}
		if m == nil {
			return NotFound("message", id.String())
		}
		return view.FillCalls(tx, c.ID, m)
	})
	return m, err
}

// Append adds messages at the end of a branch; "" means the active one. See Batch.Append.
func (c *ChatContext) Append(ctx context.Context, branchName string, messages ...*Message) (*Committed, error) {
	b := c.Begin(branchName)
	b.Append(messages...)
	return b.Commit(ctx)
}

// TitleFrom makes a title from the first line of a text: at most 60 characters, without control characters. It may be "".
func TitleFrom(text string) string { return view.TitleFrom(text) }
