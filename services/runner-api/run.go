package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/runner-api/internal/api"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/expiry"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/presence"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
	"github.com/berth-dev/berth/services/runner-api/internal/waiting"
)

// Run serves until ctx is done, then answers what is held and returns nil.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	dsn, err := cfg.dsn()
	if err != nil {
		return err
	}
	log := slog.Default()
	st, err := store.Open(ctx, dsn, store.Options{Name: "berth-runner-api", MaxConns: int32(cfg.DatabaseConnections), Log: log})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.CheckSchema(ctx); err != nil {
		return err
	}
	return serve(ctx, cfg, database.New(st), log)
}

func serve(ctx context.Context, cfg Config, st *database.Store, log *slog.Logger) error {
	metrics := api.NewMetrics()
	sessions := session.NewCache(cfg.CachedSessions)
	jobs, settings := waiting.NewRoom(), waiting.NewRoom()
	here := presence.New(st, log, func(n presence.News) {
		sessions.Reconcile(n.RunnerID, n.Epoch, n.Active)
		if n.Queued {
			jobs.Wake(n.RunnerID)
		}
		settings.WakeBeyond(n.RunnerID, n.SettingsVersion)
	})
	watch := expiry.New(st, log, expiry.Options{
		Lease: cfg.Lease, Lost: func(n int64) { metrics.Lost().Add(ctx, n) },
	})
	listener := st.NewListener(model.ChannelJobs, model.ChannelSettings, model.ChannelRevoked)
	listener.Handle(model.ChannelJobs, jobs.Wake)
	listener.Handle(model.ChannelSettings, settings.Wake)
	listener.Handle(model.ChannelRevoked, sessions.Forget)
	// While it was away notifications were lost, and runners could not renew.
	listener.OnResync(func(context.Context) {
		here.Now()
		watch.HoldBack()
	})

	doors := gate.New(st, sessions, nil)
	spec, err := apigen.GetSpec()
	if err != nil {
		return fmt.Errorf("read contract: %w", err)
	}
	if err := gate.Permissions().Check(spec); err != nil {
		return err
	}
	server := httpserver.New(httpserver.Config{
		Name: "berth-runner-api", Log: log, Spec: spec, Listen: cfg.Listen, Listener: cfg.Listener,
		Middleware: []gin.HandlerFunc{doors.Admit(here.Saw)}, BodyLimits: gate.BodyLimits(), Limits: cfg.Limits, Rates: cfg.Rates, KnownCallers: gate.KnownCallers(), Ready: st.Ping,
	})
	handlers := apigen.NewStrictHandlerWithOptions(api.New(api.Deps{
		Store: st, Log: log, Gate: doors, Presence: here, Jobs: jobs, Settings: settings, Metrics: metrics,
	}, api.Config{
		Lease: cfg.Lease, Registry: cfg.registry(), LogURL: cfg.LogURL, MinVersion: cfg.MinRunnerVersion,
	}), nil, apigen.StrictGinServerOptions{
		RequestErrorHandlerFunc:  httpserver.RequestError,
		HandlerErrorFunc:         httpserver.HandlerError,
		ResponseErrorHandlerFunc: httpserver.ResponseError,
	})
	apigen.RegisterHandlersWithOptions(server.Router(), handlers, apigen.GinServerOptions{ErrorHandler: httpserver.ParamError})

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return listener.Run(ctx) })
	group.Go(func() error { return here.Run(ctx) })
	group.Go(func() error { return watch.Run(ctx) })
	group.Go(func() error {
		// A claim that looked before anybody listened could wait in vain.
		select {
		case <-listener.Ready():
			return server.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}
