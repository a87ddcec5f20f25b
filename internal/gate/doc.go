// Package gate is the side of other programs' agents: what their hooks say and want to hear, how a hook waits for a decision, and how it is installed.
//
// It owns the table of agents. Their calls are stored and decided in toolcall. A failure, a lock or a deadline is a denial; only a call that is stored as
// left to the agent is answered so.
package gate
