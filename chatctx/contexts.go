package chatctx

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
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
const MainBranch = base.MainBranch

// New makes a context with the branch main.
func (s *Store) New(ctx context.Context, n record.NewContext) (*ChatContext, error) {
	if err := journal.Ready(s.at(), &n); err != nil {
		return nil, err
	}
	id := pool.NewID()
	made := id
	_, err := journal.StoreOperation(ctx, s.at(), journal.NewWhat, func(st *journal.StoreTxn) error {
		if n.IfNone {
			current, err := st.GoToCurrent()
			if id = cmp.Or(current, made); err != nil || current != (ID{}) {
				return err
			}
		}
		t, err := st.NewContext(id, n.Title, n.Parent, n.Settings)
		if err != nil {
			return err
		}
		if err := st.BeginWith(t, &n); err != nil {
			return err
		}
		return st.Made(t, !n.Stay)
	})
	return s.made(id, err)
}

// made returns the context with an id, unless there is an error.
func (s *Store) made(id ID, err error) (*ChatContext, error) {
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: s}, nil
}

// Context finds a context: the current one for "", else by its whole id, its title, or a part of its id (the first or last digits, four at least) or of its
// title, ignoring case. Of contexts whose titles fit equally well, those outside the trash take precedence. Errors to test for: ErrNotFound, and
// ErrAmbiguous if several fit. Programs that keep ids should pass the whole id: then one record is read.
func (s *Store) Context(ctx context.Context, ref string) (*ChatContext, error) {
	id, err := view.Find(ctx, s.at(), ref)
	return s.made(id, err)
}

// The labels with a meaning in lists: pinned contexts come first, archived ones are left out.
const (
	Pinned   = view.Pinned
	Archived = view.Archived
)

// Info reads the description of the context.
func (c *ChatContext) Info(ctx context.Context) (*record.ContextInfo, error) {
	return view.Info(ctx, c.at())
}

// Contexts returns contexts, the last changed first. They are read in short transactions; one that changes meanwhile is returned once, in its state at that
// time.
func (s *Store) Contexts(ctx context.Context, o record.ListOptions) iter.Seq2[*record.ContextInfo, error] {
	return view.Contexts(ctx, s.at(), o)
}

// Use makes a context the current one: the store's, or this person's if Options.Place keeps that.
func (s *Store) Use(ctx context.Context, ref string) (*record.ContextInfo, error) {
	if s.at().Place != nil {
		return s.usePlace(ctx, ref)
	}
	var info *record.ContextInfo
	err := s.at().Update(ctx, func(tx kv.RwTx) error {
		t, err := journal.Begin(s.at(), tx, ref, "")
		if err != nil {
			return err
		}
		if err := tx.Put(base.MetaBucket, base.MetaCurrent, t.ID[:]); err != nil {
			return err
		}
		info, err = view.InfoOf(s.at(), tx, t.ID, t.Rec)
		return err
	})
	return info, err
}

func (s *Store) usePlace(ctx context.Context, ref string) (*record.ContextInfo, error) {
	c, err := s.Context(ctx, ref)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Trashed != 0 {
		return nil, base.Conflict("the conversation %q is in the trash: chatctx restore %s", info.Title, record.Short(info.ID))
	}
	info.Current = true
	return info, s.at().Place.Use(info.ID)
}

// Trash moves contexts to the trash with all contexts below them, as one operation. Nothing of them is lost. Each must be named: "" is an ErrInvalid here.
// The result's Context and Title are those of the last one.
func (s *Store) Trash(ctx context.Context, refs ...string) (*record.Committed, error) {
	return s.trash(ctx, "rm", s.at().Now(), refs)
}

// Restore takes contexts out of the trash, with those below them that were trashed together with them, as one operation.
func (s *Store) Restore(ctx context.Context, refs ...string) (*record.Committed, error) {
	return s.trash(ctx, "restore", 0, refs)
}

func (s *Store) trash(ctx context.Context, what string, at pool.Time, refs []string) (*record.Committed, error) {
	for _, ref := range refs {
		if ref == "" {
			return nil, base.Invalidf("name the conversation to trash or to restore")
		}
	}
	all, named, err := s.withThoseBelow(ctx, refs, at == 0)
	if err != nil {
		return nil, err
	}
	var last *journal.Txn // of those that were named
	done, err := journal.StoreOperation(ctx, s.at(), what, func(st *journal.StoreTxn) error {
		for i, id := range all {
			t, err := journal.BeginAt(s.at(), st.Tx, id)
			if err != nil {
				return err
			}
			there := (at == 0) == (t.Rec.Trashed == 0)
			if i < named {
				last = t
				if there {
					return base.Conflict("%q is %s already", t.Rec.Title, map[bool]string{true: "out of the trash", false: "in the trash"}[at == 0])
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
	err = s.at().DB.View(ctx, func(tx kv.Tx) error {
		all = nil
		seen := map[ID]bool{}
		add := func(id ID) {
			if !seen[id] {
				seen[id] = true
				all = append(all, id)
			}
		}
		for _, ref := range refs {
			id, err := view.ResolveContextIn(s.at(), tx, ref, trash)
			if err != nil {
				return err
			}
			add(id)
		}
		named = len(all)
		trashed, below := map[ID]pool.Time{}, map[ID][]ID{}
		err := tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
			id := ID(key)
			rec, err := base.DecodeContext(id, value)
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

func branchInfo(b *view.BranchInfo) *record.BranchInfo {
	return &record.BranchInfo{ID: b.ID, Name: b.Name, Active: b.Active, Revision: b.Revision, Messages: b.Messages, Turns: b.Turns, Head: b.Head, From: b.From, At: b.At,
		Created: b.Created, SystemID: b.Branch.System, PromptID: b.Branch.Prompt, System: b.SystemText, Prompt: b.PromptText, Settings: b.Settings, AppData: b.AppData, Sessions: b.Sessions, Tokens: b.Tokens}
}

// Branches returns all branches in the order in which they were made; of those made in one operation main comes first.
func (c *ChatContext) Branches(ctx context.Context) ([]*record.BranchInfo, error) {
	var out []*record.BranchInfo
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *base.ContextRecord) error {
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
func (c *ChatContext) Branch(ctx context.Context, name string) (*record.BranchInfo, error) {
	snap, err := c.Snapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	return snap.Info, nil
}

// Effective returns the settings in force on a branch: the store's, the context's and the branch's, where the later ones take precedence.
func (c *ChatContext) Effective(ctx context.Context, branchName string) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	err := view.On(ctx, c.at(), branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		var err error
		out, err = view.Effective(tx, rec, b)
		return err
	}, view.SettingsKey)
	return out, err
}

// Tags returns the context's tags: name to message.
func (c *ChatContext) Tags(ctx context.Context) (map[string]ID, error) {
	out := map[string]ID{}
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) error {
		return tx.Scan(base.TagBucket, kv.Prefix(c.ID[:]), func(key, value []byte) error {
			out[string(key[16:])] = ID(value)
			return nil
		})
	})
	return out, err
}

// Marks returns the marks of the context's messages: pinned or excluded.
func (c *ChatContext) Marks(ctx context.Context) (map[ID]string, error) {
	var out map[ID]string
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) (err error) {
		out, err = view.Marks(tx, c.ID)
		return err
	})
	return out, err
}

// Message reads one message of the context. It returns ErrNotFound if the context does not have it.
func (c *ChatContext) Message(ctx context.Context, id ID) (*Message, error) {
	var m *Message
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) (err error) {
		if m, err = poolstore.Get(tx, c.ID, id); err != nil {
			return err
		}
		if m == nil {
			return base.NotFound("message", id.String())
		}
		return view.FillCalls(tx, c.ID, m)
	})
	return m, err
}

// Append adds messages at the end of a branch; "" means the active one. See Batch.Append.
func (c *ChatContext) Append(ctx context.Context, branchName string, messages ...*Message) (*record.Committed, error) {
	b := c.Begin(branchName)
	b.Append(messages...)
	return b.Commit(ctx)
}
