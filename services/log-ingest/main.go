// Command berth-log-ingest takes the log streams of runners, stores them, and
// shows them: pages and a live tail. It keeps nothing outside of Postgres; any
// number of replicas may run.
//
// Its settings are environment variables; see Config.
package main

import (
	"context"
	"log/slog"
	"net"
	"os"

	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/startup"
)

func main() {
	startup.Main("berth-log-ingest", func(ctx context.Context) error {
		config, err := setting.Load[Config](os.Getenv)
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", config.Listen)
		if err != nil {
			return err
		}
		return Run(ctx, config, listener, slog.Default())
	})
}
