package tend_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/settings"
	"github.com/berth-dev/berth/services/ctl-api/internal/tend"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// noLater drops wake-ups for later: the test calls Advance itself.
type noLater struct{}

func (noLater) WakeWorkflowAt(context.Context, *database.Tx, string, time.Time) error { return nil }
func (noLater) WakeInstallAt(context.Context, *database.Tx, string, time.Time) error  { return nil }

// rig is an org with an install, its runner and a Build Runner.
type rig struct {
	t                                 *testing.T
	pg                                *pgtest.DB
	tender                            *tend.Tender
	org, install, runner, buildRunner string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pg := pgtest.New(t)
	master, err := seal.LoadOrCreateMasterKey(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	ring, ctl := keys.New(master), database.New(pg.AsRole(store.RoleCtl))
	made, err := access.CreateOrg(t.Context(), ctl, ring, access.OrgSpec{Name: "vendor", Admin: "admin", Roles: []auth.Role{auth.RoleAdmin}, Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, pg: pg, org: made.Org.OrgID, install: id.New(id.Install), runner: id.New(id.Runner), buildRunner: id.New(id.Runner),
		tender: &tend.Tender{Store: ctl, Waker: noLater{}, Publisher: &settings.Publisher{Keys: ring}, Log: slog.New(slog.DiscardHandler)},
	}
	app, customer := id.New(id.App), id.New(id.Customer)
	r.exec(`insert into apps (id, org_id, name) values ($1, $2, 'hello')`, app, r.org)
	r.exec(`insert into customers (id, org_id, name) values ($1, $2, 'acme')`, customer, r.org)
	r.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by) values ($1, $2, $3, $4, 'acme', 'local', 'test')`,
		r.install, r.org, customer, app)
	r.exec(`insert into runners (id, org_id, install_id, kind, name) values ($1, $2, $3, 'install', 'acme')`, r.runner, r.org, r.install)
	r.exec(`insert into runners (id, org_id, kind, name) values ($1, $2, 'build', 'builds')`, r.buildRunner, r.org)
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pg.Admin().Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// raise writes an alarm with the rights of runner-api.
func (r *rig) raise(runner, kind, subject string) {
	r.t.Helper()
	err := r.pg.AsRole(store.RoleRunner).Tx(r.t.Context(), r.org, func(ctx context.Context, tx *store.Tx) error {
		_, err := runnerdb.New(tx.DB()).RaiseAlarm(ctx, runnerdb.RaiseAlarmParams{ID: id.New("alm"), RunnerID: runner, Kind: kind, Subject: subject, Detail: json.RawMessage(`{"n":1}`)})
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) advance(objectID string) {
	r.t.Helper()
	if err := r.tender.Advance(r.t.Context(), objectID); err != nil {
		r.t.Error(err)
	}
}

// recorded are the alarms in the org's chain as "actor alarm kind about
// subject"; the chain must hold.
func (r *rig) recorded() []string {
	r.t.Helper()
	var key string
	if err := r.pg.Admin().QueryRow(r.t.Context(), `select public_key from keys where org_id = $1 and purpose = 'dispatch'`, r.org).Scan(&key); err != nil {
		r.t.Fatal(err)
	}
	public, err := capsule.ParsePublicKey(key)
	if err != nil {
		r.t.Fatal(err)
	}
	var rows []ctldb.ListChainRecordsRow
	err = r.tender.Store.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) (err error) {
		rows, err = tx.ListChainRecords(ctx, ctldb.ListChainRecordsParams{Chain: r.org, Most: 1000})
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var lines bytes.Buffer
	found := []string{}
	for _, row := range rows {
		lines.Write(append(row.Body, '\n'))
		record, err := chain.ParseRecord(row.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		if what, _, ok := strings.Cut(record.What, " at "); ok && strings.HasPrefix(what, "alarm ") {
			found = append(found, record.Actor+" "+what)
		}
	}
	report, err := chain.Verify(&lines, chain.VerifyOptions{Chain: r.org, Keys: map[string]ed25519.PublicKey{capsule.KeyID(public): public}})
	if err != nil || !report.OK() {
		r.t.Errorf("the org's chain does not hold: %v %+v", err, report)
	}
	return found
}

func TestAlarmsEndInTheOrgsChain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.raise(r.runner, "late_result", "job_1/1 sha256:a")
	r.raise(r.buildRunner, "enrolment", "enr_1")
	r.raise(r.runner, "chain_fork", "record 3 sha256:b")
	r.raise(r.runner, "chain_fork", "record 3 sha256:b") // the same again is the same alarm

	ofInstall := []string{r.runner + " alarm late_result about job_1/1 sha256:a", r.runner + " alarm chain_fork about record 3 sha256:b"}
	for range 2 { // a wake-up may come twice
		r.advance(r.install)
		if diff := cmp.Diff(ofInstall, r.recorded()); diff != "" {
			t.Fatalf("after the install's wake-up (-want +got):\n%s", diff)
		}
	}
	all := append(slices.Clone(ofInstall), r.buildRunner+" alarm enrolment about enr_1")
	for range 2 {
		r.advance(r.org)
		if diff := cmp.Diff(all, r.recorded()); diff != "" {
			t.Fatalf("after the org's wake-up (-want +got):\n%s", diff)
		}
	}
}

// More alarms than one transaction records, and wake-ups at the same time.
func TestEachAlarmIsRecordedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := []string{}
	for i := range 120 {
		subject := fmt.Sprintf("job_%03d/1 sha256:a", i)
		r.raise(r.runner, "late_result", subject)
		want = append(want, r.runner+" alarm late_result about "+subject)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { r.advance(r.install) })
	}
	wg.Wait()
	if diff := cmp.Diff(want, r.recorded()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What services may not do to the evidence of others.
func TestAlarmsCannotBeTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.raise(r.runner, "enrolment", "enr_1")
	for role, statements := range map[store.Role][]string{
		store.RoleRunner: {`select * from alarms`, `update alarms set recorded_at = now()`, `delete from alarms`},
		store.RoleCtl:    {`update alarms set subject = ''`, `delete from alarms`},
	} {
		for _, sql := range statements {
			err := r.pg.AsRole(role).Tx(t.Context(), r.org, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Raw().Exec(ctx, sql)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %s: got %v, want permission denied", role, sql, err)
			}
		}
	}
}
