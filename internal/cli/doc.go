// Package cli is the command line: flags in, library calls, text or JSON out, exit codes. It alone reads flags, prints and exits.
//
// # How a command is added
//
// There is a file for each group of commands (contexts.go, messages.go, branches.go …). In it a function returns the group as a table of command values,
// and commandTable (command.go) lists these functions in the order of the help. A command value describes everything: its name, its arguments, its flags,
// what it works on, the JSON it prints, an example, and the function that does it. Parsing, help, completion and docs/cli.md are all made from it; after a
// change run
//
//	go test ./internal/cli -run TestDocs -update
//
// The arguments are written as the help shows them, and have a meaning: "REF [TEXT|-]" is one or two arguments, "PATH…" one or more. The words tell the
// completion what to offer: CTX, BRANCH, REF, TAG, CALL, PATH, FILE, DIR, ROLE, SHELL; the value word in a flag's usage (`REF`) does the same for its
// value.
//
// # How a command is written
//
// The function gets a *run: the arguments, the flags and everything that commands share.
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
