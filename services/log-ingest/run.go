package main

import (
	"context"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/startup"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/log-ingest/internal/api"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
	"github.com/berth-dev/berth/services/log-ingest/internal/retention"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

// Run serves on listener, which it closes, until ctx ends; then it lets
// requests finish, ends the tails (their readers reconnect), and returns nil.
func Run(ctx context.Context, config Config, listener net.Listener, log *slog.Logger) error {
	defer listener.Close()
	opened, err := startup.OpenStore(ctx, config.DSNFile, store.Options{Name: "berth-log-ingest", MaxConns: int32(config.MaxConns), Log: log})
	if err != nil {
		return err
	}
	defer opened.Close()
	st := database.New(opened)
	keeper := retention.Keeper{Store: st, Days: config.KeepDays, Log: log}
	if err := keeper.Once(ctx); err != nil { // no line is taken without a partition for it
		return err
	}
	wakeups := st.NewListener(model.ChannelLogs)
	str, err := streams.New(st, wakeups)
	if err != nil {
		return err
	}
	door, err := api.New(api.Door{Listener: listener, Limits: config.Limits, Rates: config.Rates, Log: log}, st, str)
	if err != nil {
		return err
	}

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return wakeups.Run(groupCtx) })
	group.Go(func() error { return keeper.Run(groupCtx) })
	group.Go(func() error { return door.Run(groupCtx) })
	log.InfoContext(ctx, "log-ingest is ready", "listen", listener.Addr().String(), "keep_days", config.KeepDays)
	return group.Wait()
}
