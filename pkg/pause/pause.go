// Package pause makes the pauses between tries: they end with their context, and
// are random, so that many clients do not come back in one moment.
package pause

import (
	"context"
	"math/rand/v2"
	"time"
)

// For waits for d, or returns the cause that ended the context.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Jittered is at least half of d, which is more than a nanosecond, and less than
// all of it.
func Jittered(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2) //nolint:gosec // G404: spreads requests, protects nothing
}
