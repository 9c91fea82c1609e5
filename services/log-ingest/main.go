// Command berth-log-ingest takes the log streams of runners, stores them, and
// shows them: pages and a live tail. It keeps nothing outside of Postgres; any
// number of replicas may run.
//
// Its settings are environment variables; see Config.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/telemetry"
)

// flushTimeout is for the last spans and metrics.
const flushTimeout = 5 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "berth-log-ingest:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config := configFromEnv(os.Getenv)
	if err := config.Validate(); err != nil {
		return err
	}
	flush, err := telemetry.Setup(ctx, "berth-log-ingest")
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := flush(ctx); err != nil {
			slog.WarnContext(ctx, "telemetry not flushed", "err", err)
		}
	}()
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return err
	}
	return Run(ctx, config, listener, slog.Default())
}
