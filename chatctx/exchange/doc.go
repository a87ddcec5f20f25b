// Package exchange brings other tools' conversation files into a store, and writes conversations out.
//
// Import finds out by content what a file is, never by its name, reads it as a stream and hands whole conversations, each a
// tree with all its branches, to the store. One bad message, line or conversation never loses the file: it is reported
// with its place and the reading goes on.
//
// # A new format
//
// A format that needs nothing but this package is one file here, of some 150 lines: a constant with its name, a function that detects it in a
// head, one that reads it from a reading, and a line in the table of formats.go, above the formats whose signature is wider. What a
// reader has at hand is the reading (its input as items or lines, and the report), values of JSON with tolerant
// accessors, the rows of an SQLite database (detected by its tables, head.db.has), other files of the same folder or archive (file.sibling), and thread, which makes of records that name their parents an Incoming with named branches and closed calls.
//
// A format that needs a library of its own is a package of its own below this one. Its init function calls Register, or RegisterExport for
// one to write, and package all imports it for the command. A program that does not import it does not carry it. In the same way a program adds formats of its own.
package exchange
