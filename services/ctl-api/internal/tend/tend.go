// Package tend looks after installs outside their workflows: it lets workflows
// go on that wait for the stack or the runner, judges health, opens and closes
// alerts, keeps the runner's signed settings fresh, and records in the org's chain what
// runner-api raised an alarm about and how far the install's chain has come. It
// is worked by the River jobs install_advance and install_due and, like
// workflow.Engine, trusts rows only.
package tend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertwatch"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/drift"
	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/ctl-api/internal/recipient"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/settings"
	"github.com/berth-dev/berth/services/ctl-api/internal/statetree"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Waker has an install looked at again at a later time.
type Waker interface {
	WakeInstallAt(ctx context.Context, tx *database.Tx, installID string, at time.Time) error
}

// Tender looks after installs. Any number may run side by side.
type Tender struct {
	Store     *database.Store
	Waker     Waker
	Publisher *settings.Publisher
	Log       *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Advance does all that is due for an install or, given the id of an org, for
// what is the org's own: the alarms of its Build Runner. One that does not
// exist is no error.
func (t *Tender) Advance(ctx context.Context, objectID string) error {
	now := time.Now().UTC()
	if t.Now != nil {
		now = t.Now().UTC()
	}
	var org string
	err := t.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		org, err = tx.OrgOfObject(ctx, objectID)
		return err
	})
	if err != nil || org == "" {
		return err
	}
	if objectID == org {
		if err := t.recordAlarms(ctx, org, nil); err != nil {
			return fmt.Errorf("tend org %s: %w", org, err)
		}
		return nil
	}
	// Evidence first: what follows may fail for reasons of its own.
	if err := t.recordAlarms(ctx, org, &objectID); err != nil {
		return fmt.Errorf("tend install %s: %w", objectID, err)
	}
	if err := t.anchorHead(ctx, org, objectID, now); err != nil {
		return fmt.Errorf("tend install %s: %w", objectID, err)
	}
	err = t.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error { return t.look(ctx, tx, objectID, now) })
	if err == nil {
		err = t.recordAlarms(ctx, org, &objectID) // those of this look
	}
	if err == nil {
		err = t.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error { return t.alert(ctx, tx, objectID, now) })
	}
	if err != nil {
		return fmt.Errorf("tend install %s: %w", objectID, err)
	}
	return nil
}

// look does it in one transaction, under the install's row.
func (t *Tender) look(ctx context.Context, tx *database.Tx, installID string, now time.Time) error {
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil {
		return err
	}
	// All open ones, not only those whose row waits for stack or runner: one that
	// is about to wait has not committed that yet, and looks again because of this.
	open, err := tx.OpenWorkflowsOfInstall(ctx, installID)
	if err != nil {
		return err
	}
	for _, id := range open {
		if err := tx.WakeWorkflow(ctx, id); err != nil {
			return err
		}
	}
	runner, err := tx.InstallRunner(ctx, installID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if runner.SealRecipient == nil || install.State == model.InstallForgotten {
		return nil // nobody to publish for
	}
	// What it left for the org's chain is committed with this look.
	to, err := recipient.Of(ctx, tx, runner)
	if err != nil {
		return err
	}
	if to == nil {
		return nil // a machine that took the place of another without a handover
	}
	// While a gate is open the runner looks at what is being deployed, by its checks.
	if install, _, err = health.Awaited(ctx, tx, install); err != nil {
		return err
	}
	var app *appconfig.App
	var state ctldb.StateVersion
	if install.ReleaseID != nil {
		if app, err = releaseview.InForce(ctx, tx.Queries, install.ID, *install.ReleaseID); err != nil {
			return err
		}
		state, err = statetree.Ensure(ctx, tx, t.Publisher.Keys, statetree.Wanted{
			Install: install, InputsVersion: install.InputsVersion, ReleaseID: *install.ReleaseID, Cause: "settings",
		})
		if err != nil {
			return err
		}
	}
	var probes []jobspec.Probe
	var surveys []releaseview.Survey
	if install.State == model.InstallLive {
		if probes, err = releaseview.Probes(ctx, tx.Queries, install, app); err != nil {
			return err
		}
		if surveys, err = releaseview.Surveys(ctx, tx.Queries, install, app, state.Tree); err != nil {
			return err
		}
	}
	if err := drift.Judge(ctx, tx, drift.Judged{Install: install, Surveys: surveys, Now: now}); err != nil {
		return err
	}
	silentAt, err := health.Judge(ctx, tx, health.Judged{Install: install, App: orEmpty(app), Probes: probes, Now: now})
	if err != nil {
		return err
	}
	revoked, err := releaseview.Revoked(ctx, tx.Queries, install.AppID)
	if err != nil {
		return err
	}
	facts := settings.Facts{Install: install, Runner: runner, App: app, State: state, Probes: probes, Surveys: looks(surveys), Revoked: revoked}
	renewAt, err := t.Publisher.Publish(ctx, tx, facts, now)
	if err != nil {
		return err
	}
	at := earlier(silentAt, renewAt)
	if at.IsZero() {
		return nil
	}
	return t.Waker.WakeInstallAt(ctx, tx, installID, at)
}

// alert writes the alerts of an install, by the verdicts of the look before.
func (t *Tender) alert(ctx context.Context, tx *database.Tx, installID string, now time.Time) error {
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil {
		return err
	}
	at, err := alertwatch.Look(ctx, tx, install, now)
	if err != nil || at.IsZero() {
		return err
	}
	return t.Waker.WakeInstallAt(ctx, tx, installID, at)
}

// looks are those that the runner carries out.
func looks(surveys []releaseview.Survey) (list []jobspec.Scheduled) {
	for _, s := range surveys {
		if s.Look != nil {
			list = append(list, *s.Look)
		}
	}
	return list
}

// earlier is the earlier of two times that is set; zero when none is.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

func orEmpty(app *appconfig.App) *appconfig.App {
	if app == nil {
		return &appconfig.App{}
	}
	return app
}
