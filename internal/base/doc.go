// Package base knows the contents of the store: the records and keys of every bucket that is not pool's, branch's or index's, with their bytes and
// checksums; the errors that all rooms above use; and the open store as those rooms see it.
//
// It owns the shapes of docs/format.md. It reads and writes one record at a time, in a transaction that it is given, and touches nothing else. It never
// resolves a reference, keeps two records consistent, or begins a transaction.
package base
