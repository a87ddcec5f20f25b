// Package engine has what the engines of this module offer to its rooms beside package kv: roles of users, the purpose of a transaction and who is told that
// it waits, and whether the newest change may be lost. It opens no engine.
package engine

import (
	"context"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Doubt reports whether the newest change of the database may be lost: its engine found the record of it damaged, and the one before counts. It is the
// engine's state before the transaction.
func Doubt(tx kv.Tx) bool {
	d, is := tx.(interface{ Doubt() bool })
	return is && d.Doubt()
}

// Granter is implemented by engines with users.
type Granter interface {
	// Grant gives a user of the database one role and takes the others away. It returns fs.ErrNotExist if there is no such user, and fs.ErrPermission if
	// this user may not grant.
	Grant(ctx context.Context, role Role, user string) error
	// Owns reports whether this user has the role of an owner.
	Owns(ctx context.Context) (bool, error)
}

// Role is what a user may do with a database.
type Role string

// The roles. An owner may do everything, a writer read and change records, a reader read them.
const (
	RoleOwner  Role = "owner"
	RoleWriter Role = "writer"
	RoleReader Role = "reader"
	RoleNone   Role = "none"
)

type purposeKey struct{}

// WithPurpose sets the purpose of the transactions under ctx: a word that others see while they wait. Waiting for a holder whose purpose
// IsLong has no limit.
func WithPurpose(ctx context.Context, purpose string) context.Context {
	return context.WithValue(ctx, purposeKey{}, purpose)
}

// Purpose returns the purpose that WithPurpose set, or "".
func Purpose(ctx context.Context) string {
	p, _ := ctx.Value(purposeKey{}).(string)
	return p
}

type waitingKey struct{}

// WithWaiting has tell called when a transaction under ctx has waited for a second for a holder with a purpose that IsLong. The goroutine that waits calls it,
// once for each wait. A nil tell is not called. Engines on a server do not call it.
func WithWaiting(ctx context.Context, tell func(kv.Holder)) context.Context {
	return context.WithValue(ctx, waitingKey{}, tell)
}

// Waiting returns the function that WithWaiting set, or nil.
func Waiting(ctx context.Context) func(kv.Holder) {
	tell, _ := ctx.Value(waitingKey{}).(func(kv.Holder))
	return tell
}

// longPurposes are the purposes that may hold a file for as long as the disk takes.
var longPurposes = []string{"backup", "vacuum", "purge", "check", "gc", "redact", "repair", "restore", "index"}

// IsLong reports whether a transaction with that purpose may hold a file for as long as the disk takes.
func IsLong(purpose string) bool { return slices.Contains(longPurposes, purpose) }
