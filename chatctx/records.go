package chatctx

import "github.com/chatctx/chatctx/chatctx/record"

// Call is a call of a stored message in its present state. A call that came with its answer has no Since and no Decisions.
//
// Fields: none, it is a Call. For more of each: go doc chatctx/internal/record.Call
type Call = record.Call

// CallRef names a call: MESSAGE:INDEX, where MESSAGE is a Ref and INDEX counts from 1, or the provider's id if that is unique.
//
// Fields: none, it is a CallRef. For more of each: go doc chatctx/internal/record.CallRef
type CallRef = record.CallRef

// Decision is one recorded step in the life of a call. From and To are values of CallState.
//
// Fields: none, it is a Decision. For more of each: go doc chatctx/internal/record.Decision
type Decision = record.Decision

// Runs is what runs the calls of a tool, without their arguments: the tool's command or its MCP server, as a store had it when a step was taken. The zero value
// means that the store had no such tool.
//
// Fields: none, it is a Runs. For more of each: go doc chatctx/internal/record.Runs
type Runs = record.Runs

// CallStep is one step in the life of a call: its beginning, whose From is "", or a decision.
//
// Fields: none, it is a CallStep. For more of each: go doc chatctx/internal/record.CallStep
type CallStep = record.CallStep

// Claim says who works on something: a branch's reply or a call. It is dead, and the next program that touches its work settles that, if its process is
// gone from the same host, if that host was restarted (both as far as can be known), or if it was not renewed for ClaimLife.
//
// Fields: none, it is a Claim. For more of each: go doc chatctx/internal/record.Claim
type Claim = record.Claim

// Native describes a context on its way between stores.
//
// Fields: none, it is a Native. For more of each: go doc chatctx/internal/record.Native
type Native = record.Native

// NativeBranch describes a branch of it. Its history is the first Shared messages of the branch Like, which was begun before it, and then what Append and
// Again add.
//
// Fields: none, it is a NativeBranch. For more of each: go doc chatctx/internal/record.NativeBranch
type NativeBranch = record.NativeBranch

// NativeLike says that a history begins with the first Shared messages of the branch Like, which was begun before it.
//
// Fields: none, it is a NativeLike. For more of each: go doc chatctx/internal/record.NativeLike
type NativeLike = record.NativeLike

// NativeCall is the state of a call, with the decisions about it.
//
// Fields: none, it is a NativeCall. For more of each: go doc chatctx/internal/record.NativeCall
type NativeCall = record.NativeCall

// Rule says what to do with waiting calls. A Judge applies it.
//
// Fields: none, it is a Rule. For more of each: go doc chatctx/internal/record.Rule
type Rule = record.Rule

// Condition is a condition on a call's arguments.
//
// Fields: none, it is a Condition. For more of each: go doc chatctx/internal/record.Condition
type Condition = record.Condition

// BrokenExample is an example that the rules no longer satisfy.
//
// Fields: none, it is a Broken. For more of each: go doc chatctx/internal/record.Broken
type BrokenExample = record.Broken

// Ref names a message: its id or a unique beginning or ending of it (4 digits or more), a tag, a turn's label (u3, a3), a branch's name (its head), @ (the
// head of the branch on which it is read), @-2 (two before the head), @3 (the third message), or BRANCH@… with any of these. tag:, branch: and id: before
// it say which is meant.
//
// Fields: none, it is a Ref. For more of each: go doc chatctx/internal/record.Ref
type Ref = record.Ref

// Task makes a context a sub-context: it says what the context does for its parent and how far it has come. Package subtask runs it.
//
// Fields: none, it is a Task. For more of each: go doc chatctx/internal/record.Task
type Task = record.Task

// Tool is a tool that a model may call.
//
// Fields: none, it is a Tool. For more of each: go doc chatctx/internal/record.Tool
type Tool = record.Tool

// Remote is a tool of an MCP server, as the server described it when it was added.
//
// Fields: none, it is a Remote. For more of each: go doc chatctx/internal/record.Remote
type Remote = record.Remote

// KeptTool is a stored tool with its scope.
//
// Fields: none, it is a KeptTool. For more of each: go doc chatctx/internal/record.KeptTool
type KeptTool = record.KeptTool
