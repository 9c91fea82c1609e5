package streams

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/log-ingest/internal/database"
)

const (
	// One answer of a search looks through at most so much text or so long, and says
	// where it stopped: a stream of gigabytes is searched in several.
	maxFindBytes = 64 << 20
	maxFindTime  = 2 * time.Second

	chunksPerFind = 16 // batches that a search has in memory at once
)

// Wanted says which records a search is for; all of it has to fit. The zero value is
// every record.
type Wanted struct {
	Contains string // in any case, and whatever the colours; empty: anything
	Level    Level  // exactly; NoLevel: any
}

// fits tells whether a record is wanted. contains is w.Contains in lower case.
func (w Wanted) fits(r Numbered, contains string) bool {
	return (w.Level == NoLevel || LevelOf(r.Record) == w.Level) &&
		(contains == "" || strings.Contains(strings.ToLower(plain(r.Text)), contains))
}

// Find returns records that are wanted, oldest first, and the record after which the
// search goes on; 0 when it has come to the last one. It can stop before the limit, with
// nothing found even: then only the lines up to next were looked at.
func (s *Streams) Find(ctx context.Context, org, id string, want Page) (found []Numbered, next int64, err error) {
	contains := strings.ToLower(want.Contains)
	err = s.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		found, next = nil, 0
		row, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		began := time.Now()
		for looked, at := 0, want.After; ; {
			records, err := s.look(ctx, tx, row, at, chunksPerFind)
			if err != nil || len(records) == 0 {
				return err
			}
			for _, r := range records {
				if looked += len(r.Text); want.fits(r, contains) {
					found = append(found, r)
				}
				if at = r.Seq; len(found) == want.Limit {
					break
				}
			}
			if at == row.NextSeq-1 {
				return nil
			}
			if len(found) == want.Limit || looked > maxFindBytes || time.Since(began) > maxFindTime {
				next = at
				return nil
			}
		}
	})
	return found, next, err
}
