package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/store"
)

// Wakeup is a job by what it says: its kind, and fields of its args.
type Wakeup struct {
	Kind string
	Args map[string]string
}

// Due tells whether one of some wake-ups is in the queue of a schema and has not been
// worked off: somebody is about to do what it is for. One that is for later does not
// count before its time.
//
// A wake-up goes into the queue in the transaction that it is about. Under a lock that its
// worker needs too, no therefore means that there was none, or that it was lost.
func Due(ctx context.Context, tx *store.Tx, schema string, of ...Wakeup) (bool, error) {
	sql := `SELECT EXISTS (SELECT FROM ` + pgx.Identifier{schema, "river_job"}.Sanitize() + `
		WHERE kind = $1 AND args @> $2::jsonb
		  AND (state IN ('available', 'running', 'retryable', 'pending') OR state = 'scheduled' AND scheduled_at <= clock_timestamp()))`
	for _, w := range of {
		args, err := json.Marshal(w.Args)
		if err != nil {
			return false, err
		}
		var due bool
		if err := tx.Raw().QueryRow(ctx, sql, w.Kind, args).Scan(&due); err != nil {
			return false, fmt.Errorf("look for wake-up %s: %w", w.Kind, err)
		}
		if due {
			return true, nil
		}
	}
	return false, nil
}
