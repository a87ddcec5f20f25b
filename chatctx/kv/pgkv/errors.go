package pgkv

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// SQLSTATE codes that pgkv distinguishes.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
	insufficientRights   = "42501"
	readOnlyTransaction  = "25006"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	undefinedSchema      = "3F000"
	undefinedDatabase    = "3D000"
	statementCanceled    = "57014"
	outOfMemory          = "53200"
	tooManyConnections   = "53300"
	dataCorrupted        = "XX001"
	indexCorrupted       = "XX002"
	notNullViolation     = "23502"
	undefinedObject      = "42704"
	invalidParameter     = "22023"
	duplicateStatement   = "42P05"
	unknownStatement     = "26000"
	protocolViolation    = "08P01"
)

// code returns the SQLSTATE of a server's error, "" for any other error.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// fatal reports whether the server ended the connection with this error.
func fatal(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" || pg.Severity == "FATAL" || pg.Severity == "PANIC"
}

// conflict reports whether the transaction was rolled back because another one came between, and can run again. That others hold all of the memory that the
// server has for locks is such a case: they give it back when they end.
func conflict(err error) bool {
	c := code(err)
	return c == serializationFailure || c == deadlockDetected || c == outOfMemory || errors.Is(err, errMoved)
}

// ending reports whether the server is shutting down or starting.
func ending(err error) bool {
	c := code(err)
	return c == adminShutdown || c == crashShutdown || c == cannotConnectNow
}

// explain turns an error of the server or the network into one of package kv's, with advice. Others stay as they are.
func (d *database) explain(err error) error {
	var connect *pgconn.ConnectError
	if errors.Is(err, kv.ErrAway) {
		return err
	}
	switch c := code(err); c {
	case "":
	case insufficientRights:
		return fmt.Errorf("%w: the database user %s lacks a right, which an owner of the store can grant: %w", fs.ErrPermission, d.user(), err)
	case readOnlyTransaction:
		return fmt.Errorf("%w: the server takes no writes; use the URL of the primary server: %w", kv.ErrReadOnly, err)
	case undefinedTable, undefinedSchema:
		return fmt.Errorf("%w: schema %s of database %s has none", kv.ErrNotExist, d.schema, d.name())
	case undefinedDatabase:
		return fmt.Errorf("%w: the server has no database %s; create it first (createdb)", kv.ErrNotExist, d.name())
	case outOfMemory:
		return fmt.Errorf("the server has no memory left for locks; raise its max_pred_locks_per_transaction: %w", err)
	case lockNotAvailable:
		return fmt.Errorf("%w: another transaction held a record for longer than %s; try again", kv.ErrLocked, d.wait)
	case statementCanceled:
		return fmt.Errorf("the server ended a statement that took too long; raise statement_timeout in the store's URL: %w", err)
	case tooManyConnections, adminShutdown, crashShutdown, cannotConnectNow:
		return fmt.Errorf("%w: %w", kv.ErrAway, err)
	case undefinedObject, invalidParameter:
		if pg := (*pgconn.PgError)(nil); errors.As(err, &connect) && errors.As(err, &pg) {
			return fmt.Errorf("the server refuses a parameter of the store's URL; correct it: %w", pg)
		}
	case duplicateStatement, unknownStatement:
		return errors.New("each transaction came to another session of the server, as behind PgBouncer in transaction mode; add default_query_exec_mode=exec to the store's URL")
	case protocolViolation:
		if strings.Contains(err.Error(), "statement pooling") {
			return errors.New("PgBouncer in statement mode cannot hold transactions; set its pool_mode to session")
		}
	case dataCorrupted, indexCorrupted:
		return fmt.Errorf("%w: %w", kv.ErrDamaged, err)
	default:
		if c[:2] == "28" {
			return fmt.Errorf("%w: the server refuses the database user %s; check the name and the password: %w", fs.ErrPermission, d.user(), err)
		}
	}
	if errors.Is(err, errLost) || errors.As(err, &connect) {
		return fmt.Errorf("%w: %w", kv.ErrAway, d.clean(err))
	}
	return err
}
