package up

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// DefaultPort is the first of the four ports; BERTH_PORT sets another.
	DefaultPort = 8700

	serviceGrace = 20 * time.Second // held calls and running jobs of River end
	probeTimeout = 2 * time.Second

	// ctlAPIPart is started after the schema was brought up to date.
	ctlAPIPart = "ctl-api"

	// envOwner marks every process of a data folder.
	envOwner = "BERTH_UP"
)

// Ports are where the services listen, on loopback only.
type Ports struct{ Ctl, Runner, Log, Registry int }

// PortsFrom are four ports in a row.
func PortsFrom(base int) Ports { return Ports{base, base + 1, base + 2, base + 3} }

// ParsePort reads BERTH_PORT; "" is DefaultPort.
func ParsePort(text string) (int, error) {
	if text == "" {
		return DefaultPort, nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65532 {
		return 0, problem(err, "set it to the first of four free ports, such as 8700", "BERTH_PORT=%q is not a port", text)
	}
	return port, nil
}

func onLoopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// URL is where a service answers.
func URL(port int) string { return "http://" + onLoopback(port) }

// surroundings is what the parts are started with.
type surroundings struct {
	layout    Layout
	ports     Ports
	libexec   string
	runners   string // folder of berth-runner and berth-engine, which other users can run
	terraform string // "" when there is none
	environ   []string
}

// copies are the executables for other users that are not where they came from.
func (s surroundings) copies() map[string]string {
	if s.runners == s.libexec {
		return nil
	}
	copies := map[string]string{}
	for _, name := range []string{exeRunner, exeEngine, exePolicy} {
		copies[filepath.Join(s.runners, name)] = filepath.Join(s.libexec, name)
	}
	return copies
}

// services are the four, in the order in which they start.
func (s surroundings) services() []Part {
	rows := []struct {
		name, exe string
		args      []string
		dsn       string // file in Layout.DSNs, see the service's role
		port      int
	}{
		{name: ctlAPIPart, exe: exeCtlAPI, args: []string{"serve"}, dsn: "ctl.dsn", port: s.ports.Ctl},
		{name: "runner-api", exe: exeRunnerAPI, dsn: "runner.dsn", port: s.ports.Runner},
		{name: "log-ingest", exe: exeLogIngest, dsn: "log.dsn", port: s.ports.Log},
		{name: "builder", exe: exeBuilder, dsn: "builder.dsn", port: s.ports.Registry},
	}
	parts := make([]Part, len(rows))
	for i, row := range rows {
		parts[i] = Part{
			Name:   row.name,
			Path:   filepath.Join(s.libexec, row.exe),
			Args:   row.args,
			Env:    s.serviceEnv(filepath.Join(s.layout.dsns(), row.dsn), row.port, i),
			Dir:    s.layout.Dir,
			Log:    s.layout.LogFile(row.name),
			Polite: syscall.SIGTERM,
			Grace:  serviceGrace,
			Ready:  readyAt(row.port),
			Order:  1 + i,
		}
		if row.exe == exeBuilder { // it starts runners
			parts[i].Copies = s.copies()
			parts[i].Starts = []string{filepath.Join(s.runners, exeRunner)}
		}
	}
	return parts
}

func (s surroundings) serviceEnv(dsnFile string, port, number int) []string {
	own := s.metricsPort(number)
	maps.Copy(own, map[string]string{
		"BERTH_DSN_FILE":          dsnFile,
		"BERTH_LISTEN":            onLoopback(port),
		"BERTH_REGISTRY_LISTEN":   onLoopback(s.ports.Registry),
		"BERTH_MASTER_KEY_FILE":   s.layout.masterKey(),
		"BERTH_RUNNER_API_URL":    URL(s.ports.Runner),
		"BERTH_LOG_URL":           URL(s.ports.Log),
		"BERTH_REGISTRY_URL":      URL(s.ports.Registry),
		"BERTH_REGISTRY_DIR":      s.layout.registry(),
		"BERTH_SUPERVISOR_SOCKET": s.layout.Socket(),
		"BERTH_LIBEXEC":           s.runners, // what builder starts
	})
	return s.env(own)
}

// firstMetricsPort is where OpenTelemetry lets Prometheus scrape by default.
const firstMetricsPort = 9464

// metricsPort gives each service a port of its own, in a row from
// OTEL_EXPORTER_PROMETHEUS_PORT, when metrics are scraped.
func (s surroundings) metricsPort(number int) map[string]string {
	const name = "OTEL_EXPORTER_PROMETHEUS_PORT"
	scraped, first := false, firstMetricsPort
	for _, entry := range s.environ {
		switch key, value, _ := strings.Cut(entry, "="); key {
		case "OTEL_METRICS_EXPORTER":
			scraped = strings.TrimSpace(value) == "prometheus"
		case name:
			if port, err := strconv.Atoi(value); err == nil {
				first = port
			}
		}
	}
	if !scraped {
		return map[string]string{}
	}
	return map[string]string{name: strconv.Itoa(first + number)}
}

// env is the environment of a part: what is said here, and what of ours is
// about the machine or a setting of a part. Not what holds secrets, and nothing
// that differs from shell to shell: it would make every part look changed.
func (s surroundings) env(own map[string]string) []string {
	own["BERTH_DATA"] = s.layout.Shared
	own[envOwner] = s.layout.Dir
	own["BERTH_ENGINE"] = filepath.Join(s.runners, exeEngine)
	if s.terraform != "" {
		own["BERTH_TERRAFORM"] = s.terraform
	}
	var env []string
	for _, entry := range s.environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, ours := own[name]; !ours && passedOn(name) {
			env = append(env, entry)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

func passedOn(name string) bool {
	switch name {
	case "BERTH_TERRAFORM": // ours, or one that is none
		return false
	case "BERTH_TOKEN", "BERTH_URL", "BERTH_CONTEXT", "BERTH_ORG", "BERTH_PORT", "BERTH_PG_BIN", envDetached,
		"BERTH_KUBECONFIG", "BERTH_REGISTRY_ADDRESS":
		return false // about this command, secret, or of one runner only
	case "PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "no_proxy", "all_proxy", "GOMEMLIMIT", "GOGC", "GORACE", "GOTRACEBACK", "GOCOVERDIR",
		"TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE":
		return true
	}
	for _, prefix := range []string{"BERTH_", "OTEL_", "SSL_CERT_", "LC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// readyAt asks a service whether it can serve.
func readyAt(port int) func(context.Context) error { return answersAt(URL(port), "/readyz") }

// answersAt asks for a path, which must be there.
func answersAt(base, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
		if err != nil {
			return err
		}
		resp, err := probes.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", path, resp.Status)
		}
		return nil
	}
}

// probes goes to loopback only, so never through a proxy.
var probes = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// portsFree makes sure that nobody else has the ports of the parts that are to
// be started.
func portsFree(ctx context.Context, parts []Part, ports Ports, taken func(Part) bool) error {
	all := []int{ports.Ctl, ports.Runner, ports.Log, ports.Registry}
	for i, part := range parts {
		if taken(part) {
			continue // by the process that is going to be adopted
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", onLoopback(all[i]))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return problem(err, "stop it, or set BERTH_PORT to the first of four free ports", "port %d, for %s, is taken by another program", all[i], part.Name)
		case err != nil:
			return problem(err, "set BERTH_PORT to the first of four free ports", "port %d, for %s: %v", all[i], part.Name, err)
		}
		_ = listener.Close()
	}
	return nil
}

// fileExists is for files whose contents do not matter.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
