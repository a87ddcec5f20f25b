// Package journal makes changes: an operation on a context or on the store, in one writing transaction, with what is needed to undo it.
//
// It owns Txn and StoreTxn, the steps that change histories, the indexes of calls that follow a history, the keys that make an append happen once, and undo
// and redo. It may touch every record of a context. It never commits or waits, and it lets no change pass that is not on the journal.
package journal
