// Package intake takes in histories from elsewhere: conversations that an importer read, contexts of another store, and copies of contexts of this one.
//
// It owns the record of what each source brought (bucket source), and grafts a history that grew on the one that is here. It changes contexts only through
// the journal. It never reads a file: package exchange does.
package intake
