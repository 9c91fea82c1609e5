package api

import (
	"context"
	"time"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
)

// Channels is what the Server's Listener must listen on: what wakes requests
// that wait, and revocations.
var Channels = []model.Channel{model.ChannelWorkflow, model.ChannelBuild, model.ChannelRevoked, model.ChannelOutbox, model.ChannelEvents}

const (
	// maxWait is the contract's.
	maxWait = 60 * time.Second
	// lookAgain bounds how late a waiting request answers when the wake-up
	// was lost with the process that should have sent it.
	lookAgain = 30 * time.Second
)

// wakeUps are those that have a wait look again. The key is asked after the first
// look.
type wakeUps struct {
	channel model.Channel
	key     func() string
}

// wait calls look until it has seen a move, the wait is over, the caller is gone
// or the server ends; look keeps what it saw. Without a wait it looks once.
func (s *Server) wait(ctx context.Context, wait *string, on wakeUps, look func(ctx context.Context) (moved bool, err error)) error {
	limit, err := waitOf(wait)
	if err != nil {
		return err
	}
	if moved, err := look(ctx); err != nil || limit == 0 || moved {
		return err
	}
	sub := s.Listener.Subscribe(on.channel, on.key())
	defer sub.Close()
	over := time.NewTimer(limit)
	defer over.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if moved, err := look(ctx); err != nil || moved {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-httpserver.Draining(ctx):
			return nil
		case <-over.C:
			return nil
		case <-sub.C:
		case <-again.C:
		}
	}
}

func waitOf(wait *string) (time.Duration, error) {
	if optional.Value(wait) == "" {
		return 0, nil
	}
	limit, err := time.ParseDuration(*wait)
	if err != nil || limit < 0 {
		return 0, fault.Newf(fault.ErrInvalid, "wait must be a duration such as 30s")
	}
	return min(limit, maxWait), nil
}
