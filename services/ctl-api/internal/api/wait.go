package api

import (
	"context"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Channels that wake requests which wait.
const (
	// WorkflowChannel carries the id of a workflow that got an event.
	WorkflowChannel = "berth_workflow"
	// BuildChannel carries the id of the app of which a build has moved or a
	// release was made.
	BuildChannel = "berth_build"
)

// Channels is what the Server's Listener must listen on.
var Channels = []string{WorkflowChannel, BuildChannel, access.RevokedChannel}

const (
	// maxWait is the contract's.
	maxWait = 60 * time.Second
	// lookAgain bounds how late a waiting request answers when the wake-up
	// was lost with the process that should have sent it.
	lookAgain = 2 * time.Second
)

// wait calls look until it returns a version above after, the wait is over or
// the caller is gone; look keeps what it saw. Without a wait it looks once.
func (s *Server) wait(ctx context.Context, wait *string, after *int64, channel string, key func() string, look func(ctx context.Context) (version int64, err error)) error {
	limit, err := waitOf(wait)
	if err != nil {
		return err
	}
	version, err := look(ctx)
	if err != nil || limit == 0 || version > value(after) {
		return err
	}
	sub := s.Listener.Subscribe(channel, key())
	defer sub.Close()
	over := time.NewTimer(limit)
	defer over.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if version, err = look(ctx); err != nil || version > value(after) {
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
	if value(wait) == "" {
		return 0, nil
	}
	limit, err := time.ParseDuration(*wait)
	if err != nil || limit < 0 {
		return 0, fault.Newf(fault.ErrInvalid, "wait is not a duration such as 30s")
	}
	return min(limit, maxWait), nil
}
