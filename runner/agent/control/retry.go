package control

import (
	"context"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
)

const (
	minBackoff = 200 * time.Millisecond
	// maxBackoff keeps the time after an outage short: recovery of anything is
	// to take less than 15 s.
	maxBackoff = 8 * time.Second
)

// Backoff is how long to wait after the given number of tries: doubling up to
// 8 s, with a random half, so that many agents do not come back in one moment.
func Backoff(try int) time.Duration {
	return pause.Jittered(min(minBackoff<<min(try, 10), maxBackoff))
}

// Retry calls do again while the control plane is away, and returns its first
// other answer. A session that is over counts as away: the agent is opening
// another one meanwhile.
func Retry(ctx context.Context, log *slog.Logger, what string, do func(context.Context) error) error {
	for try := 0; ; try++ {
		err := do(ctx)
		switch {
		case err == nil:
			if try > 0 {
				log.InfoContext(ctx, "control plane answers again", "call", what, "tries", try+1)
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !Away(err) && Status(err) != 401:
			return err
		case try == 0:
			log.WarnContext(ctx, "control plane does not answer, trying again", "call", what, "err", err)
		}
		if err := pause.For(ctx, Backoff(try)); err != nil {
			return err
		}
	}
}
