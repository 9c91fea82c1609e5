package front

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/up"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// Command is berth  It reads BERTH_PORT with getenv, and says on said where it
// serves.
func Command(args cobra.PositionalArgs, getenv func(string) string, said io.Writer) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "front",
		Short: "Serve one TLS address to runners on other machines",
		Long: `Serves the control plane of berth up to runners in customers' clusters at one address, over
TLS, until Ctrl-C: /v2/ goes to the org's registry, /streams/ to log-ingest, everything else
to runner-api. It does not expose the API for people. Start berth up with BERTH_PUBLIC_URL
set to this address, and installs can use the kubernetes stack. Your own proxy or ingress
with the same three rules works too.

Where the services run elsewhere, as in Kubernetes, the other flags say where. With --api, /api/
leads to ctl-api, and https://HOST/api is the address for berth context add. Replaced
certificate files are read again. /healthz and /readyz are about the front itself.`,
		Args: args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.cert == "" || f.key == "" {
				return usage.Errorf("berth front needs --tls-cert and --tls-key, because secrets pass through it")
			}
			return f.serve(cmd.Context(), getenv, said)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8443", "address to serve on, host:port")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "PEM file with the certificate and its chain")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "PEM file with its key")
	cmd.Flags().StringVar(&f.runnerAPI, "runner-api", "", "URL of runner-api (default: that of berth up)")
	cmd.Flags().StringVar(&f.logIngest, "log-ingest", "", "URL of log-ingest (default: that of berth up)")
	cmd.Flags().StringVar(&f.registry, "registry", "", "URL of the org's registry (default: that of berth up)")
	cmd.Flags().StringVar(&f.api, "api", "", "URL of ctl-api, to serve the API for people below /api/ (default: not served)")
	return cmd
}

// flags are those of berth front.
type flags struct {
	listen, cert, key                   string
	runnerAPI, logIngest, registry, api string
}

func (f flags) serve(ctx context.Context, getenv func(string) string, said io.Writer) error {
	first, err := up.ParsePort(getenv("BERTH_PORT"))
	if err != nil {
		return err
	}
	upstreams, err := f.upstreams(up.PortsFrom(first))
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(said, nil))
	certificate, err := LoadCertificate(f.cert, f.key, log)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	output.Printf(said, "serving on https://%s\n", listener.Addr())
	return Run(ctx, Config{
		Listener: listener, TLS: &tls.Config{GetCertificate: certificate.Get, MinVersion: tls.VersionTLS12},
		Upstreams: upstreams, Log: log,
	})
}

// upstreams are what the flags name, and else what berth up serves at ports.
func (f flags) upstreams(ports up.Ports) (Upstreams, error) {
	var upstreams Upstreams
	for _, part := range []struct {
		flag, address string
		to            **url.URL
	}{
		{"runner-api", cmp.Or(f.runnerAPI, up.URL(ports.Runner)), &upstreams.RunnerAPI},
		{"log-ingest", cmp.Or(f.logIngest, up.URL(ports.Log)), &upstreams.LogIngest},
		{"registry", cmp.Or(f.registry, up.URL(ports.Registry)), &upstreams.Registry},
		{"api", f.api, &upstreams.CtlAPI},
	} {
		if part.address == "" {
			continue
		}
		address, err := url.Parse(part.address)
		if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") || address.User != nil {
			return upstreams, usage.Errorf("--%s must be an address like http://%s:8700", part.flag, part.flag)
		}
		*part.to = address
	}
	return upstreams, nil
}
