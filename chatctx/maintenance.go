package chatctx

import (
	"context"
	"io"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/find"
)

// Maintenance takes care of the file as a whole.
type Maintenance struct{ store *Store }

// Maintenance returns the functions that take care of the store's file.
func (s *Store) Maintenance() *Maintenance { return &Maintenance{s} }

// CheckOptions are options of Check. Full also reads every page of the file and the bytes of every artifact.
type CheckOptions struct{ Full bool }

// Check reads the store, a context in each transaction, and calls problem for each fault by the invariants of docs/design.md. It returns an error only if
// it cannot read on; a damaged store gives problems and no error.
func (m *Maintenance) Check(ctx context.Context, o CheckOptions, problem func(record.Problem)) error {
	return care.Check(ctx, m.store.at(), o.Full, problem)
}

// DoubtPlace is the Where of the problem that the newest change may be lost.
const DoubtPlace = care.DoubtPlace

// Stats counts what the store holds. On an engine without sizes, such as memory, the sizes are zero.
func (m *Maintenance) Stats(ctx context.Context) (*record.Stats, error) {
	return care.Measure(ctx, m.store.at())
}

// GC removes what is no longer needed: contexts whose time in the trash is over, old operations, then removed branches and messages that only those
// operations could bring back, and artifacts without a reference. A message is needed by a branch, a kept operation, a tag, a mark, a session or the queue;
// what says only what a title or a digest took stays too. Each context is one transaction. The store uses the freed pages again; Vacuum gives them back.
//
// First GC puts what dead programs left of answers on their branches, or removes branches made for answers of which nothing had come.
func (m *Maintenance) GC(ctx context.Context, o record.GCOptions) (out *record.Collected, err error) {
	err = m.run(o.DryRun, func(s *Store) error {
		for info, err := range s.Contexts(ctx, record.ListOptions{}) {
			if err == nil {
				err = (&ChatContext{ID: info.ID, store: s}).SettleDead(ctx)
			}
			if err != nil {
				return err
			}
		}
		out, err = care.GC(ctx, s.at(), o)
		return err
	})
	return out, err
}

// run calls do with the store, or with a trial of it if dry is set. So what a dry run returns is what the run would return.
func (m *Maintenance) run(dry bool, do func(*Store) error) error {
	if dry {
		return m.store.Trial(do)
	}
	return do(m.store)
}

// PurgeOptions are options of PurgeContext, PurgeBranch and PurgeMessages. With DryRun they only return what they would remove. With Forget no mark stays of
// what was purged, and an import of its source brings it back.
type PurgeOptions struct{ DryRun, Forget bool }

// PurgeContext removes a context for good: its messages, branches, decisions and journal, and artifacts that nothing else refers to. Then it rewrites the
// file, so that the bytes are gone. The context must be named: "" is an ErrInvalid. One line on the store's journal stays and says that there was a purge.
func (m *Maintenance) PurgeContext(ctx context.Context, ref string, o PurgeOptions) (out *record.Purged, err error) {
	err = m.run(o.DryRun, func(s *Store) error { out, err = care.PurgeContext(ctx, s.at(), ref, o.Forget); return err })
	return out, err
}

// PurgeBranch removes a branch for good, with the messages that no other branch holds, and the context's undo history, since that could bring them back. It
// refuses the active branch (ErrConflict).
func (m *Maintenance) PurgeBranch(ctx context.Context, contextRef, name string, o PurgeOptions) (out *record.Purged, err error) {
	err = m.run(o.DryRun, func(s *Store) error { out, err = care.PurgeBranch(ctx, s.at(), contextRef, name, o.Forget); return err })
	return out, err
}

// PurgeMessages removes messages for good from every branch of their context, with their copies there and in other contexts. It also drops the undo history
// of these contexts, reopens sessions that summarise the messages, and removes a title that was made from one.
func (m *Maintenance) PurgeMessages(ctx context.Context, contextRef, branchName string, refs []record.Ref, o PurgeOptions) (out *record.Purged, err error) {
	err = m.run(o.DryRun, func(s *Store) error {
		out, err = care.PurgeMessages(ctx, s.at(), contextRef, branchName, refs, o.Forget)
		return err
	})
	return out, err
}

// RedactedMark replaces redacted text.
const RedactedMark = base.RedactedMark

// Redact replaces secrets by a mark in everything that is stored; it is the only operation that changes messages. Some secrets stay and are named with the
// reason: those in parts that a provider has signed and in its own blocks, which the provider would not accept changed, those in names by which other
// records are found, and those in files that are no text. A file of text keeps its encoding. The undo history of the contexts goes, since it may hold secrets, and the file is rewritten, so that the bytes are gone.
func (m *Maintenance) Redact(ctx context.Context, o record.RedactOptions) (out *record.Redacted, err error) {
	err = m.run(o.DryRun, func(s *Store) error { out, err = care.Redact(ctx, s.at(), o); return err })
	return out, err
}

// Repair makes every invariant hold again, as far as possible, after a backup. All records are mended in one transaction. Readable records stay; messages
// that have lost their place come onto the branch recovered; what cannot be read is in the backup alone. If the pages themselves cannot be read, it fails
// with ErrDamaged; then Salvage reads what it can into a new file.
func (m *Maintenance) Repair(ctx context.Context, o record.RepairOptions) (*record.Repaired, error) {
	return care.Repair(ctx, m.store.at(), o)
}

// Vacuum rewrites the file without free space, and finishes a purge that was cut short. Other programs wait or go on with the new file. It returns
// ErrInvalid if the engine keeps no file.
func (m *Maintenance) Vacuum(ctx context.Context) error {
	return care.Vacuum(ctx, m.store.at())
}

// Backup writes a copy of one state of the store while other programs go on. The copy is a store. It returns ErrInvalid if the engine keeps no file, and
// ErrConflict while a purge is unfinished, since the copy would have the purged bytes.
func (m *Maintenance) Backup(ctx context.Context, w io.Writer) error {
	return care.Backup(ctx, m.store.at(), w)
}

// Restore puts a copy of a backup in the place of the store at path, or at path if there is none. It first checks the whole backup and refuses one with a
// problem (ErrDamaged). It keeps the file that was at path, whole or not, beside it. Programs that use the store go on with the restored one.
func Restore(ctx context.Context, path, backup string) (*record.Restored, error) {
	return care.Restore(ctx, path, backup)
}

// CopyStore copies the store at from to a store at to, each a file or a URL, with its journal, undo, search index and everything else; claims end in the
// copy. The target must not exist, be an empty store, or be an unfinished copy of the same store, which CopyStore then continues; else it returns
// ErrConflict. At the end it checks the copy in full and compares the digests of both. Unless co.Keep is set, the original refuses to open from the
// beginning of the copy on and says where the store went, until ReopenStore takes it back. A store on a server is copied by its owner alone, else CopyStore
// returns fs.ErrPermission.
func CopyStore(ctx context.Context, from, to string, o Options, co record.CopyOptions) (*record.Copied, error) {
	return care.CopyStore(ctx, from, to, o, co)
}

// Salvage reads everything that can still be read of the file from, however broken, into a new store at to, which must not exist (ErrConflict): contexts,
// branches, messages, prompts, calls and artifacts. Removed ones may come back with them. The journal, tags, marks, rules and tools are not read. The error
// is ErrNotOurs where nothing of a store is left, and then no new one is made.
func Salvage(ctx context.Context, from, to string, o Options) (*record.Salvaged, error) {
	return care.Salvage(ctx, from, to, o)
}

// Index puts all waiting documents into the search index, in portions. After each portion it calls progress, if that is not nil, with the number of
// documents done.
func (m *Maintenance) Index(ctx context.Context, progress func(done int)) error {
	return find.Index(ctx, m.store.at(), progress)
}

// IndexState is the state of the search index: whether it is complete, and how many documents wait for it, counted up to 10,000.
type IndexState struct {
	Whole   bool
	Waiting int
}

// IndexState reads the state of the search index.
func (m *Maintenance) IndexState(ctx context.Context) (state IndexState, err error) {
	state.Whole, state.Waiting, err = find.Indexed(ctx, m.store.at())
	return state, err
}
