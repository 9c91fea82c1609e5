package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearanceapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/driftapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/eventapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/healthapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/loginapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/metricsapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/policyapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/ctl-api/internal/timelineapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/tracelink"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/store"
)

// Server implements the routes. Those of events and webhooks, of what looks at many
// things at once, of numbers and of the past are in packages of their own; Register joins them.
type Server struct {
	*eventapi.Handlers
	*fleetapi.Fleet
	*clearanceapi.Clearance
	*timelineapi.Past
	*metricsapi.Numbers
	*policyapi.Policies
	*healthapi.Health
	*alertapi.Alerts
	*driftapi.Drift
	*loginapi.Logins

	Store    *database.Store
	Keys     *keys.Ring
	Auth     *access.Authenticator
	Installs *installs.Service
	Stacks   *stacks.Service
	Webhooks *webhooks.Office
	Bulk     *bulk.Office
	// Listener wakes requests that wait; it listens on the Channels.
	Listener *store.Listener
	// Sites are where browsers may log in, and Provider who else vouches for people; nil for
	// nobody.
	Sites    browser.Sites
	Provider *apigen.LoginProvider
	// GET /me returns Version and LogURL.
	Version string
	LogURL  string
	// RegistryURL is where people pull with the tokens of CreateRegistryToken.
	RegistryURL string
	// MinCLIVersion is the oldest `berth` whose syncs are taken; empty for any.
	MinCLIVersion string
	// Traces is where those of workflows are seen.
	Traces tracelink.Link
	Log    *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// read runs fn in a transaction of the caller's org.
func (s *Server) read(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error {
	return s.Store.Tx(ctx, auth.PrincipalOf(ctx).OrgID, fn)
}

// All routes of the contract are implemented; one that is not does not compile.
var _ apigen.StrictServerInterface = (*Server)(nil)

// errRollback ends a transaction that was only tried, such as a dry run.
var errRollback = errors.New("roll back")

// write runs fn in a transaction of the caller's org and, as part of it,
// records in the org's chain what fn says was done, and that the request's
// Idempotency-Key was carried out. Nothing is recorded when fn says "" or fails.
func (s *Server) write(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error {
	caller := auth.PrincipalOf(ctx)
	err := s.Store.Tx(ctx, caller.OrgID, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.SetActor(ctx, caller.AccountName); err != nil {
			return err
		}
		what, err := fn(ctx, tx)
		if err != nil || what == "" {
			return err
		}
		if err := markCarriedOut(ctx, tx); err != nil {
			return err
		}
		return s.Keys.Audit(ctx, tx, caller.AccountName, what)
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	return err
}
