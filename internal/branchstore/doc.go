// Package branchstore reads and writes histories in a transaction that the caller opened: the messages of each branch in order, its prompts and settings.
//
// A history is a piece table. Message ids are appended to segments, each written by one branch alone; a branch is a list of closed pieces (segment, from,
// to) of segments. Entries never change, so a list of pieces is a snapshot for good.
package branchstore
