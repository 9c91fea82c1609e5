package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
)

// Config are the settings of runner-api. docs/reference/runner-protocol.md
// lists the same ones; a test compares them.
type Config struct {
	// DSNFile is a file (0600) with the address of the database.
	DSNFile string `env:"BERTH_DSN_FILE"`
	// Listen is the address to serve on.
	Listen string `env:"BERTH_LISTEN" default:"127.0.0.1:8701"`
	// RegistryURL is where runners find the org's registry.
	RegistryURL string `env:"BERTH_REGISTRY_URL" default:"http://127.0.0.1:8703"`
	// LogURL is where runners find log-ingest.
	LogURL string `env:"BERTH_LOG_URL" default:"http://127.0.0.1:8702"`
	// Lease is how long a lease lasts; it is renewed three times as often.
	Lease time.Duration `env:"BERTH_LEASE_TTL" default:"60s"`
	// MinRunnerVersion is the oldest runner that may open a session.
	MinRunnerVersion string `env:"BERTH_MIN_RUNNER_VERSION"`
	// DatabaseConnections bounds the pool.
	DatabaseConnections int `env:"BERTH_DATABASE_CONNECTIONS" default:"16"`
	// CachedSessions is how many live sessions are kept in memory; about 400
	// bytes each.
	CachedSessions int `env:"BERTH_CACHED_SESSIONS" default:"50000"`
	// What callers can make the service hold.
	httpserver.Limits
	httpserver.Rates

	// Listener serves instead of Listen when it is set.
	Listener net.Listener `env:"-"`
}

// FromEnv reads the settings. It reports every value that cannot be read.
func FromEnv(getenv func(string) string) (Config, error) {
	var cfg Config
	err := setting.Read(&cfg, getenv)
	return cfg, err
}

// Validate reports every setting that does not work, at once.
func (c Config) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.DSNFile == "" {
		fail("BERTH_DSN_FILE is not set")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil && c.Listener == nil {
		fail("BERTH_LISTEN %q is not host:port", c.Listen)
	}
	for name, text := range map[string]string{"BERTH_REGISTRY_URL": c.RegistryURL, "BERTH_LOG_URL": c.LogURL} {
		errs = append(errs, setting.URL(name, text))
	}
	if c.Lease < time.Second || c.Lease > time.Hour {
		fail("BERTH_LEASE_TTL is %s, want 1s to 1h", c.Lease)
	}
	if c.MinRunnerVersion != "" {
		if _, err := semver.NewVersion(c.MinRunnerVersion); err != nil {
			fail("BERTH_MIN_RUNNER_VERSION %q is not a version", c.MinRunnerVersion)
		}
	}
	if c.DatabaseConnections < 4 {
		fail("BERTH_DATABASE_CONNECTIONS is %d, want at least 4", c.DatabaseConnections)
	}
	if c.CachedSessions < 1 {
		fail("BERTH_CACHED_SESSIONS is %d, want at least 1", c.CachedSessions)
	}
	return errors.Join(append(errs, c.Limits.Validate(), c.Rates.Validate())...)
}

// registry is what runners learn about it.
func (c Config) registry() apigen.Registry {
	u, err := url.Parse(c.RegistryURL)
	if err != nil {
		return apigen.Registry{} // Validate has refused it
	}
	return apigen.Registry{Host: u.Host, PlainHTTP: u.Scheme == "http"}
}

// dsn reads the address of the database. The error never shows it.
func (c Config) dsn() (string, error) {
	text, err := os.ReadFile(c.DSNFile)
	if err != nil {
		return "", fmt.Errorf("read BERTH_DSN_FILE: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
