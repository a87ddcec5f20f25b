package chatctx

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/text/cases"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// ChatContext is one conversation with all its branches. It holds nothing but its id and its store.
type ChatContext struct {
	ID    ID
	store *Store
}

// Store is the store that the context lies in.
func (c *ChatContext) Store() *Store { return c.store }

// MainBranch is the branch that every context begins with.
const MainBranch = "main"

// NewContext is what a new context begins with.
type NewContext struct {
	Title          string
	System, Prompt string
	Settings       map[string]json.RawMessage
	Parent         ID         // of a sub-context
	Messages       []*Message // its history
	Stay           bool       // do not make it the store's current context
}

// New makes a context with the branch main.
func (s *Store) New(ctx context.Context, n NewContext) (*ChatContext, error) {
	if err := n.ready(s); err != nil {
		return nil, err
	}
	id := pool.NewID()
	_, err := s.storeOperation(ctx, "new", func(st *storeTxn) error {
		t, err := st.newContext(id, n.Title, n.Parent, n.Settings)
		if err != nil {
			return err
		}
		if err := st.beginWith(t, &n); err != nil {
			return err
		}
		return st.made(t, !n.Stay)
	})
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: s}, nil
}

// newContext begins a context in a transaction; made ends it.
func (st *storeTxn) newContext(id ID, title string, parent ID, settings map[string]json.RawMessage) (*txn, error) {
	set, _, err := mergeSettings(nil, settings)
	if err != nil {
		return nil, err
	}
	t := &txn{tx: st.tx, store: st.store, now: st.now, id: id, branches: map[ID]*loaded{},
		rec: &contextRecord{Title: title, Parent: parent, Settings: set, Created: st.now, NextOperation: 1}}
	if t.target, err = t.create(MainBranch, nil); err == nil {
		t.rec.Active = t.target.ID
	}
	return t, err
}

// made writes the record of a new context. To undo its making is to trash it.
func (st *storeTxn) made(t *txn, current bool) error {
	was, err := encMode.Marshal(max(t.now, 1))
	if err != nil {
		return err
	}
	if current {
		old, err := t.tx.Get(metaBucket, metaCurrent)
		if err != nil {
			return err
		}
		st.changes = append(st.changes, change{Kind: recordChange, Bucket: metaBucket, Key: metaCurrent, Old: bytes.Clone(old)})
		if err := t.tx.Put(metaBucket, metaCurrent, t.id[:]); err != nil {
			return err
		}
	}
	st.changes = append(st.changes, contextChange(t.id, map[uint64]cbor.RawMessage{trashedField: was}))
	st.subjects = append(st.subjects, t)
	return t.putRecord()
}

// FromHistory makes a context of messages.
func (s *Store) FromHistory(ctx context.Context, title string, messages []*Message) (*ChatContext, error) {
	return s.New(ctx, NewContext{Title: title, Messages: messages})
}

// Context finds a context by title, id, unique prefix or ending; "" is the store's current one. Errors to test for: ErrNotFound, ErrAmbiguous.
func (s *Store) Context(ctx context.Context, ref string) (*ChatContext, error) {
	id, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: s}, nil
}

// find resolves a reference to a context in a transaction of its own.
func (s *Store) find(ctx context.Context, ref string) (id ID, err error) {
	err = s.db.View(ctx, func(tx kv.Tx) error {
		id, err = resolveContext(tx, ref)
		return err
	})
	return id, err
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
}

func infoOf(tx kv.Tx, id ID, rec *contextRecord) (*ContextInfo, error) {
	current, err := currentContext(tx)
	if err != nil {
		return nil, err
	}
	active, err := branch.NameOf(tx, id, rec.Active)
	info := &ContextInfo{ID: id, Title: rec.Title, Derived: rec.Derived, Current: id == current, Active: active, Branches: int(rec.Branches),
		Messages: int(rec.Messages), Created: rec.Created, Updated: rec.Updated, Trashed: rec.Trashed, Parent: rec.Parent,
		Settings: rec.Settings, AppData: rec.AppData}
	if err == nil && rec.Parent != (ID{}) {
		parent, _, err := getContext(tx, rec.Parent)
		if err != nil {
			return nil, err
		}
		info.ParentGone = parent == nil
	}
	return info, err
}

// Info reads what there is to say about the context.
func (c *ChatContext) Info(ctx context.Context) (*ContextInfo, error) {
	var info *ContextInfo
	err := c.view(ctx, func(tx kv.Tx, rec *contextRecord) (err error) {
		info, err = infoOf(tx, c.ID, rec)
		return err
	})
	return info, err
}

// view reads the context in a short transaction.
func (c *ChatContext) view(ctx context.Context, fn func(kv.Tx, *contextRecord) error) error {
	return c.store.db.View(ctx, func(tx kv.Tx) error {
		rec, _, err := getContext(tx, c.ID)
		if err != nil {
			return err
		}
		if rec == nil {
			return NotFound("context", c.ID.String())
		}
		return fn(tx, rec)
	})
}

// ListOptions narrow a list of contexts.
type ListOptions struct {
	Word         string    // in the title, in any case
	Since, Until pool.Time // last changed
	Trash        bool      // those in the trash instead
	Parent       ID        // only children of this context
}

func (o *ListOptions) takes(fold cases.Caser, info *ContextInfo) bool {
	return (o.Trash == (info.Trashed != 0)) && (o.Since == 0 || info.Updated >= o.Since) && (o.Until == 0 || info.Updated < o.Until) &&
		(o.Parent == ID{} || info.Parent == o.Parent) &&
		(o.Word == "" || strings.Contains(fold.String(info.Title), fold.String(o.Word)))
}

// listBatch is how many contexts are read in one transaction.
const listBatch = 256

// Contexts gives contexts, last changed first. They are read in short transactions: one that changes meanwhile is given once, as it is then.
func (s *Store) Contexts(ctx context.Context, o ListOptions) iter.Seq2[*ContextInfo, error] {
	return func(yield func(*ContextInfo, error) bool) {
		ids, err := s.recent(ctx)
		fold := cases.Fold()
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

// recent gives the ids of all contexts, last changed first.
func (s *Store) recent(ctx context.Context) ([]ID, error) {
	var ids []ID
	err := s.db.View(ctx, func(tx kv.Tx) error {
		ids = ids[:0]
		return tx.Scan(recentBucket, kv.Range{Reverse: true}, func(key, _ []byte) error {
			ids = append(ids, ID(key[8:]))
			return nil
		})
	})
	return ids, err
}

func (s *Store) infos(ctx context.Context, ids []ID) ([]*ContextInfo, error) {
	var out []*ContextInfo
	err := s.db.View(ctx, func(tx kv.Tx) error {
		out = out[:0]
		for _, id := range ids {
			rec, _, err := getContext(tx, id)
			if err != nil {
				return err
			}
			if rec == nil {
				continue
			}
			info, err := infoOf(tx, id, rec)
			if err != nil {
				return err
			}
			out = append(out, info)
		}
		return nil
	})
	return out, err
}

// Use makes a context the store's current one.
func (s *Store) Use(ctx context.Context, ref string) (*ContextInfo, error) {
	var info *ContextInfo
	err := s.db.Update(ctx, func(tx kv.RwTx) error {
		t, err := s.begin(tx, ref, "")
		if err != nil {
			return err
		}
		if err := tx.Put(metaBucket, metaCurrent, t.id[:]); err != nil {
			return err
		}
		info, err = infoOf(tx, t.id, t.rec)
		return err
	})
	return info, err
}

// Trash moves a context to the trash. Nothing of it is lost.
func (s *Store) Trash(ctx context.Context, ref string) (*Committed, error) {
	return s.trash(ctx, "rm", ref, s.now())
}

// Restore takes a context out of the trash.
func (s *Store) Restore(ctx context.Context, ref string) (*Committed, error) {
	return s.trash(ctx, "restore", ref, 0)
}

func (s *Store) trash(ctx context.Context, what, ref string, at pool.Time) (*Committed, error) {
	return s.storeOperation(ctx, what, func(st *storeTxn) error {
		id, err := resolveContextIn(st.tx, ref, at == 0)
		if err != nil {
			return err
		}
		t, err := s.beginAt(st.tx, id)
		if err != nil {
			return err
		}
		if (at == 0) == (t.rec.Trashed == 0) {
			return conflict("%q is %s already", t.rec.Title, map[bool]string{true: "out of the trash", false: "in the trash"}[at == 0])
		}
		return st.trash(t, at)
	})
}

// BranchInfo describes a branch.
type BranchInfo struct {
	branch.Branch
	From       string // what the branch is called that it was forked from; "" where it is of none, or of one that is gone
	Active     bool
	Messages   int
	Head       ID // zero on an empty branch
	SystemText string
	PromptText string
}

func branchInfo(tx kv.Tx, id ID, rec *contextRecord, b *branch.Branch) (*BranchInfo, error) {
	info := &BranchInfo{Branch: *b, Active: b.ID == rec.Active, Messages: b.Len()}
	from, err := branch.Get(tx, id, b.From)
	if err != nil {
		return nil, err
	}
	if from != nil && from.Removed == 0 {
		info.From = from.Name
	}
	if info.Head, err = branch.Head(tx, id, b.Pieces); err != nil {
		return nil, err
	}
	if info.SystemText, err = branch.Prompt(tx, id, b.System); err != nil {
		return nil, err
	}
	info.PromptText, err = branch.Prompt(tx, id, b.Prompt)
	return info, err
}

// Branches are all branches, in the order they were made, main first.
func (c *ChatContext) Branches(ctx context.Context) ([]*BranchInfo, error) {
	var out []*BranchInfo
	err := c.view(ctx, func(tx kv.Tx, rec *contextRecord) error {
		var err error
		out, err = branchInfos(tx, c.ID, rec)
		return err
	})
	return out, err
}

func branchInfos(tx kv.Tx, id ID, rec *contextRecord) ([]*BranchInfo, error) {
	var out []*BranchInfo
	err := branch.List(tx, id, func(b *branch.Branch) error {
		info, err := branchInfo(tx, id, rec, b)
		out = append(out, info)
		return err
	})
	sortBranches(out)
	return out, err
}

// Branch is one branch; "" is the active one.
func (c *ChatContext) Branch(ctx context.Context, name string) (*BranchInfo, error) {
	var info *BranchInfo
	err := c.view(ctx, func(tx kv.Tx, rec *contextRecord) error {
		b, err := branchOf(tx, c.ID, rec, name)
		if err != nil {
			return err
		}
		info, err = branchInfo(tx, c.ID, rec, b)
		return err
	})
	return info, err
}

func branchOf(tx kv.Tx, id ID, rec *contextRecord, name string) (*branch.Branch, error) {
	if name == "" {
		return activeBranch(tx, id, rec)
	}
	b, err := branch.Find(tx, id, name)
	if err == nil && b == nil {
		err = NotFound("branch", name)
	}
	return b, err
}

func activeBranch(tx kv.Tx, id ID, rec *contextRecord) (*branch.Branch, error) {
	b, err := branch.Get(tx, id, rec.Active)
	if err == nil && (b == nil || b.Removed != 0) {
		err = damaged("the active branch of context %s is not there: chatctx repair", id)
	}
	return b, err
}

// Effective are the settings in force on a branch: the store's, the context's, the branch's, later ones winning.
func (c *ChatContext) Effective(ctx context.Context, branchName string) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	err := c.view(ctx, func(tx kv.Tx, rec *contextRecord) error {
		b, err := branchOf(tx, c.ID, rec, branchName)
		if err != nil {
			return err
		}
		out, err = effective(tx, rec, b)
		return err
	})
	return out, err
}

func effective(tx kv.Tx, rec *contextRecord, b *branch.Branch) (map[string]json.RawMessage, error) {
	out, err := storeSettings(tx)
	if err != nil {
		return nil, err
	}
	for _, level := range []map[string]json.RawMessage{rec.Settings, b.Settings} {
		for k, v := range level {
			out[k] = v
		}
	}
	return out, nil
}

// Tags are the context's tags: name to message.
func (c *ChatContext) Tags(ctx context.Context) (map[string]ID, error) {
	out := map[string]ID{}
	err := c.view(ctx, func(tx kv.Tx, _ *contextRecord) error {
		return tx.Scan(tagBucket, kv.Prefix(c.ID[:]), func(key, value []byte) error {
			out[string(key[16:])] = ID(value)
			return nil
		})
	})
	return out, err
}

// Marks are the context's marked messages: pinned or excluded.
func (c *ChatContext) Marks(ctx context.Context) (map[ID]string, error) {
	var out map[ID]string
	err := c.view(ctx, func(tx kv.Tx, _ *contextRecord) (err error) {
		out, err = marks(tx, c.ID)
		return err
	})
	return out, err
}

func marks(tx kv.Tx, id ID) (map[ID]string, error) {
	out := map[ID]string{}
	err := tx.Scan(markBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		out[ID(key[16:])] = string(value)
		return nil
	})
	return out, err
}

// Message reads one message of the context. ErrNotFound where it is not there.
func (c *ChatContext) Message(ctx context.Context, id ID) (*Message, error) {
	var m *Message
	err := c.view(ctx, func(tx kv.Tx, _ *contextRecord) (err error) {
		if m, err = pool.Get(tx, c.ID, id); err != nil {
			return err
		}
		if m == nil {
			return NotFound("message", id.String())
		}
		return fillCalls(tx, c.ID, m)
	})
	return m, err
}

// Append adds messages at the end of a branch, "" for the active one.
func (c *ChatContext) Append(ctx context.Context, branchName string, messages ...*Message) (*Appended, error) {
	b := c.Begin(branchName)
	res := b.Append(messages, AppendOptions{})
	if _, err := b.Commit(ctx); err != nil {
		return nil, err
	}
	return res, nil
}
