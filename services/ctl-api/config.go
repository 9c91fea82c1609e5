package main

import (
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/oidclogin"
	"github.com/berth-dev/berth/services/ctl-api/internal/tracelink"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/setting"
)

// Config are the settings of `berth-ctl-api serve`. docs/reference/ctl-api.md
// lists the same ones; a test compares them.
type Config struct {
	// Listen is where the API is served.
	Listen string `env:"BERTH_LISTEN" default:"127.0.0.1:8700"`
	// DSNFile holds the address of the database for the role berth_ctl; only
	// its owner may read it.
	DSNFile string `env:"BERTH_DSN_FILE" shown:"none, required"`
	// MasterKeyFile holds the key from which what is sealed at rest is
	// derived; it is made when it is missing.
	MasterKeyFile string `env:"BERTH_MASTER_KEY_FILE" shown:"none, required"`
	// RunnerAPIURL is where runners find runner-api.
	RunnerAPIURL string `env:"BERTH_RUNNER_API_URL" default:"http://127.0.0.1:8701"`
	// LogURL is where people and runners find log-ingest.
	LogURL string `env:"BERTH_LOG_URL" default:"http://127.0.0.1:8702"`
	// RegistryURL is where people find the org's registry.
	RegistryURL string `env:"BERTH_REGISTRY_URL" default:"http://127.0.0.1:8703"`
	// PublicURL is the one https address at which runners outside of this machine
	// find runner-api, log-ingest and the registry; empty: only local stacks can
	// be made.
	PublicURL string `env:"BERTH_PUBLIC_URL"`
	// DashboardURL is where browsers find the dashboard: https, or http on this machine.
	// Empty: at BERTH_LISTEN, for browsers on this machine only.
	DashboardURL string `env:"BERTH_DASHBOARD_URL"`
	// TraceURL is where people see a trace: an address with {trace_id} in it. Empty: pages
	// and commands show ids alone.
	TraceURL string `env:"BERTH_TRACE_URL"`
	// RunnerImage is the image of the runner that customers' clusters run; empty:
	// each customer says one.
	RunnerImage string `env:"BERTH_RUNNER_IMAGE"`
	// SupervisorSocket is the unix socket of the process that starts runners of
	// local stacks; empty: there is none, and such stacks wait.
	SupervisorSocket string `env:"BERTH_SUPERVISOR_SOCKET"`
	// MinRunnerVersion is the oldest runner that orders are made for; empty lets
	// all pass.
	MinRunnerVersion string `env:"BERTH_MIN_RUNNER_VERSION"`
	// MinCLIVersion is the oldest `berth` whose syncs are taken; empty lets all
	// pass.
	MinCLIVersion string `env:"BERTH_MIN_CLI_VERSION"`
	// EventDays is for how many days events, deliveries of webhooks and the points of
	// numbers that runs wrote are kept.
	EventDays int `env:"BERTH_EVENT_DAYS" default:"30"`
	// SweepSeconds is how often open workflows are looked at for a wake-up that was lost.
	SweepSeconds int `env:"BERTH_SWEEP_SECONDS" default:"60"`
	// WebhookAllow names networks, addresses and hosts that webhooks may reach
	// besides the public internet, separated by commas.
	WebhookAllow string `env:"BERTH_WEBHOOK_ALLOW"`
	// MetricsExportEndpoint is the address to which the numbers of installs are sent, by
	// OTLP over HTTP; empty: they are not sent.
	MetricsExportEndpoint string `env:"BERTH_METRICS_EXPORT_ENDPOINT"`
	// MetricsExportHeadersFile holds headers that are sent along, a NAME: VALUE per line.
	MetricsExportHeadersFile string `env:"BERTH_METRICS_EXPORT_HEADERS_FILE"`
	oidclogin.Config
	// MaxConns bounds the connections to the database.
	MaxConns int `env:"BERTH_DB_MAX_CONNS" default:"30"`
	// What callers can make the service hold.
	httpserver.Limits
	httpserver.Rates
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	var noKey error
	if c.MasterKeyFile == "" {
		noKey = errors.New("BERTH_MASTER_KEY_FILE is not set: name a file that only this service reads")
	}
	var badURL error
	if err := enrolcode.CheckURL(c.PublicURL); c.PublicURL != "" && err != nil {
		badURL = fmt.Errorf("BERTH_PUBLIC_URL %w", err)
	}
	var badDashboard error
	if err := browser.CheckURL(c.DashboardURL); c.DashboardURL != "" && err != nil {
		badDashboard = fmt.Errorf("BERTH_DASHBOARD_URL %w", err)
	}
	var badTrace error
	if err := tracelink.Link(c.TraceURL).Check(); err != nil {
		badTrace = fmt.Errorf("BERTH_TRACE_URL %w", err)
	}
	var badImage error
	if fetch.HasCredentials(c.RunnerImage) {
		badImage = errors.New("BERTH_RUNNER_IMAGE has credentials in it, and is sent to customers: take them out")
	}
	var badVersion error
	if _, err := semver.NewVersion(c.MinCLIVersion); c.MinCLIVersion != "" && err != nil {
		badVersion = fmt.Errorf("BERTH_MIN_CLI_VERSION %q is not a version such as 1.4.0", c.MinCLIVersion)
	}
	_, badAllow := webhooks.NewGuard(c.WebhookAllow)
	if badAllow != nil {
		badAllow = fmt.Errorf("BERTH_WEBHOOK_ALLOW: %w", badAllow)
	}
	var badExport error
	if c.MetricsExportEndpoint != "" {
		badExport = setting.URL("BERTH_METRICS_EXPORT_ENDPOINT", c.MetricsExportEndpoint)
	} else if c.MetricsExportHeadersFile != "" {
		badExport = errors.New("BERTH_METRICS_EXPORT_HEADERS_FILE is set without BERTH_METRICS_EXPORT_ENDPOINT: set both, or none")
	}
	return errors.Join(
		badAllow,
		badExport,
		setting.Within("BERTH_EVENT_DAYS", c.EventDays, 7, 3650),
		setting.Within("BERTH_SWEEP_SECONDS", c.SweepSeconds, 1, 3600),
		setting.Address("BERTH_LISTEN", c.Listen),
		setting.DSNFile("BERTH_DSN_FILE", c.DSNFile),
		noKey,
		setting.URL("BERTH_RUNNER_API_URL", c.RunnerAPIURL),
		setting.URL("BERTH_LOG_URL", c.LogURL),
		setting.URL("BERTH_REGISTRY_URL", c.RegistryURL),
		badURL,
		badDashboard,
		badTrace,
		badImage,
		badVersion,
		setting.Within("BERTH_DB_MAX_CONNS", c.MaxConns, 4, 1000),
		c.Config.Validate(),
		c.Limits.Validate(),
		c.Rates.Validate(),
	)
}
