// Package approval decides about tool calls by rules, and runs the approved ones, each once.
//
//   - Rules are kept in the store and hold at once, in every program: Judge explains, Ruler applies them.
//   - Executor runs the approved calls of a branch: Go functions, commands without a shell, tools of MCP servers. It claims each call before its tool starts, so that
//     of all executors in all processes one runs it, and stores result and end of the call in one transaction. A call whose executor died is uncertain and not run
//     again, unless its tool is declared repeatable or a person says so.
//   - Watch tells of new calls that wait.
//
// The states of calls, and who may bring them from one into another, are chatctx's: Batch.Decide, Store.ClaimCall, Store.ResolveCall.
package approval
