// Package cli is the command line: flags in, library calls, text or JSON out, exit codes. It alone reads flags, prints and exits.
//
// # How a command is added
//
// What other programs can do too is an operation: an entry in internal/operation, one file a group, which says what the command is called, takes and prints. Here it
// only has a look (operations.go): how its result reads as text. internal/operation/toy shows all that an operation needs.
//
// For what only a terminal has, there is a file for each group of commands (contexts.go, messages.go, branches.go …). In it a function returns the group as a table of command values,
// and commandTable (command.go) lists these functions in the order of the help. A command value describes everything: its name, what it works on, the JSON it
// prints, an example, and the function that does it with the struct of its parameters:
//
//	{name: "fork", does: "make a branch …", scope: onBranch, run: in(doFork), …}
//
//	type forkIn struct {
//		Name string      `arg:"NAME"`
//		At   record.Ref `flag:"at" doc:"end the new branch with {REF}; else with the head"`
//		Stay bool        `flag:"stay" doc:"stay on the branch where you are"`
//	}
//
//	func doFork(r *run, in *forkIn) error
//
// The function in (params.go) explains the tags. The program of urfave/cli (app.go), which reads the values into the struct, is made from this table, as are help,
// completion and docs/cli.md; after a change run
//
//	go test ./internal/cli -run TestDocs -update
//
// Before urfave/cli reads a line, order (order.go) puts its words into the order that it takes: shared flags, command, flags, arguments. The words for arguments and
// values have a meaning: "REF [TEXT|-]" is one or two arguments, "PATH…" one or more, and they tell the completion what to offer: CTX, BRANCH, REF, TAG, CALL, PATH, FILE,
// DIR, ROLE, SHELL.
//
// # How a command is written
//
// The function gets its parameters and a *run: what all commands share.
//
//   - r.reader, r.writer and r.creator open the store; it is closed for you. Check the arguments before you open: only a creator makes a file, and a
//     refused command line must leave nothing behind.
//   - r.snapshot reads the branch that --context and --branch name, r.change makes a batch of changes on it, in one transaction, and r.made reports the
//     change and how to undo it.
//   - r.text reads an argument that may be "-" for standard input.
//   - Printing: r.emit(value, text) prints JSON if --json was given, and else calls text. Standard output is for data, r.note (standard error) for
//     everything else. Print nothing while a transaction runs: collect, then print. In a long loop stop when r.stopped().
//   - Errors are returned, never printed. usagef makes the one for a command line that makes no sense; one switch, classify (errors.go), maps errors to
//     exit codes.
//   - What undo can take back is done at once, and --dry-run says what would be done. Everything else asks with r.confirm, which takes --yes and never asks
//     without a terminal.
//
// The file is held as briefly as possible: every transaction opens it and lets it go, and nothing is held while a pipe is full.
package cli
