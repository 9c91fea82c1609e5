// Command berth-ctl-api is the control plane's public API and the engine of its
// workflows. It keeps nothing outside of Postgres; any number of replicas may
// run.
//
//	berth-ctl-api serve       serve the API; settings are environment variables, see Config
//	berth-ctl-api migrate     make database, roles and schema, or bring them up to date
//	berth-ctl-api bootstrap   make the first org and a token of its admin
//	berth-ctl-api version     say which version this is
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/internal/fault"
)

// flushTimeout is for the last spans and metrics.
const flushTimeout = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "berth-ctl-api:", err)
		if p := fault.From(err); p.Remedy != "" {
			fmt.Fprintln(os.Stderr, p.Remedy)
		}
		os.Exit(1) //nolint:gocritic // the signals are of no more interest
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "berth-ctl-api", Short: "The control plane of Berth", SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
	}
	root.AddCommand(serveCommand(), migrateCommand(), bootstrapCommand(), &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Get().Version) },
	})
	return root
}

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve the API and run workflows", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			config := configFromEnv(os.Getenv)
			if err := config.Validate(); err != nil {
				return fmt.Errorf("settings:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
			}
			flush, err := telemetry.Setup(ctx, "berth-ctl-api")
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
			return Run(ctx, config, slog.Default())
		},
	}
}
