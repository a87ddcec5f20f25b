// Package care looks after the file: it opens, checks, collects, purges, redacts, rewrites, repairs, salvages, backs up and restores it.
//
// It owns the invariants and decides what may be removed for good. It may touch every bucket, and is the only room that removes what an undo could bring
// back. It never makes a change that a person would want to undo.
package care
