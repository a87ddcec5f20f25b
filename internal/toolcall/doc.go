// Package toolcall takes calls through their lives: it lists, decides, claims, resolves and expires them.
//
// It owns the table of a call's states, the rules about who may take which step, and changes of these rules. It changes calls only through the journal. It
// never runs a tool and never evaluates a rule itself: it asks the store's Judge.
package toolcall
