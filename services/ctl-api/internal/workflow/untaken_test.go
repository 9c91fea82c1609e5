package workflow_test

import (
	"context"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Toggles are pending until a workflow takes them: one that names a component takes no
// other, and one that failed takes none.
func TestTogglesThatAreTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		app.Component("card").Toggleable, app.Component("key").Toggleable = true, true
		app.Component("card").MaxAutoRetries, app.Actions = 0, nil
	})
	r.provisionWithoutChecks()
	pending := func() (is bool) {
		r.tx(func(ctx context.Context, tx *database.Tx) error {
			install, err := tx.LockInstallRow(ctx, r.install)
			if err != nil {
				return err
			}
			got, err := (&installs.Service{Keys: r.engine.Keys}).Untaken(ctx, tx, []ctldb.Install{install})
			is = got[r.install].Toggles
			return err
		})
		return is
	}
	expect := func(when string, want bool) {
		t.Helper()
		if got := pending(); got != want {
			t.Errorf("%s, toggles are pending: %t, want %t", when, got, want)
		}
	}
	expect("at first", false)
	r.exec(`update installs set toggles = '{"card": false}', toggles_version = 1`)
	expect("switched off", true)
	w := r.start(workflow.Request{Kind: flow.KindToggle, Components: []string{"card"}, ApproveAll: true, Confirm: "acme"})
	expect("while it is removed", false)
	r.planned(w, "component/card", "gone")
	r.applied(w, "component/card", jobspec.OutcomeFailed, nil)
	expect("after the removal failed", true)
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.RetryAll(ctx, tx, w, "ada") })
	r.advance(w)
	r.planned(w, "component/card", "gone")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	expect("once it is gone", false)
	r.exec(`update installs set toggles = '{"card": true, "key": true}', toggles_version = 2`)
	expect("switched on", true)
	w = r.start(workflow.Request{Kind: flow.KindToggle, Components: []string{"key"}, ApproveAll: true})
	expect("when a workflow takes another toggle", true)
	r.planned(w, "component/key", "")
	expect("after that", true)
}
