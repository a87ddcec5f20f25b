// Package view reads: it resolves references to contexts, branches and messages, and returns what a transaction shows of them, with calls in their present
// state. It lists contexts, compares histories, and watches the journals of others.
//
// It owns no record and may read all of them. It never writes.
package view
