// Command berth-engine works on one job and ends. The runner starts it:
//
//	berth-engine run DIR
//
// berth starts it too, to render components without a cluster:
//
//	berth-engine objects < SOURCES.json
//
// See package jobspec for what DIR holds and what the exit code says.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/runner/engine"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/offline"
	"github.com/berth-dev/berth/runner/engine/probe"
)

func main() {
	started := time.Now()
	collect()
	// First of all: without handlers, signals do nothing to process 1 of a pid
	// namespace, and end any other process without a result.
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		<-signals
		stop(job.ErrStopped)
	}()
	os.Exit(run(ctx, os.Args[1:], started))
}

// collect turns the garbage collector on: the agent starts engines without, which
// makes the initialisation of their packages a quarter shorter.
func collect() {
	const goDefault = 100 // percent
	debug.SetGCPercent(goDefault)
	_ = os.Unsetenv("GOGC") // what the engine starts decides for itself
}

func run(ctx context.Context, args []string, started time.Time) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Println(version.Get().Version)
		return jobspec.ExitFinished
	}
	if len(args) == 1 && args[0] == "objects" { // for berth apps permissions
		if err := offline.Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return jobspec.ExitRefused
		}
		return jobspec.ExitFinished
	}
	if len(args) == 2 && args[0] == "probe" { // for the checks that probes of components are
		return probe.Run(ctx, args[1], os.Getenv, os.Stderr)
	}
	if len(args) != 2 || args[0] != "run" {
		fmt.Fprintln(os.Stderr, "usage: berth-engine run DIR")
		return jobspec.ExitRefused
	}
	// A tracer that cannot be set up is no reason not to work.
	shutdown, err := telemetry.Setup(ctx, "berth-engine")
	if err != nil {
		fmt.Fprintln(os.Stderr, "no telemetry:", err)
		shutdown = func(context.Context) error { return nil }
	}
	ctx, span := otel.Tracer("berth-engine").Start(telemetry.FromEnviron(ctx, os.Getenv), "engine run")
	code := engine.Run(ctx, engine.Config{
		Dir: args[1], Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, StartedAt: started,
	})
	if code != jobspec.ExitFinished {
		span.SetStatus(codes.Error, "")
	}
	span.End()

	const flushTimeout = 2 * time.Second // the result is written; nobody should wait for a collector
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = shutdown(flush)
	return code
}
