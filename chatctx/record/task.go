package record

import "github.com/chatctx/chatctx/pool"

// DefaultDepth is the default of how deep sub-contexts may be nested.
const DefaultDepth = 4

// Task makes a context a sub-context: it says what the context does for its parent and how far it has come. Package subtask runs it.
type Task struct {
	Goal       string  `cbor:"1,keyasint,omitempty" json:"goal" after:"branch"`
	Branch     pool.ID `cbor:"2,keyasint" json:"branch_id" only:"lines"` // the parent's branch from which it was started
	BranchName string  `cbor:"3,keyasint" json:"branch"`                 // that branch's name at the start
	// Message and Index (from 1) are the call that started it and whose result its summary is. Zero: no call started it.
	Message pool.ID `cbor:"4,keyasint,omitzero" json:"call_message" only:"lines"`
	Index   int     `cbor:"5,keyasint,omitempty" json:"call_index" only:"lines"`
	State   string  `cbor:"6,keyasint" json:"state" words:"running waiting returned failed abandoned"` // one of the Task… constants
	// Depth is the number of its ancestors. MaxDepth, MaxRounds and MaxTokens limit the nesting of its own tasks, the rounds with the model and the tokens;
	// 0: no limit.
	Depth     int   `cbor:"7,keyasint" json:"depth"`
	MaxDepth  int   `cbor:"8,keyasint,omitempty" json:"max_depth" only:"lines"`
	MaxRounds int   `cbor:"9,keyasint,omitempty" json:"max_rounds" only:"lines"`
	MaxTokens int64 `cbor:"10,keyasint,omitempty" json:"max_tokens" only:"lines"`
	// OwnRules: the parent's rules do not hold. Keep: it is not trashed when it ends.
	OwnRules bool      `cbor:"11,keyasint,omitempty" json:"own_rules" only:"lines"`
	Keep     bool      `cbor:"12,keyasint,omitempty" json:"keep" only:"lines"`
	Summary  pool.ID   `cbor:"13,keyasint,omitzero" json:"summary" empty:"null"` // the last message on the parent's branch, with its summary; zero: none
	Reason   string    `cbor:"14,keyasint,omitempty" json:"reason,omitempty"`
	Ended    pool.Time `cbor:"15,keyasint,omitempty" json:"ended_at" empty:"null"`
	// Linked: a file of another program says that the context answered that call. What the parent allows does not hold for it.
	Linked bool `cbor:"16,keyasint,omitempty" json:"linked" only:"lines"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// The states of a task. A running task whose calls wait is shown as waiting.
const (
	TaskRunning   = "running"
	TaskWaiting   = "waiting" // never stored
	TaskReturned  = "returned"
	TaskFailed    = "failed"
	TaskAbandoned = "abandoned"
)

// NewTask describes the sub-context that Start makes.
type NewTask struct {
	NewContext
	Task
	// Tools, if not nil, replaces the copies of the parent's tools.
	Tools []Tool
	// Call is the claim of the call that starts it, nil for none. The call then runs until the task ends, whatever becomes of this process.
	Call *Claimed
}

// TaskInfo is a sub-context in its present state.
type TaskInfo struct {
	*ContextInfo
	Task            // its State may be TaskWaiting
	Open       int  // its calls that wait or run
	ParentGone bool // the parent was removed for good, or is in the trash
	// ParentState is the state in which the parent, itself a task, has ended; "" if it has not, or is none.
	ParentState string
	BranchGone  bool // the branch from which it was started no longer exists
}

// TaskEnd is how a task ends.
type TaskEnd struct {
	State   string // TaskReturned, TaskFailed or TaskAbandoned
	Summary string // what the parent gets; for a task that did not return, the reason
	// Branch is the parent's branch that gets the summary; "" means the one from which the task was started.
	Branch string
	Keep   bool // do not move it to the trash, even if the task does not say so
	// Unfinished means that the task failed since its last answer is not whole. The parent then gets a message in any case, with the answer as far as it came.
	Unfinished bool
	Partial    string
}

// TaskEnded is the result of Finish.
type TaskEnded struct {
	Parent    Committed // on the parent's journal; Operation is "" if it got no message
	Child     Committed // on the store's
	Message   pool.ID   // zero: none
	Position  int
	Kept      bool
	CallState string // of the call that started it; "": none
}
