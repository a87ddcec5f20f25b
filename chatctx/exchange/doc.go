// Package exchange imports other tools' conversation files into a store, and exports conversations.
//
// Import detects a file's format by its content, never by its name, reads it as a stream and passes whole conversations, each a tree with all its branches, to the
// store. A bad message, line or conversation never loses the rest of the file: it is reported with its place, and the reading goes on.
//
// # A new format
//
// A format that needs only this package is one file here, of about 150 lines: a constant with its name, a function that detects it in a head, one that reads it from
// a reading, and an entry in the table of formats.go, above the formats with wider signatures. A reader can use the reading (its input as items or lines, and the
// report), JSON values with tolerant methods, the rows of a SQLite database (detected by its tables with head.db.has), other files of the same folder or archive
// (file.sibling), and thread, which turns records that name their parents into an Incoming with named branches and closed calls.
//
// A format that needs another library is a package of its own below this one. Its init function calls Register, or RegisterExport for an export format, and package
// all imports it for the command. A program that does not import it does not contain it. A program adds its own formats in the same way.
package exchange
