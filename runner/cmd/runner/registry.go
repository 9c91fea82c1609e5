package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/registry"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeaders    = 64 << 10
	// maxConnections is far above what the kubelets of a cluster pull at once.
	maxConnections = 1024
	// pullsTimeout is what pulls under way get when the registry is to end.
	pullsTimeout = 10 * time.Second
)

// registryCommand serves the images of the install to kubelets. It is a process
// of its own: pods can be restarted while no agent runs.
func (s *settings) registryCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Serve the install's images to the kubelets of its cluster",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.config()
			if err != nil {
				return err
			}
			if host, port, err := net.SplitHostPort(listen); err != nil || host == "" || port == "" {
				return usageError{fmt.Errorf("--listen: %q is not HOST:PORT", listen)}
			}
			return serveImages(cmd.Context(), cfg.Data, listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:5000", "HOST:PORT to listen on; anyone who can reach it can read the images")
	cmd.AddCommand(s.prepareCommand())
	return cmd
}

func serveImages(ctx context.Context, data, listen string) error {
	dir, err := datadir.At(data)
	if err != nil {
		return err
	}
	layout, err := oci.Open(dir.Artifacts())
	if err != nil {
		return fmt.Errorf("own registry: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	limited := intake.Limit(listener, maxConnections)
	server := &http.Server{
		// Nothing is pushed here: no body is ever read.
		Handler: intake.Handler(registry.Handler(layout, slog.Default())), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaders,
	}
	limited.Watch(server)
	slog.InfoContext(ctx, "registry started", "address", listener.Addr().String())
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullsTimeout)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(late), server.Close())
	})
	if err := server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	if err := <-stopped; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // who still pulls begins again
}
