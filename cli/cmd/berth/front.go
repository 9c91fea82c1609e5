package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/front"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/up"
)

func (c *cli) frontCommand() *cobra.Command {
	var listen, cert, key string
	cmd := &cobra.Command{
		Use:   "front",
		Short: "Serve one TLS address to runners on other machines",
		Long: `Serves the control plane of berth up to runners in customers' clusters at one address, over
TLS, until Ctrl-C: /v2/ goes to the org's registry, /streams/ to log-ingest, everything else
to runner-api. It does not expose the API for people. Start berth up with BERTH_PUBLIC_URL
set to this address, and installs can use the kubernetes stack. Your own proxy or ingress
with the same three rules works too.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cert == "" || key == "" {
				return usagef("berth front needs --tls-cert and --tls-key, because secrets pass through it")
			}
			return c.front(cmd.Context(), listen, cert, key)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8443", "address to serve on, host:port")
	cmd.Flags().StringVar(&cert, "tls-cert", "", "PEM file with the certificate and its chain")
	cmd.Flags().StringVar(&key, "tls-key", "", "PEM file with its key")
	return cmd
}

func (c *cli) front(ctx context.Context, listen, cert, key string) error {
	first, err := up.ParsePort(c.getenv("BERTH_PORT"))
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	ports := up.PortsFrom(first)
	var upstreams front.Upstreams
	for port, to := range map[int]**url.URL{ports.Runner: &upstreams.RunnerAPI, ports.Log: &upstreams.LogIngest, ports.Registry: &upstreams.Registry} {
		if *to, err = url.Parse(up.URL(port)); err != nil {
			return err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	output.Printf(c.err, "serving on https://%s\n", listener.Addr())
	return front.Run(ctx, front.Config{
		Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Upstreams: upstreams, Log: slog.New(slog.NewTextHandler(c.err, nil)),
	})
}
