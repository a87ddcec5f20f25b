package record

import "github.com/chatctx/chatctx/chatctx/record"

type (
	Ref          = record.Ref
	Task         = record.Task
	Tool         = record.Tool
	Remote       = record.Remote
	KeptTool     = record.KeptTool
	Runs         = record.Runs
	Rule         = record.Rule
	Condition    = record.Condition
	Broken       = record.Broken
	CallRecord   = record.CallRecord
	Decision     = record.Decision
	Call         = record.Call
	CallRef      = record.CallRef
	Claim        = record.Claim
	CallStep     = record.CallStep
	Native       = record.Native
	NativeBranch = record.NativeBranch
	NativeCall   = record.NativeCall
	NativeLike   = record.NativeLike
)

const (
	DefaultDepth    = record.DefaultDepth
	TaskRunning     = record.TaskRunning
	TaskWaiting     = record.TaskWaiting
	TaskReturned    = record.TaskReturned
	TaskFailed      = record.TaskFailed
	TaskAbandoned   = record.TaskAbandoned
	Allow           = record.Allow
	Deny            = record.Deny
	Ask             = record.Ask
	ByPerson        = record.ByPerson
	ByRule          = record.ByRule
	ByInherited     = record.ByInherited
	ByImport        = record.ByImport
	ByExpiry        = record.ByExpiry
	ByCancel        = record.ByCancel
	ByProgram       = record.ByProgram
	ByCheck         = record.ByCheck
	WaitsForPerson  = record.WaitsForPerson
	WaitsForProgram = record.WaitsForProgram
	WaitsForChild   = record.WaitsForChild
	WaitsForResult  = record.WaitsForResult
)

var (
	RunsOf       = record.RunsOf
	CallState    = record.CallState
	RefTo        = record.RefTo
	Short        = record.Short
	ParseExample = record.ParseExample
)
