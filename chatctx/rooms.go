package chatctx

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/chatctx/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// Backup writes a copy of the store, one state of it, while others go on. The copy is a store. ErrInvalid on an engine that keeps no file.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	return care.Backup(ctx, s.at, w)
}

// Call finds a call. With contextRef it is looked for in that context, read on a branch ("" the active one); without, first in the current context and
// then in all others. Errors to test for: ErrNotFound, ErrAmbiguous.
func (s *Store) Call(ctx context.Context, contextRef, branchName string, ref CallRef) (*Call, error) {
	return toolcall.ReadCall(ctx, s.at, contextRef, branchName, ref)
}

// CallLog gives all steps of the calls that ever waited in a context, or with the zero id in all of them, oldest first. The last step of each call leads to its present state.
func (s *Store) CallLog(ctx context.Context, context ID) ([]*CallStep, error) {
	return toolcall.CallLog(ctx, s.at, context)
}

// Calls gives the open calls of all contexts, oldest first: those that wait for a decision, for being run, or for a word about what became of them. Where the store can be
// written, calls whose time is over and calls whose program died are settled on the way. Calls are read in short transactions.
func (s *Store) Calls(ctx context.Context, f CallFilter) iter.Seq2[*Call, error] {
	return toolcall.Calls(ctx, s.at, f)
}

// Check reads the store, a context in each transaction, and calls problem for what breaks an invariant of docs/design.md. full also reads every page and every
// artifact's bytes. The error is for what kept it from reading on; a store that is only broken gives problems and no error.
func (s *Store) Check(ctx context.Context, full bool, problem func(Problem)) error {
	return care.Check(ctx, s.at, full, problem)
}

// ClaimCall makes a call running, durably, before its tool is started: of several who try, one gets it. ErrConflict, with the state, for the others and for
// calls that may not be run. The context and the call are named as in Store.Call.
func (s *Store) ClaimCall(ctx context.Context, contextRef, branchName string, ref CallRef, o ClaimOptions) (*CallClaim, error) {
	return toolcall.ClaimCall(ctx, s.at, contextRef, branchName, ref, o)
}

// ClaimOf is the claim of a call that another process took, by its token. Whether it is still held, Renew and Resolve say.
func (s *Store) ClaimOf(c *Call, token ID, hold time.Duration) *CallClaim {
	return toolcall.ClaimOf(s.at, c, token, hold)
}

// Close ends the use of the store. Everything that had returned without an error is durable already.
func (s *Store) Close() error {
	return s.at.Close()
}

// GC removes what no branch, no kept operation, no tag, mark, session or queue needs: contexts whose time in the trash is over, old operations, then the removed branches
// and the messages that only those could bring back, and artifacts that nothing refers to. Each context is one transaction. The freed pages are used again; Vacuum gives them back.
func (s *Store) GC(ctx context.Context, o GCOptions) (*Collected, error) {
	return care.GC(ctx, s.at, o)
}

// Import stores conversations in one transaction. See ImportRun for several.
func (s *Store) Import(ctx context.Context, in []*Incoming) ([]Imported, error) {
	return intake.Import(ctx, s.at, in)
}

// ImportRun begins the imports of one command.
func (s *Store) ImportRun() *ImportRun {
	return intake.NewImportRun(s.at)
}

// Index puts all that waits into the search index, in portions, and calls progress, if it is not nil, after each with how many documents are done.
func (s *Store) Index(ctx context.Context, progress func(done int)) error {
	return find.Index(ctx, s.at, progress)
}

// Indexed reports whether there is a whole search index, and how many documents wait to come into it, counted up to 10,000.
func (s *Store) Indexed(ctx context.Context) (whole bool, waiting int, err error) {
	return find.Indexed(ctx, s.at)
}

// Known counts the messages of a conversation that the store has already, and says whether it has the conversation. Nothing is written.
func (s *Store) Known(ctx context.Context, in *Incoming) (messages int, has bool, err error) {
	return intake.Known(ctx, s.at, in)
}

// KnownFile finds what was noted of a file and the contexts of its conversations, in order. It gives nil where the file has to be read: it was not
// noted, or a conversation is gone, in the trash or was imported in another version since. f has the name, size and reader; sum gives
// the SHA-256 and is called only when there is one of that name and size.
func (s *Store) KnownFile(ctx context.Context, f ImportedFile, sum func() (pool.Hash, error)) (*ImportedFile, []Imported, error) {
	return intake.KnownFile(ctx, s.at, f, sum)
}

// OpenCalls gives the open calls that a branch ("" the active one) holds, in the order of its history, settled like those of Store.Calls.
func (c *ChatContext) OpenCalls(ctx context.Context, branchName string) ([]*Call, error) {
	return toolcall.OpenCalls(ctx, c.at(), branchName)
}

// Operations gives a context's journal, newest first; "" is the current context.
func (s *Store) Operations(ctx context.Context, contextRef string) iter.Seq2[*Operation, error] {
	return journal.Operations(ctx, s.at, contextRef)
}

// PurgeBranch removes a branch for good, with the messages that no other branch holds. The context's history of undo goes with it: what it could bring back is gone.
// The active branch is not purged (ErrConflict).
func (s *Store) PurgeBranch(ctx context.Context, contextRef, name string, dry bool) (*Purged, error) {
	return care.PurgeBranch(ctx, s.at, contextRef, name, dry)
}

// PurgeContext removes a context for good: its messages, branches, decisions, journal, and artifacts that nothing else refers to. Then the file is written
// anew, so that the bytes are gone. One line on the store's journal stays that says that it was done. dry only says what would go.
func (s *Store) PurgeContext(ctx context.Context, ref string, dry bool) (*Purged, error) {
	return care.PurgeContext(ctx, s.at, ref, dry)
}

// PurgeMessages removes messages for good from every branch of their context, with their copies there and in other contexts. The contexts' history of undo goes with
// them, sessions that summarise them are opened again, and a title that was made from one is taken away.
func (s *Store) PurgeMessages(ctx context.Context, contextRef, branchName string, refs []Ref, dry bool) (*Purged, error) {
	return care.PurgeMessages(ctx, s.at, contextRef, branchName, refs, dry)
}

// Redact puts a mark in the place of secrets in everything that is stored: it is the one thing that changes messages. Parts that a provider has signed, and its own blocks, would no longer be taken back: they
// stay and are named. The contexts' history of undo goes, since it may hold what was redacted, and the file is written anew, so that the bytes are gone.
func (s *Store) Redact(ctx context.Context, o RedactOptions) (*Redacted, error) {
	return care.Redact(ctx, s.at, o)
}

// Redo brings back what the newest undo took away on the branch or on the context, as long as nothing else was done there since; else what the store's newest did.
// Where the undo took a whole branch away, it is redone on that branch's name or on the branch that it had been forked from. ErrConflict where a later undo
// stands on it; ErrNotFound where there is nothing to bring back.
func (s *Store) Redo(ctx context.Context, contextRef, branchName string) (*Undone, error) {
	return journal.Redo(ctx, s.at, contextRef, branchName)
}

// Reindex makes the search index anew from what the store holds. Others go on meanwhile; until it is done searches look through everything. One that breaks off is
// to be begun again.
func (s *Store) Reindex(ctx context.Context, progress func(done int)) error {
	return find.Reindex(ctx, s.at, progress)
}

// Repair makes every invariant hold again, as far as what is left allows, after a backup. A context is one transaction. What is readable stays; what has lost its place comes onto the
// branch recovered; what cannot be read is in the backup alone. Where the pages themselves cannot be read it fails with ErrDamaged: Salvage reads what it can into a new file.
func (s *Store) Repair(ctx context.Context, o RepairOptions) (*Repaired, error) {
	return care.Repair(ctx, s.at, o)
}

// ResolveCall answers a call that runs, or that is uncertain: it is done, or failed where the result is an error, and its result goes to the end of the branch, in one
// transaction. ErrConflict, with the state, for calls that wait or were answered, and for those that another program runs.
func (s *Store) ResolveCall(ctx context.Context, contextRef, branchName string, ref CallRef, a Answer) (*Answered, error) {
	return toolcall.ResolveCall(ctx, s.at, contextRef, branchName, ref, a)
}

// Search gives what fits, in short transactions. It finds everything that was stored before it began: what the index does not have yet it reads. ErrInvalid for a query
// without words and an expression that cannot be read.
func (s *Store) Search(ctx context.Context, o SearchOptions) iter.Seq2[*Hit, error] {
	return find.Search(ctx, s.at, o)
}

// SpaceByContext reads what each context takes, the largest first. It reads all keys of the store, a context in each transaction.
func (s *Store) SpaceByContext(ctx context.Context) ([]*ContextSpace, error) {
	return care.SpaceByContext(ctx, s.at)
}

// Stats counts what the store holds. A store in memory has no sizes.
func (s *Store) Stats(ctx context.Context) (*Stats, error) {
	return care.Measure(ctx, s.at)
}

// StoreOperations gives the store's own journal, newest first.
func (s *Store) StoreOperations(ctx context.Context) iter.Seq2[*Operation, error] {
	return journal.StoreOperations(ctx, s.at)
}

// Unchanged tells whether a conversation was imported with that digest of its record, and is there: then importing it adds nothing.
// Known, in what it gives, is 0: only the file knows how many messages it has.
func (s *Store) Unchanged(ctx context.Context, from SourceLink, digest pool.Hash) (Imported, bool, error) {
	return intake.Unchanged(ctx, s.at, from, digest)
}

// Undo takes back the operation op, or with "" the newest that holds on the branch, or on its context or in the store where that came after. What one command
// made as several operations is taken back together. ErrConflict where something newer stands on it; ErrNotFound where there is nothing to take back.
func (s *Store) Undo(ctx context.Context, contextRef, branchName, op string) (*Undone, error) {
	return journal.Undo(ctx, s.at, contextRef, branchName, op)
}

// Vacuum writes the file anew without free space. Other programs wait or go on with the new file. ErrInvalid on an engine that keeps no file.
func (s *Store) Vacuum(ctx context.Context) error {
	return care.Vacuum(ctx, s.at)
}
