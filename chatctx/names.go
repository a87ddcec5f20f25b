package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Restored says what Restore did. Kept is where the store that was there before lies now, "" where there was none.
type Restored = care.Restored

// Restore puts a copy of a backup in the place of the store at path, or where there is none yet. The backup is read whole first: one with a problem is refused
// (ErrDamaged). What was at path before, whole or not, is kept beside it. Whoever uses the store goes on with the restored one.
func Restore(ctx context.Context, path, backup string) (*Restored, error) {
	return care.Restore(ctx, path, backup)
}

// Committed says what a batch did.
type Committed = journal.Committed

// AppendOptions of Append. Expect, if not nil, is the revision that the branch must have (else ErrConflict). Key makes the append
// happen once: a second one with the same key within 24 hours gives what the first made. Copies gives a message whose id this context does not have an
// id of its own, and notes the other one as what it is a copy of.
type AppendOptions = journal.AppendOptions

// Placement is where a message stands. Known: it stood there before.
type Placement = journal.Placement

// Appended is what an append made.
type Appended = journal.Appended

// Moved counts what a change of a history did.
type Moved = journal.Moved

// Forked is a new branch.
type Forked = journal.Forked

// EditOptions of Edit. Name "" takes main.2, main.3 … ; KeepRest carries what followed along; Stay does not go on in the new branch.
type EditOptions = journal.EditOptions

// Decision is one step in the life of a call, on record. From and To are what CallState gives.
type Decision = record.Decision

// The kinds of whoever takes a step with a call.
const ByPerson = record.ByPerson

// The kinds of whoever takes a step with a call.
const ByRule = record.ByRule

// The kinds of whoever takes a step with a call.
const ByInherited = record.ByInherited

// The kinds of whoever takes a step with a call.
const ByImport = record.ByImport

// The kinds of whoever takes a step with a call.
const ByExpiry = record.ByExpiry

// The kinds of whoever takes a step with a call.
const ByCancel = record.ByCancel

// The kinds of whoever takes a step with a call.
const ByProgram = record.ByProgram

// CallState names the state of a call on record: pending/none, approved/running, denied/none …
func CallState(status pool.Status, execution pool.Execution) string {
	return record.CallState(status, execution)
}

// Verdict says what is decided about a call, and who decides.
type Verdict = toolcall.Verdict

// CallRef names a call: MESSAGE:INDEX, the message as a Ref names one and the index counted from 1; or the provider's id, where that is unique.
type CallRef = toolcall.CallRef

// Call is a call of a stored message as it is now. A call that came answered has no Since and no Decisions.
type Call = toolcall.Call

// CallFilter narrows a list of open calls.
type CallFilter = toolcall.CallFilter

// CallStep is one step in the life of a call: its beginning, with From "", or a decision.
type CallStep = toolcall.CallStep

// ClaimOptions of ClaimCall.
type ClaimOptions = toolcall.ClaimOptions

// CallClaim is the right to run a call. It lasts while it is renewed and its process lives; after that the call is uncertain.
type CallClaim = toolcall.CallClaim

// Answer is how a call ended. Of Text, JSON and Parts in Result the first that a Result has counts; its RequestID is filled in.
type Answer = toolcall.Answer

// Answered is a call that was answered, and its result.
type Answered = toolcall.Answered

// Problem is something that Check found. Invariant is the number in docs/design.md, 0 for a fault of the file itself.
type Problem = care.Problem

// Stats are sizes, in bytes, and counts.
type Stats = care.Stats

// ClaimLife is how long a claim holds without being renewed.
const ClaimLife = record.ClaimLife

// Claim says who works on something: a branch's reply, a call. It is dead, and its work is settled by whoever next touches it, when
// the process is gone on the same host since the same boot, or when it was not renewed for ClaimLife.
type Claim = record.Claim

// MainBranch is the branch that every context begins with.
const MainBranch = record.MainBranch

// NewContext is what a new context begins with.
type NewContext = journal.NewContext

// BranchInfo describes a branch.
type BranchInfo = view.BranchInfo

// Tool is a tool that a model may call.
type Tool = record.Tool

// ErrNotFound: a reference names nothing. The error is a *RefError.
var ErrNotFound = record.ErrNotFound

// ErrAmbiguous: a reference names several. The error is a *RefError with Candidates.
var ErrAmbiguous = record.ErrAmbiguous

// ErrConflict: the change does not fit what is there: an old revision, a name that is taken, an undo that others stand on,
// a call that was decided already. The error is a *ConflictError.
var ErrConflict = record.ErrConflict

// ErrInvalid: an argument that can never be right: a bad name, a message without a role.
var ErrInvalid = record.ErrInvalid

// ErrEmpty: the branch has no message for what was asked.
var ErrEmpty = record.ErrEmpty

// ErrPurged: messages were removed for good while they were being read.
var ErrPurged = record.ErrPurged

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrNotExist = record.ErrNotExist

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrNotOurs = record.ErrNotOurs

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrTooNew = record.ErrTooNew

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrTooOld = record.ErrTooOld

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrDamaged = record.ErrDamaged

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrLocked = record.ErrLocked

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var ErrReadOnly = record.ErrReadOnly

// RefError is a reference that names nothing or too much.
type RefError = record.RefError

// NotFound makes the error for a reference of a kind that names nothing.
func NotFound(kind, ref string) error { return record.NotFound(kind, ref) }

// Ambiguous makes the error for a reference that names all of candidates.
func Ambiguous(kind, ref string, candidates []string) error {
	return record.Ambiguous(kind, ref, candidates)
}

// ConflictError says what does not fit, and what to do.
type ConflictError = record.ConflictError

// Invalid makes the ErrInvalid that says what can never be right.
func Invalid(format string, args ...any) error { return record.Invalid(format, args...) }

// GCOptions say what GC may take. A zero field takes nothing for its reason.
type GCOptions = care.GCOptions

// Collected is what GC took, or would take. Bytes count keys and values.
type Collected = care.Collected

// Incoming is one conversation on its way in, as a tree. Nodes stand after their parents.
type Incoming = intake.Incoming

// Node is a message of the tree. Parent is an index of Nodes, -1 for a root.
type Node = intake.Node

// NodeLink names an imported message; the zero one none.
type NodeLink = intake.NodeLink

// IncomingBranch ends at the node Leaf, an index; -1 for an empty one.
type IncomingBranch = intake.IncomingBranch

// SourceLink names an imported conversation.
type SourceLink = intake.SourceLink

// Imported says what became of an Incoming.
type Imported = intake.Imported

// ImportRun makes the imports of one command, which one undo takes back.
type ImportRun = intake.ImportRun

// ImportedFile is a file that was imported to its end. Importing it again adds nothing as long as its conversations are as that import left them.
type ImportedFile = intake.ImportedFile

// NativeFormat is the name of that format in reports.
const NativeFormat = intake.NativeFormat

// Native describes a context on its way between stores.
type Native = intake.Native

// NativeBranch describes a branch of it. Its history is the first Shared messages of the branch Like, which came before it, and what
// Append and Again add.
type NativeBranch = intake.NativeBranch

// NativeCall is the state of a call, with the decisions about it.
type NativeCall = intake.NativeCall

// NativeImport takes one context in: Branch, then its messages by Append and Again, then the next branch; Loose, Tag and Mark at any
// place after that; Finish at the end. Until then what is there of the context lies in the trash, where one that is given up
// stays; another import of it goes on from there. It is used by one goroutine.
//
// A context that the store has already gets what is new: messages, branches, the rest of branches. That is held in memory until Finish.
type NativeImport = intake.NativeImport

// FormatVersion is the version of the file format that this program writes, and OldestVersion the oldest that it reads.
const FormatVersion = record.FormatVersion

// FormatVersion is the version of the file format that this program writes, and OldestVersion the oldest that it reads.
const OldestVersion = record.OldestVersion

// Secret is something in a text that is to go, in bytes, and what it is: the name of a rule or an expression.
type Secret = care.Secret

// RedactOptions of Redact.
type RedactOptions = care.RedactOptions

// Redaction is a secret that was found. Shown is its beginning.
type Redaction = care.Redaction

// Redacted says what Redact did, or would do.
type Redacted = care.Redacted

// RedactedMark stands in the place of what was redacted.
const RedactedMark = care.RedactedMark

// RepairOptions of Repair.
type RepairOptions = care.RepairOptions

// Mended is something that Repair did, or would do. Invariant is a number of docs/design.md, 0 for the file itself.
type Mended = care.Mended

// Repaired says what Repair did.
type Repaired = care.Repaired

// RecoveredBranch is the name of the branch that gets what has lost its place.
const RecoveredBranch = care.RecoveredBranch

// ErrStopped: somebody took the claim away while a reply ran: an interrupt, or another program after this one had not renewed it.
var ErrStopped = record.ErrStopped

// Ref names a message on a branch: its id, a unique prefix or ending (4 or more) of that, a tag, @ (the head), @-2 (two before
// the head), @3 (the third from the start).
type Ref = record.Ref

// RefTo is the reference to an id.
func RefTo(id ID) Ref { return record.RefTo(id) }

// Short is how an id is shown: its last 8 hex digits. Ids made within a second share their beginning.
func Short(id ID) string { return record.Short(id) }

// TitleFrom makes a title of the first line of a text: at most 60 characters, no control characters. "" where nothing is left.
func TitleFrom(text string) string { return view.TitleFrom(text) }

// Rule says what is to be done with calls that wait. Package approval applies it.
type Rule = record.Rule

// Condition is one on the arguments of a call.
type Condition = record.Condition

// Salvaged says what Salvage read.
type Salvaged = care.Salvaged

// Salvage reads whatever can still be read of the file from, however broken, into a new store at to, which must not be there (ErrConflict): contexts, branches, messages,
// prompts, calls and artifacts. What was removed may come back with them. The journal does not come along, nor do tags, marks, rules and tools.
func Salvage(ctx context.Context, from, to string, o Options) (*Salvaged, error) {
	return care.Salvage(ctx, from, to, o)
}

// SearchOptions say what to look for. A zero field does not narrow.
type SearchOptions = find.SearchOptions

// Hit is something that was found.
type Hit = find.Hit

// HitBranch is a branch that holds a message, at a position from 1, or whose prompt was found, at 0.
type HitBranch = find.HitBranch

// ContextSpace is what one context takes: keys and values of its records, and the artifacts that its messages refer to. An artifact that several contexts
// share counts in each.
type ContextSpace = care.ContextSpace

// Options of Open.
type Options = record.Options

// Task is what makes a context a sub-context: what it is to do for its parent, and how far it has come. Package subtask runs it.
type Task = record.Task

// The states of a task. One that runs and whose calls wait is shown as waiting.
const TaskRunning = record.TaskRunning

// The states of a task. One that runs and whose calls wait is shown as waiting.
const TaskWaiting = record.TaskWaiting

// The states of a task. One that runs and whose calls wait is shown as waiting.
const TaskReturned = record.TaskReturned

// The states of a task. One that runs and whose calls wait is shown as waiting.
const TaskFailed = record.TaskFailed

// The states of a task. One that runs and whose calls wait is shown as waiting.
const TaskAbandoned = record.TaskAbandoned

// Purged says what a purge removed, or would remove.
type Purged = care.Purged

// Remote is a tool that an MCP server offers, as it said when it was added.
type Remote = record.Remote

// KeptTool is a tool as it is kept, and where.
type KeptTool = record.KeptTool

// Operation is an entry of a journal.
type Operation = journal.Operation

// Undone says what was taken back or brought back.
type Undone = journal.Undone
