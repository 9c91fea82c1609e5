// Package startup is what the processes of all services begin and end with:
// signals, telemetry, the exit code, the database.
package startup

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/store"
)

// flushTimeout is for the last spans and metrics.
const flushTimeout = 5 * time.Second

// Main is the main function of a service without commands: it runs until it is
// interrupted or fails. Its only argument is "version".
func Main(name string, run func(ctx context.Context) error) {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version.Get())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Observed(ctx, name, run)
	stop()
	if err != nil {
		Report(os.Stderr, name, err)
		os.Exit(1)
	}
}

// Observed runs with telemetry, which it flushes at the end.
func Observed(ctx context.Context, name string, run func(ctx context.Context) error) error {
	flush, err := telemetry.Setup(ctx, name)
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
	return run(ctx)
}

// Report tells the person who started the process why it ends, and what helps.
func Report(w io.Writer, name string, err error) {
	fmt.Fprintf(w, "%s: %v\n", name, err)
	if p := fault.From(err); p.Remedy != "" {
		fmt.Fprintln(w, p.Remedy)
	}
}

// OpenStore connects to the database that the file names the address of, and
// makes sure that its schema fits.
func OpenStore(ctx context.Context, dsnFile string, options store.Options) (*store.Store, error) {
	dsn, err := setting.ReadDSN(dsnFile)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, dsn, options)
	if err != nil {
		return nil, err
	}
	if err := st.CheckSchema(ctx); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}
