// Package api serves the routes of openapi/runner-api.yaml. A handler takes the
// runner's row lock, reads, asks one of the deciding packages (enrol, session,
// lease, result, state, run), and writes what was decided, in one transaction.
package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/presence"
	"github.com/berth-dev/berth/services/runner-api/internal/series"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
	"github.com/berth-dev/berth/services/runner-api/internal/waiting"
)

const (
	// registryTokenLifetime is long enough for the largest push; the agent
	// asks for a new one as often as it likes.
	registryTokenLifetime = time.Hour

	// logTokenLifetime is how long lines may wait in a spool for an outage to
	// end, after the attempt's own time.
	logTokenLifetime = 7 * 24 * time.Hour
)

// Config is what the service tells runners.
type Config struct {
	Lease      time.Duration // how long a lease lasts
	Registry   apigen.Registry
	LogURL     string
	MinVersion string // the oldest runner that is worked with; empty for any
}

// API implements apigen.StrictServerInterface.
type API struct {
	Config
	store    *database.Store
	log      *slog.Logger
	gate     *gate.Gate
	presence *presence.Register
	jobs     *waiting.Room // claims
	settings *waiting.Room
	metrics  *Metrics
	series   series.Writer
}

// Deps are what an API works with.
type Deps struct {
	Store    *database.Store
	Log      *slog.Logger
	Gate     *gate.Gate
	Presence *presence.Register
	Jobs     *waiting.Room // woken by model.ChannelJobs
	Settings *waiting.Room // woken by model.ChannelSettings
	Metrics  *Metrics
}

// New returns the API.
func New(d Deps, c Config) *API {
	return &API{
		Config: c, store: d.Store, log: d.Log, gate: d.Gate, presence: d.Presence,
		jobs: d.Jobs, settings: d.Settings, metrics: d.Metrics, series: series.Writer{Log: d.Log},
	}
}

var _ apigen.StrictServerInterface = (*API)(nil)

// write runs fn in a transaction of the session's org in which the session is
// known to be current, and stays so: a newer one waits for the end of it.
func (a *API) write(ctx context.Context, s *session.Session, fn func(ctx context.Context, tx *database.Tx) error) error {
	return a.store.Tx(ctx, s.OrgID, func(ctx context.Context, tx *database.Tx) error {
		runner, err := tx.RunnerLock(ctx, s.RunnerID)
		if err != nil {
			return err
		}
		if err := s.Check(runner.State, runner.Epoch, runner.PublicKey); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

// read is write without the lock, for what changes nothing. An answer may
// cross with the opening of a newer session; it tells nothing that the older
// one was not allowed to know.
func (a *API) read(ctx context.Context, s *session.Session, fn func(ctx context.Context, tx *database.Tx) error) error {
	return a.store.Tx(ctx, s.OrgID, fn)
}

// orgOfSecret finds the org of a single-use secret.
func (a *API) orgOfSecret(ctx context.Context, kind string, hash []byte) (org string, err error) {
	err = a.store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		org, err = tx.RunnerOrgOfSecret(ctx, runnerdb.RunnerOrgOfSecretParams{Kind: kind, Hash: hash})
		return err
	})
	if err == nil && org == "" {
		err = fault.With(fault.Newf(fault.ErrUnauthenticated, "the secret is not known"), fault.Code("secret_unknown"))
	}
	return org, err
}

// installOf is the install of a session; a Build Runner has none.
func installOf(s *session.Session) (string, error) {
	if s.InstallID == "" {
		return "", fault.Newf(fault.ErrNotFound, "a Build Runner has no install")
	}
	return s.InstallID, nil
}

// owner is what a job works for: the first of these that is set.
type owner struct{ workflowID, buildID, installID *string }

// wake tells the service that waits for the job that it has moved, in the same
// transaction.
func (o owner) wake(ctx context.Context, tx *database.Tx) error {
	switch {
	case o.workflowID != nil:
		return tx.WakeWorkflow(ctx, *o.workflowID)
	case o.buildID != nil:
		return tx.WakeBuild(ctx, *o.buildID)
	case o.installID != nil:
		return tx.WakeInstall(ctx, *o.installID)
	}
	return nil
}

// found makes an absent row a nil pointer.
func found[T any](row T, err error) (*T, error) {
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// optional is a pointer to s, or nil when s is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
