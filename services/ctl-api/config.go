package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Config are the settings of `berth-ctl-api serve`. Only main reads the
// environment, through configFromEnv.
type Config struct {
	// Listen is where the API is served. BERTH_LISTEN, default 127.0.0.1:8700.
	Listen string
	// DSNFile holds the address of the database for the role berth_ctl; only
	// its owner may read it. BERTH_DSN_FILE, required.
	DSNFile string
	// MasterKeyFile holds the key from which what is sealed at rest is
	// derived; it is made when it is missing. BERTH_MASTER_KEY_FILE, required.
	MasterKeyFile string
	// RunnerAPIURL is where runners find runner-api. BERTH_RUNNER_API_URL,
	// default http://127.0.0.1:8701.
	RunnerAPIURL string
	// LogURL is where people and runners find log-ingest. BERTH_LOG_URL,
	// default http://127.0.0.1:8702.
	LogURL string
	// SupervisorSocket is the unix socket of whoever starts runners of local
	// stacks. BERTH_SUPERVISOR_SOCKET; empty: there is none, and such stacks
	// wait.
	SupervisorSocket string
	// MinRunnerVersion is the oldest runner that orders are made for.
	// BERTH_MIN_RUNNER_VERSION; empty lets all pass.
	MinRunnerVersion string
	// MaxConns bounds the connections to the database. BERTH_DB_MAX_CONNS,
	// default 30.
	MaxConns int

	// unreadable are values that could not be understood.
	unreadable []error
}

func configFromEnv(getenv func(string) string) Config {
	text := func(name, byDefault string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return byDefault
	}
	c := Config{
		Listen:           text("BERTH_LISTEN", "127.0.0.1:8700"),
		DSNFile:          getenv("BERTH_DSN_FILE"),
		MasterKeyFile:    getenv("BERTH_MASTER_KEY_FILE"),
		RunnerAPIURL:     text("BERTH_RUNNER_API_URL", "http://127.0.0.1:8701"),
		LogURL:           text("BERTH_LOG_URL", "http://127.0.0.1:8702"),
		SupervisorSocket: getenv("BERTH_SUPERVISOR_SOCKET"),
		MinRunnerVersion: getenv("BERTH_MIN_RUNNER_VERSION"),
	}
	conns := text("BERTH_DB_MAX_CONNS", "30")
	n, err := strconv.Atoi(conns)
	if err != nil {
		c.unreadable = append(c.unreadable, fmt.Errorf("BERTH_DB_MAX_CONNS is %q, which is not a whole number", conns))
		n = 30
	}
	c.MaxConns = n
	return c
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	errs := append([]error(nil), c.unreadable...)
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		errs = append(errs, fmt.Errorf("BERTH_LISTEN is %q, want HOST:PORT", c.Listen))
	}
	if c.DSNFile == "" {
		errs = append(errs, errors.New("BERTH_DSN_FILE is not set: name the file that `berth-ctl-api migrate` wrote for ctl-api"))
	}
	if c.MasterKeyFile == "" {
		errs = append(errs, errors.New("BERTH_MASTER_KEY_FILE is not set: name a file that only this service reads"))
	}
	for name, text := range map[string]string{"BERTH_RUNNER_API_URL": c.RunnerAPIURL, "BERTH_LOG_URL": c.LogURL} {
		if u, err := url.Parse(text); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			errs = append(errs, fmt.Errorf("%s is not an http or https address", name))
		}
	}
	if c.MaxConns < 4 || c.MaxConns > 1000 {
		errs = append(errs, fmt.Errorf("BERTH_DB_MAX_CONNS is %d, want 4 to 1000", c.MaxConns))
	}
	return errors.Join(errs...)
}

// readDSN reads the address of a database; it is never shown.
func readDSN(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read DSN file: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
