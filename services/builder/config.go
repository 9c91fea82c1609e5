package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/setting"
)

// Config are the settings of builder. docs/reference/builder.md lists the same
// ones; a test compares them.
type Config struct {
	// DSNFile is a file (0600) with the address of the database.
	DSNFile string `env:"BERTH_DSN_FILE"`
	// Data is the folder of this machine's Berth; builder's part is DATA/builder.
	Data string `env:"BERTH_DATA"`
	// RegistryListen is the address to serve the registry on.
	RegistryListen string `env:"BERTH_REGISTRY_LISTEN" default:"127.0.0.1:8703"`
	// RegistryDir holds the artifacts; DATA/registry when empty.
	RegistryDir string `env:"BERTH_REGISTRY_DIR" shown:"BERTH_DATA/registry"`
	// RunnerAPIURL is where Build Runners poll for jobs.
	RunnerAPIURL string `env:"BERTH_RUNNER_API_URL" default:"http://127.0.0.1:8701"`
	// Libexec is the folder of berth-runner and berth-engine; empty: that of
	// builder's own executable. It is passed on to the Build Runners.
	Libexec string `env:"BERTH_LIBEXEC" shown:"folder of berth-builder"`
	// SourceMap is a JSON file that sends git repositories elsewhere.
	SourceMap string `env:"BERTH_SOURCE_MAP"`
	// SourceCredentials is a JSON file (0600) with the credentials of private chart
	// repositories and registries.
	SourceCredentials string `env:"BERTH_SOURCE_CREDENTIALS"`
	// AllowFileSources lets app folders name git repositories on this
	// machine's disk (file://). Only where every vendor may read it.
	AllowFileSources bool `env:"BERTH_ALLOW_FILE_SOURCES" default:"false"`
	// EngineUID is the first user id of build engines, one per org from there
	// on. Only used when builder runs as root.
	EngineUID int `env:"BERTH_BUILD_ENGINE_UID" default:"61500"`
	// BuildRunners is how Build Runners run: process (of builder's own pod or
	// machine) or pods.
	BuildRunners string `env:"BERTH_BUILD_RUNNERS" default:"process"`
	// Pods are the settings of Build Runners as pods.
	Pods
	// BuildCacheGB bounds what builds of images leave for each other, for each org, in
	// units of 10⁹ bytes; 0 keeps nothing.
	BuildCacheGB int `env:"BERTH_BUILD_CACHE_GB" default:"20"`
	// BuildCacheAge is when what no build has used is removed.
	BuildCacheAge time.Duration `env:"BERTH_BUILD_CACHE_AGE" default:"336h"`
	// Workers is how many builds are advanced at once; engines are not counted,
	// they are the Build Runners'.
	Workers int `env:"BERTH_BUILD_WORKERS" default:"8"`
	// DatabaseConnections bounds the pool.
	DatabaseConnections int `env:"BERTH_DATABASE_CONNECTIONS" default:"16"`
	// What clients can make the registry hold.
	httpserver.Limits
	// Where it holds it.
	Storage

	// Listener serves the registry in place of RegistryListen when it is set.
	Listener net.Listener `env:"-"`
}

// How Build Runners run.
const (
	runnersProcess = "process"
	runnersPods    = "pods"
)

// spareConnections are those of River, the registry and the fleet.
const spareConnections = 4

// Validate reports every setting that does not work, at once.
func (c Config) Validate() error {
	errs := []error{setting.DSNFile("BERTH_DSN_FILE", c.DSNFile), setting.URL("BERTH_RUNNER_API_URL", c.RunnerAPIURL)}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Data == "" {
		fail("BERTH_DATA is not set")
	}
	if c.Listener == nil {
		errs = append(errs, setting.Address("BERTH_REGISTRY_LISTEN", c.RegistryListen))
	}
	if c.EngineUID < 1 {
		fail("BERTH_BUILD_ENGINE_UID is %d, want at least 1", c.EngineUID)
	}
	switch c.BuildRunners {
	case runnersProcess:
	case runnersPods:
		errs = append(errs, c.Pods.Validate())
	default:
		fail("BERTH_BUILD_RUNNERS is %q, want %s or %s", c.BuildRunners, runnersProcess, runnersPods)
	}
	if c.BuildCacheGB < 0 {
		fail("BERTH_BUILD_CACHE_GB is %d, want at least 0", c.BuildCacheGB)
	}
	if c.BuildCacheGB > 0 && c.BuildCacheAge < time.Hour {
		fail("BERTH_BUILD_CACHE_AGE is %s, want at least 1h", c.BuildCacheAge)
	}
	if c.Workers < 1 {
		fail("BERTH_BUILD_WORKERS is %d, want at least 1", c.Workers)
	}
	if c.DatabaseConnections < c.Workers+spareConnections {
		fail("BERTH_DATABASE_CONNECTIONS is %d, want at least %d (BERTH_BUILD_WORKERS + %d)", c.DatabaseConnections, c.Workers+spareConnections, spareConnections)
	}
	return errors.Join(append(errs, c.Limits.Validate(), c.Storage.Validate())...)
}

func (c Config) registryDir() string {
	if c.RegistryDir != "" {
		return c.RegistryDir
	}
	return filepath.Join(c.Data, "registry")
}

// cacheLimits are those of what builds of images leave for each other.
func (c Config) cacheLimits() registry.CacheLimits {
	return registry.CacheLimits{MaxBytes: int64(c.BuildCacheGB) * 1e9, MaxAge: c.BuildCacheAge}
}

// own is builder's own part of the data folder.
func (c Config) own(parts ...string) string {
	return filepath.Join(append([]string{c.Data, "builder"}, parts...)...)
}

// runner is the executable of Build Runners.
func (c Config) runner() (string, error) {
	dir := c.Libexec
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find berth-runner: %w", err)
		}
		dir = filepath.Dir(self)
	}
	file := filepath.Join(dir, "berth-runner")
	if info, err := os.Stat(file); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("there is no executable %s: set BERTH_LIBEXEC to the folder of berth-runner", file)
	}
	return file, nil
}

// passedOn are the variables that Build Runners get from builder's environment:
// none of them is a secret of the control plane.
var passedOn = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"BERTH_BUILDKIT_ADDR", "BERTH_BUILDKIT_ORG", "BERTH_BUILDKIT_TLS", "BERTH_BUILD_SECRETS", "BERTH_BUILD_NETWORK",
	"BERTH_BUILD_MEMORY", "BERTH_BUILD_PIDS",
	"BERTH_LIBEXEC", "BERTH_TERRAFORM", "BERTH_LOG_FORMAT", "BERTH_LOG_LEVEL",
	"GORACE", // of tests
}

// runnerEnv is the environment of Build Runners that are processes.
func runnerEnv(environ []string) []string {
	var env []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		for _, passed := range passedOn {
			if name == passed {
				env = append(env, pair)
			}
		}
		// The standard switches of telemetry, but not its headers: they may
		// hold credentials.
		if strings.HasPrefix(name, "OTEL_") && !strings.Contains(name, "HEADERS") && !strings.Contains(name, "CLIENT_KEY") {
			env = append(env, pair)
		}
	}
	return env
}
