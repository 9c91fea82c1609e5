package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/log-ingest/internal/api"
	"github.com/berth-dev/berth/services/log-ingest/internal/retention"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// drainTimeout is for appends that are under way at shutdown.
	drainTimeout = 10 * time.Second
)

// Run serves on listener, which it closes, until ctx ends; then it lets
// requests finish, ends the tails (their readers reconnect), and returns nil.
func Run(ctx context.Context, config Config, listener net.Listener, log *slog.Logger) error {
	defer listener.Close()
	dsn, err := config.dsn()
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, dsn, store.Options{Name: "berth-log-ingest", MaxConns: int32(config.MaxConns), Log: log})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.CheckSchema(ctx); err != nil {
		return err
	}
	keeper := retention.Keeper{Store: st, Days: config.KeepDays, Log: log}
	if err := keeper.Once(ctx); err != nil { // no line is taken without a partition for it
		return err
	}
	wakeups := st.NewListener(streams.Channel)
	str, err := streams.New(st, wakeups)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           api.Handler(ctx, st, str, log),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return wakeups.Run(groupCtx) })
	group.Go(func() error { return keeper.Run(groupCtx) })
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-groupCtx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			return errors.Join(fmt.Errorf("shut down: %w", err), server.Close())
		}
		return nil
	})
	log.InfoContext(ctx, "log-ingest is ready", "listen", listener.Addr().String(), "keep_days", config.KeepDays)
	return group.Wait()
}
