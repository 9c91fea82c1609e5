// Package front gives the control plane of `berth up` one address for runners
// elsewhere: TLS, and paths that lead to runner-api, log-ingest and the org's
// registry. Their paths differ, so nothing is rewritten: a runner's signature
// covers the path. The API for people is behind it only where that was asked for,
// below /api/, which is taken off: nothing of it is signed.
//
// /healthz and /readyz are the front's own: it runs, and it is not about to end.
//
// Where an ingress or nginx is there already, it does the same; the guide to the
// kubernetes stack has its rules.
package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/intake"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute // longer than the pauses of a long poll
	drain         = 10 * time.Second
	maxHeaders    = 64 << 10

	// maxConnections bounds those that are open at once.
	maxConnections = 10_000
)

// Upstreams are where the parts are; without CtlAPI there is no /api/.
type Upstreams struct{ RunnerAPI, LogIngest, Registry, CtlAPI *url.URL }

// terms are how a body may come in: on to its part as it comes, for a blob has
// any size. Who sends it is asked there, before it is read, and the part ends
// what is too large or too slow for its route; this only bounds what hangs on.
var terms = intake.Terms{MaxBytes: math.MaxInt64 - 1, Pace: intake.Pace{Grace: 15 * time.Second, BytesPerSecond: 4 << 10}}

// Config of a front.
type Config struct {
	Listener  net.Listener
	TLS       *tls.Config
	Upstreams Upstreams
	Log       *slog.Logger
}

// Handler routes by path.
func Handler(up Upstreams, log *slog.Logger) http.Handler {
	to := func(target *url.URL) http.Handler {
		return &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // the registry makes its links of it
				r.SetXForwarded()
			},
			FlushInterval: -1, // a waiting client sees each byte at once
			ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
				if err := intake.BodyOf(r.Context()).Err(); errors.Is(err, intake.ErrSlow) {
					http.Error(w, err.Error(), http.StatusRequestTimeout)
					return
				}
				// Runners take this for an outage, and try again.
				http.Error(w, "this part of the control plane is not running", http.StatusBadGateway)
			},
		}
	}
	runner, logs, registry, api := to(up.RunnerAPI), to(up.LogIngest), to(up.Registry), http.NotFoundHandler()
	if up.CtlAPI != nil {
		api = http.StripPrefix("/api", to(up.CtlAPI))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2" || strings.HasPrefix(r.URL.Path, "/v2/"):
			registry.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/streams/"):
			logs.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/api/"):
			api.ServeHTTP(w, r)
		default:
			runner.ServeHTTP(w, r)
		}
	})
}

// withHealth answers for the front itself.
func withHealth(next http.Handler, ending <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			fmt.Fprintln(w, `{"status":"ok"}`)
		case "/readyz":
			select {
			case <-ending:
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprintln(w, `{"status":"shutting down"}`)
			default:
				fmt.Fprintln(w, `{"status":"ready"}`)
			}
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Run serves until ctx ends, then lets requests finish for a while.
func Run(ctx context.Context, cfg Config) error {
	limited := intake.Limit(cfg.Listener, maxConnections)
	server := &http.Server{
		Handler: intake.WithTerms(terms, withHealth(Handler(cfg.Upstreams, cfg.Log), ctx.Done())), TLSConfig: cfg.TLS, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	limited.Watch(server)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err := server.Shutdown(ending)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // held polls: runners open them again
		}
		stopped <- err
	})
	defer stop()
	if err := server.ServeTLS(limited, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-stopped
}
