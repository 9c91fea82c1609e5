// Command berth is the command line of Berth: the daily verbs (sync, deploy,
// approve, logs, status, why), the nouns behind them, and the system for one
// machine (up, down).
//
// A noun has its file, NOUN.go; verbs or groups of verbs that need room have
// NOUN_VERB.go; what all commands share is in cli/internal/command, and watch.go. A
// noun with many verbs has a room of its own (cli/internal/apps). A command does four things: read its flags, call the API or another
// room of cli/internal, wait when asked to, and print. It prints results to stdout
// in one of the formats of -o, and progress to stderr.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/visible"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := traced(ctx, func(ctx context.Context) int {
		return run(ctx, os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv)
	})
	stop()
	os.Exit(code)
}

// flushTimeout is for the last spans. Nobody waits longer for a command that is
// done.
const flushTimeout = 2 * time.Second

// traced runs a command inside a span, with which the trace of everything that
// it sets in motion begins. Off without the standard OTEL_* variables.
func traced(ctx context.Context, command func(context.Context) int) int {
	flush, err := telemetry.Setup(ctx, "berth")
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth: no telemetry:", visible.Line(err.Error()))
		return command(ctx)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = flush(ctx) // lost spans are no reason to fail
	}()
	ctx, span := otel.Tracer("berth/cli").Start(telemetry.FromEnviron(ctx, os.Getenv), "berth")
	defer span.End()
	return command(ctx)
}
