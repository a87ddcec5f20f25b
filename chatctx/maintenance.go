package chatctx

import (
	"context"
	"io"

	"github.com/chatctx/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/chatctx/internal/record"
)

// Maintenance takes care of the file as a whole.
type Maintenance struct{ store *Store }

// Maintenance gives the care of the store.
func (s *Store) Maintenance() *Maintenance { return &Maintenance{s} }

// Problem is something that Check found. Invariant is the number in docs/design.md, 0 for a fault of the file itself.
type Problem = care.Problem

// CheckOptions of Check. Full also reads every page of the file and the bytes of every artifact.
type CheckOptions struct{ Full bool }

// Check reads the store, a context in each transaction, and calls problem for what breaks an invariant of docs/design.md. The error is for what kept it from reading on; a store that is only broken gives problems and no error.
func (m *Maintenance) Check(ctx context.Context, o CheckOptions, problem func(Problem)) error {
	return care.Check(ctx, m.store.at, o.Full, problem)
}

// Stats are sizes, in bytes, and counts.
type Stats = care.Stats

// Stats counts what the store holds. A store in memory has no sizes.
func (m *Maintenance) Stats(ctx context.Context) (*Stats, error) {
	return care.Measure(ctx, m.store.at)
}

// ContextSpace is what one context takes: keys and values of its records, and the artifacts that its messages refer to. An artifact that several contexts
// share counts in each.
type ContextSpace = care.ContextSpace

// SpaceByContext reads what each context takes, the largest first. It reads all keys of the store, a context in each transaction.
func (m *Maintenance) SpaceByContext(ctx context.Context) ([]*ContextSpace, error) {
	return care.SpaceByContext(ctx, m.store.at)
}

// GCOptions say what GC may remove. A field that is zero removes nothing.
type GCOptions = care.GCOptions

// Collected says what GC removed, or would remove. Bytes count keys and values.
type Collected = care.Collected

// GC removes what no branch, no kept operation, no tag, mark, session or queue needs: contexts whose time in the trash is over, old operations, then the removed branches
// and the messages that only those could bring back, and artifacts that nothing refers to. Each context is one transaction. The freed pages are used again; Vacuum gives them back.
//
// What programs that died left of answers is put on its branches first, or these go where nothing had come.
func (m *Maintenance) GC(ctx context.Context, o GCOptions) (*Collected, error) {
	for info, err := range m.store.Contexts(ctx, ListOptions{}) {
		if err == nil && !o.DryRun {
			err = (&ChatContext{ID: info.ID, store: m.store}).SettleDead(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return care.GC(ctx, m.store.at, o)
}

// Purged says what a purge removed, or would remove.
type Purged = care.Purged

// PurgeDue reports whether a purge or redaction was cut short: its records are gone, and their bytes are still in the file. Open finishes it unless the store is opened to read, or there is no room for the new file.
func (m *Maintenance) PurgeDue(ctx context.Context) (bool, error) {
	return care.PurgeDue(ctx, m.store.at)
}

// PurgeOptions of PurgeContext, PurgeBranch and PurgeMessages. DryRun only says what would go.
type PurgeOptions struct{ DryRun bool }

// PurgeContext removes a context for good: its messages, branches, decisions, journal, and artifacts that nothing else refers to. Then the file is written
// anew, so that the bytes are gone. It has to be named: "" is ErrInvalid. One line on the store's journal stays that says that it was done.
func (m *Maintenance) PurgeContext(ctx context.Context, ref string, o PurgeOptions) (*Purged, error) {
	return care.PurgeContext(ctx, m.store.at, ref, o.DryRun)
}

// PurgeBranch removes a branch for good, with the messages that no other branch holds. The context's history of undo goes with it: what it could bring back is gone.
// The active branch is not purged (ErrConflict).
func (m *Maintenance) PurgeBranch(ctx context.Context, contextRef, name string, o PurgeOptions) (*Purged, error) {
	return care.PurgeBranch(ctx, m.store.at, contextRef, name, o.DryRun)
}

// PurgeMessages removes messages for good from every branch of their context, with their copies there and in other contexts. The contexts' history of undo goes with
// them, sessions that summarise them are opened again, and a title that was made from one is taken away.
func (m *Maintenance) PurgeMessages(ctx context.Context, contextRef, branchName string, refs []Ref, o PurgeOptions) (*Purged, error) {
	return care.PurgeMessages(ctx, m.store.at, contextRef, branchName, refs, o.DryRun)
}

// Secret is something in a text that is to go, in bytes, and what it is: the name of a rule or an expression.
type Secret = care.Secret

// RedactOptions of Redact.
type RedactOptions = care.RedactOptions

// Redaction is a secret that was found. Shown is its beginning.
type Redaction = care.Redaction

// Redacted says what Redact did, or would do.
type Redacted = care.Redacted

// RedactedMark stands in place of redacted text.
const RedactedMark = record.RedactedMark

// Redact puts a mark in the place of secrets in everything that is stored: it is the one thing that changes messages. Parts that a provider has signed, and its own blocks, would no longer be taken back: they
// stay and are named. The contexts' history of undo goes, since it may hold what was redacted, and the file is written anew, so that the bytes are gone.
func (m *Maintenance) Redact(ctx context.Context, o RedactOptions) (*Redacted, error) {
	return care.Redact(ctx, m.store.at, o)
}

// RepairOptions of Repair.
type RepairOptions = care.RepairOptions

// Mended is something that Repair did, or would do. Invariant is a number of docs/design.md, 0 for the file itself.
type Mended = care.Mended

// Repaired says what Repair did.
type Repaired = care.Repaired

// Repair makes every invariant hold again, as far as what is left allows, after a backup. A context is one transaction. What is readable stays; what has lost its place comes onto the
// branch recovered; what cannot be read is in the backup alone. Where the pages themselves cannot be read it fails with ErrDamaged: Salvage reads what it can into a new file.
func (m *Maintenance) Repair(ctx context.Context, o RepairOptions) (*Repaired, error) {
	return care.Repair(ctx, m.store.at, o)
}

// Vacuum writes the file anew without free space. Other programs wait or go on with the new file. ErrInvalid on an engine that keeps no file.
func (m *Maintenance) Vacuum(ctx context.Context) error {
	return care.Vacuum(ctx, m.store.at)
}

// Backup writes a copy of the store, one state of it, while others go on. The copy is a store. ErrInvalid on an engine that keeps no file.
func (m *Maintenance) Backup(ctx context.Context, w io.Writer) error {
	return care.Backup(ctx, m.store.at, w)
}

// Restored says what Restore did. Kept is where the store that was there before lies now, "" where there was none.
type Restored = care.Restored

// Restore puts a copy of a backup in the place of the store at path, or where there is none yet. The backup is read whole first: one with a problem is refused
// (ErrDamaged). What was at path before, whole or not, is kept beside it. Whoever uses the store goes on with the restored one.
func Restore(ctx context.Context, path, backup string) (*Restored, error) {
	return care.Restore(ctx, path, backup)
}

// CopyOptions of CopyStore.
type CopyOptions = care.CopyOptions

// Copied says what CopyStore did.
type Copied = care.Copied

// CopyStore makes at to, a file or a URL, a store with everything that the one at from has: journal, undo, search index and all; claims end. The target is not there yet, or is an empty store, or what an earlier
// copy of the same store began, which is then gone on with: ErrConflict for anything else. In the end a full check finds nothing and both sides have one digest. Unless o.Keep is set, the old store opens no more
// from the beginning of the copy on and says where it went.
func CopyStore(ctx context.Context, from, to string, o Options, co CopyOptions) (*Copied, error) {
	return care.CopyStore(ctx, from, to, o, co)
}

// Salvaged says what Salvage read.
type Salvaged = care.Salvaged

// Salvage reads whatever can still be read of the file from, however broken, into a new store at to, which must not be there (ErrConflict): contexts, branches, messages,
// prompts, calls and artifacts. What was removed may come back with them. The journal does not come along, nor do tags, marks, rules and tools.
func Salvage(ctx context.Context, from, to string, o Options) (*Salvaged, error) {
	return care.Salvage(ctx, from, to, o)
}

// Index puts all that waits into the search index, in portions, and calls progress, if it is not nil, after each with how many documents are done.
func (m *Maintenance) Index(ctx context.Context, progress func(done int)) error {
	return find.Index(ctx, m.store.at, progress)
}

// Reindex makes the search index anew from what the store holds. Others go on meanwhile; until it is done searches look through everything. One that breaks off is
// to be begun again.
func (m *Maintenance) Reindex(ctx context.Context, progress func(done int)) error {
	return find.Reindex(ctx, m.store.at, progress)
}

// IndexState says how far the search index is. Waiting counts the documents that are not in it yet, up to 10,000.
type IndexState struct {
	Whole   bool
	Waiting int
}

// IndexState reads how far the search index is.
func (m *Maintenance) IndexState(ctx context.Context) (state IndexState, err error) {
	state.Whole, state.Waiting, err = find.Indexed(ctx, m.store.at)
	return state, err
}
