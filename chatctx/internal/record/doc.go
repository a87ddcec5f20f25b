// Package record knows what lies in the store: the records and the keys of every bucket that is not pool's, branch's or index's, their bytes and
// checksums, the errors that all rooms above speak in, and the open store as those rooms hold it.
//
// It owns the shapes of docs/format.md. It reads and writes one record at a time in a transaction that it is given, and touches nothing
// else. It never resolves a reference, keeps two records in step, or begins a transaction.
package record
