// Package journal makes changes: an operation on a context or on the store, in one writing transaction, with what it takes to undo it.
//
// It owns Txn and StoreTxn, the steps that change histories, the indexes of calls that follow a history, keys that make an append happen once, undo and redo. It
// may touch every record of a context. It never commits, waits, or lets a change pass that is not on the journal.
package journal
