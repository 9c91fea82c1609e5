package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/services/internal/fault"
)

// late are migrations that landed after ones with a higher number. A database
// of the time in between has the higher one and lacks this one: it is applied
// out of order, which each of these allows, because it touches nothing that the
// migrations up to landedBefore do.
var late = map[int64]struct{ landedBefore int64 }{
	50: {landedBefore: 55}, // commit 288b913 has 55 and not 50
}

// editedAfter is the commit up to which migrations were edited in place in ways
// that no later migration makes up for.
const editedAfter = "8929f21"

// history is what was migrated in a database.
type history struct {
	applied []int64 // in ascending order; empty for a new database
	// edited: migration 30 ran in a form that was edited afterwards.
	edited bool
	// oldest is the oldest build that the database serves; 0 before it says so.
	oldest int64
}

// readHistory changes nothing; pool is the owner's.
func readHistory(ctx context.Context, pool *sql.DB) (history, error) {
	var h history
	var known, floor bool
	err := pool.QueryRowContext(ctx, `select to_regclass('berth.schema_versions') is not null, to_regprocedure('berth.oldest_schema()') is not null,
		to_regclass('berth.leases') is not null and to_regclass('berth.alarms') is null`).Scan(&known, &floor, &h.edited)
	if err != nil || !known {
		return h, err
	}
	rows, err := pool.QueryContext(ctx, `select distinct version_id from schema_versions where is_applied order by 1`)
	if err != nil {
		return h, err
	}
	defer rows.Close()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return h, err
		}
		h.applied = append(h.applied, version)
	}
	if err := rows.Err(); err != nil || !floor {
		return h, err
	}
	return h, pool.QueryRowContext(ctx, `select berth.oldest_schema()`).Scan(&h.oldest)
}

// newest is the highest version that was applied; 0 for a new database.
func (h history) newest() int64 {
	if len(h.applied) == 0 {
		return 0
	}
	return h.applied[len(h.applied)-1]
}

// check tells whether a build with these migrations can bring the database up
// to date. newer: a newer build has, and there is nothing to do.
func (h history) check(migrations []int64) (newer bool, _ error) {
	if h.edited {
		return false, startAgain("the database was made before commit %s, and migrations that it has were edited afterwards", editedAfter)
	}
	latest := slices.Max(migrations)
	if h.newest() > latest {
		if latest < h.oldest {
			return false, tooOld(h.newest(), latest, h.oldest)
		}
		return true, nil
	}
	var unknown, missing []int64
	for _, version := range h.applied {
		if version != 0 && !slices.Contains(migrations, version) { // goose writes a 0 first
			unknown = append(unknown, version)
		}
	}
	for _, version := range migrations {
		if version < h.newest() && !slices.Contains(h.applied, version) && !h.mayCatchUp(version) {
			missing = append(missing, version)
		}
	}
	if len(unknown) > 0 {
		return false, startAgain("the database has migrations that this build does not know: %s", listed(unknown))
	}
	if len(missing) > 0 {
		return false, startAgain("the database has migration %d and lacks earlier ones: %s", h.newest(), listed(missing))
	}
	return false, nil
}

func (h history) mayCatchUp(version int64) bool {
	l, ok := late[version]
	return ok && h.newest() <= l.landedBefore
}

// startAgain is about a database of a version in development that has no way to
// this one.
func startAgain(format string, args ...any) error {
	return fault.With(fault.Newf(fault.ErrConflict, format, args...), fault.Code("schema_history"),
		fault.Remedy("nothing was changed. Go on with the version that made the database, or start with an empty one: "+
			"another name with --database, or, where `berth up` made it, `berth down --purge`, which deletes all its data"))
}

func listed(versions []int64) string {
	texts := make([]string, len(versions))
	for i, version := range versions {
		texts[i] = fmt.Sprint(version)
	}
	return strings.Join(texts, ", ")
}
