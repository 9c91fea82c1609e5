package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/berth-dev/berth/services/internal/fault"
)

// conflicts says in users' words what a unique constraint or index protects.
// One that is not here is shown by its name.
var conflicts = map[string]string{
	"accounts_name":   "a member with this name already exists",
	"apps_name":       "an app with this name already exists",
	"components_name": "a component with this name already exists",
	"customers_name":  "a customer with this name already exists",
	"installs_name":   "an install with this name already exists",
	"orgs_name":       "an org with this name already exists",
}

// raised are the codes with which SQL functions speak to users:
// RAISE EXCEPTION USING ERRCODE = 'BE409', MESSAGE = '…'. The message is shown.
var raised = map[string]error{
	"BE403": fault.ErrForbidden,
	"BE404": fault.ErrNotFound,
	"BE409": fault.ErrConflict,
	"BE422": fault.ErrInvalid,
}

// SQLSTATE codes; https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	foreignKeyViolation  = "23503"
	uniqueViolation      = "23505"
	checkViolation       = "23514"
	exclusionViolation   = "23P01"
	diskFull             = "53100"
	tooManyConnections   = "53300"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
	duplicateObject      = "42710"
	internalError        = "XX000"
	connectionExceptions = "08" // the whole class

	// Text that Postgres does not keep: NUL, or what is no UTF-8 or no JSON for it.
	characterNotInRepertoire = "22021"
	untranslatableCharacter  = "22P05"
	invalidTextForm          = "22P02"
)

// translate gives an error of Postgres its kind. It is idempotent, and leaves
// alone what already has a kind and what is a mistake of ours, such as a
// missing grant: that is an internal error.
func translate(err error) error {
	if err == nil || fault.KindOf(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Wrap(fault.ErrNotFound, err, "not found")
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return translateSQLState(pg, err)
	}
	if lostConnection(err) {
		return unavailable(err)
	}
	return err
}

func translateSQLState(pg *pgconn.PgError, err error) error {
	switch {
	case pg.Code == uniqueViolation, pg.Code == exclusionViolation:
		return fault.With(fault.Wrap(fault.ErrConflict, err, "%s", conflictText(pg)), fault.Code("already_exists"))
	case pg.Code == foreignKeyViolation && strings.HasPrefix(pg.Message, "update or delete"):
		return fault.Wrap(fault.ErrConflict, err, "this is still in use")
	case pg.Code == foreignKeyViolation:
		return fault.Wrap(fault.ErrInvalid, err, "this refers to something that does not exist")
	case pg.Code == characterNotInRepertoire, pg.Code == untranslatableCharacter, pg.Code == invalidTextForm:
		// The edge refuses such text with its place; this is for what it cannot see.
		return fault.With(fault.Wrap(fault.ErrInvalid, err, "a text has characters that cannot be stored"), fault.Code("not_text"))
	case pg.Code == checkViolation:
		return fault.Wrap(fault.ErrInvalid, err, "a value is not allowed here (%s)", pg.ConstraintName)
	case raised[pg.Code] != nil:
		return fault.Wrap(raised[pg.Code], err, "%s", pg.Message)
	case pg.Code == diskFull:
		return fault.With(fault.Wrap(fault.ErrUnavailable, err, "the disk of the database is full"),
			fault.Code("database_full"), fault.Remedy("free some space there, then it goes on by itself"))
	case strings.HasPrefix(pg.Code, connectionExceptions),
		pg.Code == adminShutdown, pg.Code == crashShutdown, pg.Code == cannotConnectNow, pg.Code == tooManyConnections:
		return unavailable(err)
	}
	return err
}

func unavailable(err error) error {
	return fault.With(fault.Wrap(fault.ErrUnavailable, err, "the database is not available"),
		fault.Code("database_unavailable"), fault.Remedy("try again in a few seconds"))
}

func lostConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, puddle.ErrClosedPool) || pgconn.SafeToRetry(err) || strings.HasSuffix(err.Error(), "conn closed")
}

// outrun tells that another session changed the same row of the catalogue first;
// Postgres has no code of its own for that.
func outrun(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == internalError && strings.HasPrefix(pg.Message, "tuple concurrently ")
}

// alreadyThere tells that another session made the same object first.
func alreadyThere(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == duplicateObject || pg.Code == uniqueViolation)
}

// atLimit tells that the role, or the server, has all the connections it may have.
func atLimit(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == tooManyConnections
}

func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == serializationFailure || pg.Code == deadlockDetected)
}

// conflictText cannot name the columns: behind row-level security Postgres
// keeps them to itself, as the other row may be another tenant's.
func conflictText(pg *pgconn.PgError) string {
	if text := conflicts[pg.ConstraintName]; text != "" {
		return text
	}
	return fmt.Sprintf("this already exists (%s)", pg.ConstraintName)
}
