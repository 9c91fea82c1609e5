// Command berth-ctl-api is the control plane's public API and the engine of its
// workflows. It keeps nothing outside of Postgres; any number of replicas may
// run.
//
//	berth-ctl-api serve          serve the API; settings are environment variables, see Config
//	berth-ctl-api migrate        make database, roles and schema, or bring them up to date
//	berth-ctl-api await-schema   wait until that is done
//	berth-ctl-api bootstrap      make the first org and a token of its admin
//	berth-ctl-api version        say which version this is
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/startup"
)

// name of the service, as its spans and its database sessions say it.
const name = "berth-ctl-api"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		startup.Report(os.Stderr, name, err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: "The control plane of Berth", SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
	}
	root.AddCommand(serveCommand(), migrateCommand(), awaitCommand(), bootstrapCommand(), &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Get().Version) },
	})
	return root
}

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve the API and run workflows", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig()
			if err != nil {
				return err
			}
			return startup.Observed(cmd.Context(), name, func(ctx context.Context) error { return Run(ctx, config, slog.Default()) })
		},
	}
}

func loadConfig() (Config, error) {
	config, err := setting.Load[Config](os.Getenv)
	if err != nil {
		return config, fmt.Errorf("settings:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return config, nil
}
