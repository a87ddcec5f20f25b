// Package exchange brings other tools' conversation files into a store, and writes conversations out.
//
// Import finds out by content what a file is, never by its name, reads it as a stream and hands whole conversations, each a
// tree with all its branches, to the store. One bad message, line or conversation never loses the file: it is reported
// with its place and the reading goes on.
//
// A format is one file of this package with two functions, detect and read, and one line in the table of formats.go. What
// a reader has at hand is the reading (its input as items or lines, and the report), values of JSON with tolerant
// accessors, and tree, which turns records that name their parents into an Incoming with named branches.
package exchange
