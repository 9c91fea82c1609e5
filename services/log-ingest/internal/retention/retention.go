// Package retention makes the day partitions of the log ahead of time and drops
// the expired ones. Every replica runs it; an advisory lock in the database lets
// one of them work at a time.
package retention

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/berth-dev/berth/services/internal/store/logdb"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
)

const (
	// aheadDays survives a week without any running replica.
	aheadDays = 7
	// retryAfter is for a round that failed, or gave way to a long reader.
	retryAfter = time.Minute
	// spread keeps replicas from all coming at midnight sharp.
	spread = 5 * time.Minute
)

// Keeper is the worker. Days is how many whole days a line stays readable.
type Keeper struct {
	Store *database.Store
	Days  int
	Log   *slog.Logger
}

// Once does one round.
func (k Keeper) Once(ctx context.Context) error {
	return k.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		dropped, err := tx.KeepLogPartitions(ctx, logdb.KeepLogPartitionsParams{KeepDays: int32(k.Days), AheadDays: aheadDays})
		if err != nil {
			return fmt.Errorf("keep log partitions: %w", err)
		}
		if len(dropped) > 0 {
			k.Log.InfoContext(ctx, "expired logs dropped", "partitions", dropped, "keep_days", k.Days)
		}
		return nil
	})
}

// Run does a round at the start of each day (UTC) until ctx ends. The first
// round is the caller's, before the service takes lines.
func (k Keeper) Run(ctx context.Context) error {
	wait := untilNextDay(time.Now())
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		wait = untilNextDay(time.Now())
		if err := k.Once(ctx); err != nil && ctx.Err() == nil {
			k.Log.WarnContext(ctx, "log retention failed, will retry", "err", err, "retry_in", retryAfter)
			wait = retryAfter
		}
	}
}

// untilNextDay is the time to a moment soon after the next midnight in UTC.
func untilNextDay(now time.Time) time.Duration {
	now = now.UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	return midnight.Sub(now) + time.Minute + rand.N(spread) //nolint:gosec // spreads load, is no secret
}
