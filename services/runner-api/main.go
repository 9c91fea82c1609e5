// Command berth-runner-api is the only door through which runners get work and
// report it: enrolment, sessions, claims, leases, results, Terraform states,
// settings and chains, as openapi/runner-api.yaml says. It keeps no state
// outside Postgres; run as many replicas as you like.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/version"
)

// flushTimeout is how long spans and metrics may take to leave at the end.
const flushTimeout = 5 * time.Second

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version.Get())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("runner-api stopped", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	flush, err := telemetry.Setup(ctx, "berth-runner-api")
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
	cfg, err := FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	return Run(ctx, cfg)
}
