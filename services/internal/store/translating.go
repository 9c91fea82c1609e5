package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berth-dev/berth/services/internal/store/shareddb"
)

// translating gives the errors of generated statements their kinds, so that a
// function inside a transaction can branch on fault.ErrNotFound.
type translating struct{ inner shareddb.DBTX }

func (t translating) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := t.inner.Exec(ctx, sql, args...)
	return tag, translate(err)
}

func (t translating) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := t.inner.Query(ctx, sql, args...)
	return translatingRows{rows}, translate(err)
}

func (t translating) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return translatingRow{t.inner.QueryRow(ctx, sql, args...)}
}

type translatingRow struct{ row pgx.Row }

func (r translatingRow) Scan(dest ...any) error { return translate(r.row.Scan(dest...)) }

type translatingRows struct{ pgx.Rows }

func (r translatingRows) Scan(dest ...any) error { return translate(r.Rows.Scan(dest...)) }
func (r translatingRows) Err() error             { return translate(r.Rows.Err()) }
