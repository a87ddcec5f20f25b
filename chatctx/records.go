package chatctx

import "github.com/chatctx/chatctx/chatctx/record"

// Call is a call of a stored message in its present state. A call that came with its answer has no Since and no Decisions.
type Call = record.Call

// CallRef names a call: MESSAGE:INDEX, where MESSAGE is a Ref and INDEX counts from 1, or the provider's id if that is unique.
type CallRef = record.CallRef

// Decision is one recorded step in the life of a call. From and To are values of CallState.
type Decision = record.Decision

// Runs is what runs the calls of a tool, without their arguments: the tool's command or its MCP server, as a store had it when a step was taken. The zero value
// means that the store had no such tool.
type Runs = record.Runs

// CallStep is one step in the life of a call: its beginning, whose From is "", or a decision.
type CallStep = record.CallStep

// Claim says who works on something: a branch's reply or a call. It is dead, and the next program that touches its work settles that, if its process is
// gone from the same host, if that host was restarted (both as far as can be known), or if it was not renewed for ClaimLife.
type Claim = record.Claim

// Native describes a context on its way between stores.
type Native = record.Native

// NativeBranch describes a branch of it. Its history is the first Shared messages of the branch Like, which was begun before it, and then what Append and
// Again add.
type NativeBranch = record.NativeBranch

// NativeLike says that a history begins with the first Shared messages of the branch Like, which was begun before it.
type NativeLike = record.NativeLike

// NativeCall is the state of a call, with the decisions about it.
type NativeCall = record.NativeCall

// Rule says what to do with waiting calls. A Judge applies it.
type Rule = record.Rule

// Condition is a condition on a call's arguments.
type Condition = record.Condition

// BrokenExample is an example that the rules no longer satisfy.
type BrokenExample = record.Broken

// Ref names a message: its id or a unique beginning or ending of it (4 digits or more), a tag, a turn's label (u3, a3), a branch's name (its head), @ (the
// head of the branch on which it is read), @-2 (two before the head), @3 (the third message), or BRANCH@… with any of these. tag:, branch: and id: before
// it say which is meant.
type Ref = record.Ref

// Task makes a context a sub-context: it says what the context does for its parent and how far it has come. Package subtask runs it.
type Task = record.Task

// Tool is a tool that a model may call.
type Tool = record.Tool

// Remote is a tool of an MCP server, as the server described it when it was added.
type Remote = record.Remote

// KeptTool is a stored tool with its scope.
type KeptTool = record.KeptTool

// ContextInfo describes a context.
type ContextInfo = record.ContextInfo

// ContextFacts are the facts of a context, without its branches.
type ContextFacts = record.ContextFacts

// BranchInfo describes a branch.
type BranchInfo = record.BranchInfo

// Operation is an entry of a journal.
type Operation = record.Operation

// Changed is a value that an operation replaced.
type Changed = record.Changed
