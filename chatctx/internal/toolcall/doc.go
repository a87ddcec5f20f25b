// Package toolcall takes calls through their lives: it lists them, decides, claims, resolves and expires them.
//
// It owns the table of a call's states and who may take which step. It changes calls through the journal alone. It never runs anything and
// never asks a rule.
package toolcall
