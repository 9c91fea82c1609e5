package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Config is all that can be set. Only main reads the environment, through
// configFromEnv; docs/reference/logs.md lists the same settings.
type Config struct {
	// Listen is where the API is served. BERTH_LISTEN, default 127.0.0.1:8702.
	Listen string
	// DSNFile holds the address of the database for the role berth_log; only
	// its owner may read it. BERTH_DSN_FILE, required.
	DSNFile string
	// MaxConns bounds the connections to the database. BERTH_DB_MAX_CONNS,
	// default 20.
	MaxConns int
	// KeepDays is how many whole days a log line stays readable, in days.
	// BERTH_LOG_KEEP_DAYS, default 30.
	KeepDays int

	// unreadable are values that could not be understood.
	unreadable []error
}

func configFromEnv(getenv func(string) string) Config {
	c := Config{Listen: getenv("BERTH_LISTEN"), DSNFile: getenv("BERTH_DSN_FILE")}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8702"
	}
	number := func(name string, byDefault int) int {
		text := getenv(name)
		if text == "" {
			return byDefault
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			c.unreadable = append(c.unreadable, fmt.Errorf("%s is %q, which is not a whole number", name, text))
			return byDefault
		}
		return n
	}
	c.MaxConns = number("BERTH_DB_MAX_CONNS", 20)
	c.KeepDays = number("BERTH_LOG_KEEP_DAYS", 30)
	return c
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	errs := append([]error(nil), c.unreadable...)
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		errs = append(errs, fmt.Errorf("BERTH_LISTEN is %q, want HOST:PORT", c.Listen))
	}
	if c.DSNFile == "" {
		errs = append(errs, errors.New("BERTH_DSN_FILE is not set: name the file that `berth-ctl-api migrate` wrote for log-ingest"))
	}
	if c.MaxConns < 2 || c.MaxConns > 1000 {
		errs = append(errs, fmt.Errorf("BERTH_DB_MAX_CONNS is %d, want 2 to 1000", c.MaxConns))
	}
	if c.KeepDays < 1 || c.KeepDays > 3650 {
		errs = append(errs, fmt.Errorf("BERTH_LOG_KEEP_DAYS is %d, want 1 to 3650", c.KeepDays))
	}
	return errors.Join(errs...)
}

// dsn reads the address of the database; it is never shown.
func (c Config) dsn() (string, error) {
	raw, err := os.ReadFile(c.DSNFile)
	if err != nil {
		return "", fmt.Errorf("read BERTH_DSN_FILE: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
