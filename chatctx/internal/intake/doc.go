// Package intake takes histories in that come from elsewhere: conversations that an importer read, and contexts of another store.
//
// It owns what a source brought (bucket source) and how a history that grew is grafted on the one that is here. It changes contexts through the
// journal alone. It never reads a file: package exchange does.
package intake
