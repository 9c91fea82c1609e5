// Command berth-builder turns sources into artifacts: it resolves them to
// commits and digests, decides what must be built, hands that to the org's
// Build Runner, and makes the release when the last build of a config is done.
// It owns the registry of all orgs and keeps the Build Runners alive. It has no
// API but the registry's.
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
		slog.Error("builder stopped", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	flush, err := telemetry.Setup(ctx, "berth-builder")
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
