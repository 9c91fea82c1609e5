package main

import (
	"errors"

	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/setting"
)

// Config are the settings of log-ingest. docs/reference/logs.md lists the same
// ones; a test compares them.
type Config struct {
	// Listen is where the API is served.
	Listen string `env:"BERTH_LISTEN" default:"127.0.0.1:8702"`
	// DSNFile holds the address of the database for the role berth_log; only
	// its owner may read it.
	DSNFile string `env:"BERTH_DSN_FILE" shown:"none, required"`
	// MaxConns bounds the connections to the database.
	MaxConns int `env:"BERTH_DB_MAX_CONNS" default:"20"`
	// KeepDays is how many whole days a log line stays readable.
	KeepDays int `env:"BERTH_LOG_KEEP_DAYS" default:"30"`
	// What callers can make the service hold.
	httpserver.Limits
	httpserver.Rates
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	return errors.Join(
		setting.Address("BERTH_LISTEN", c.Listen),
		setting.DSNFile("BERTH_DSN_FILE", c.DSNFile),
		setting.Within("BERTH_DB_MAX_CONNS", c.MaxConns, 2, 1000),
		setting.Within("BERTH_LOG_KEEP_DAYS", c.KeepDays, 1, 3650),
		c.Limits.Validate(),
		c.Rates.Validate(),
	)
}
