package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
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
	// minToken is how long a token is at least, in characters.
	minToken = 16
)

// registryCommand serves the images of the install to kubelets. It is a process
// of its own: pods can be restarted while no agent runs.
func (s *settings) registryCommand() *cobra.Command {
	var listen, tokenFile string
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Serve the install's images to the kubelets of its cluster",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.config()
			if err != nil {
				return err
			}
			loopback, err := onLoopback(listen)
			if err != nil {
				return err
			}
			if tokenFile == "" && !loopback {
				return usageError{fmt.Errorf("--listen: anyone who can reach %s could read the images: listen on a loopback address, or use --token-file", listen)}
			}
			images, err := imagesOf(cfg.Data, tokenFile)
			if err != nil {
				return err
			}
			return serveImages(cmd.Context(), listen, images)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:5000", "HOST:PORT to listen on; without --token-file a loopback address")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the token that a puller has to show")
	cmd.AddCommand(s.prepareCommand(), relayCommand())
	return cmd
}

// relayCommand is what kubelets of a node ask: it listens on the node's loopback
// and passes pulls on to the registry in the cluster.
func relayCommand() *cobra.Command {
	var listen, to, tokenFile string
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Pass pulls from this node's loopback on to the registry in the cluster",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch loopback, err := onLoopback(listen); {
			case err != nil:
				return err
			case !loopback:
				return usageError{fmt.Errorf("--listen: anyone who can reach %s could read the images: use a loopback address", listen)}
			}
			if _, _, err := net.SplitHostPort(to); err != nil {
				return usageError{fmt.Errorf("--to: %q is not HOST:PORT", to)}
			}
			token, err := readToken(tokenFile)
			if err != nil {
				return err
			}
			return serveImages(cmd.Context(), listen, registry.Relay(to, token, slog.Default()))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:30500", "loopback HOST:PORT to listen on")
	cmd.Flags().StringVar(&to, "to", "", "HOST:PORT of the registry")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the token of the registry")
	return cmd
}

// onLoopback says whether only this machine can reach HOST:PORT.
func onLoopback(address string) (bool, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return false, usageError{fmt.Errorf("--listen: %q is not HOST:PORT", address)}
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

func readToken(path string) (string, error) {
	if path == "" {
		return "", usageError{errors.New("no token: use --token-file")}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < minToken {
		return "", usageError{fmt.Errorf("--token-file: %s has fewer than %d characters", path, minToken)}
	}
	return token, nil
}

// imagesOf serves the images in a data directory, to everybody when there is no
// file with a token.
func imagesOf(data, tokenFile string) (http.Handler, error) {
	dir, err := datadir.At(data)
	if err != nil {
		return nil, err
	}
	layout, err := oci.Open(dir.Artifacts())
	if err != nil {
		return nil, fmt.Errorf("own registry: %w", err)
	}
	images := registry.Handler(layout, slog.Default())
	if tokenFile == "" {
		return images, nil
	}
	token, err := readToken(tokenFile)
	if err != nil {
		return nil, err
	}
	return registry.Guard(token, images), nil
}

func serveImages(ctx context.Context, listen string, images http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	limited := intake.Limit(listener, maxConnections)
	server := &http.Server{
		// Nothing is pushed here: no body is ever read.
		Handler: intake.Handler(images), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
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
