// Package approval decides about tool calls by rules, and runs each approved call once.
//
//   - Rules are kept in the store and hold at once, in every program: Rules judges calls by them, and Offers suggests new ones.
//   - Executor runs the approved calls of a branch: Go functions, commands without a shell, tools of MCP servers. It claims each call before its tool
//     starts, so that of all executors in all processes one runs it, and stores the result and the end of the call in one transaction. A call whose
//     executor died is uncertain and does not run again, unless its tool is declared repeatable or a person says so.
//   - Watch reports new calls that wait.
//
// The states of calls, and who may change them, are chatctx's: Batch.Decide, Store.ClaimCall, Store.ResolveCall.
package approval
