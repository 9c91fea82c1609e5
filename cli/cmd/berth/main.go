// Command berth is the command line of Berth: the daily verbs (sync, deploy,
// approve, logs, status, why), the nouns behind them, and the system for one
// machine (up, down).
//
// A noun has its file, NOUN.go; verbs or groups of verbs that need room have
// NOUN_VERB.go, and what all commands share is in root.go, print.go, watch.go and
// exit.go. A command does four things: read its flags, call the API or another
// room of cli/internal, wait when asked to, and print. It prints results to stdout
// in one of the formats of -o, and progress to stderr.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/visible"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := traced(ctx, func(ctx context.Context) int {
		return run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Getenv)
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

// streams are where a command reads from and writes to. In run they are wrapped:
// whatever a command writes is made visible on its way (package visible), so that
// no text of somebody else steers the terminal.
type streams struct {
	in       io.Reader
	out, err io.Writer
}
