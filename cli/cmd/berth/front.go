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
		Short: "Give runners elsewhere one address, with TLS",
		Long: `Serves the control plane of berth up to runners in customers' clusters at one address, over
TLS, until Ctrl-C: /v2/ is the org's registry, /streams/ log-ingest, everything else
runner-api. The API for people is not behind it. Start berth up with BERTH_PUBLIC_URL set to
the address, then installs can have the stack kubernetes. A proxy or ingress of your own with
the same three rules does as well.`,
		Example: "  BERTH_PUBLIC_URL=https://berth.example.com:8443 berth up -d\n" +
			"  berth front --listen 0.0.0.0:8443 --tls-cert berth.pem --tls-key berth.key",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cert == "" || key == "" {
				return usagef("--tls-cert and --tls-key are needed: secrets go through here")
			}
			return c.front(cmd.Context(), listen, cert, key)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8443", "address to serve on, host:port")
	cmd.Flags().StringVar(&cert, "tls-cert", "", "certificate with its chain, a file in PEM")
	cmd.Flags().StringVar(&key, "tls-key", "", "its key, a file in PEM")
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
