package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// An alarm is shown until somebody acknowledges it, on record; what happens again
// after that is another alarm.
func TestAlarmIsShownUntilAcknowledged(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("vendor") // with an open alarm, chain_behind
	ctx := t.Context()
	other := d.org("other")
	viewer := o.member(ctlapi.MemberRequest{Name: "viewer", Kind: ctlapi.MemberRequestKindService, Role: ctlapi.MemberRequestRoleViewer})

	// As runner-api raises it: with that service's rights.
	raised := 0
	raise := func(kind string) (fresh int64) {
		raised++
		err := d.db.AsRole(store.RoleRunner).Tx(ctx, o.Org, func(ctx context.Context, tx *store.Tx) (err error) {
			fresh, err = runnerdb.New(tx.DB()).RaiseAlarm(ctx, runnerdb.RaiseAlarmParams{
				ID: fmt.Sprintf("alm_%d", raised), RunnerID: o.Runner, Kind: kind, Subject: "subject of vendor", Detail: []byte(`{"stored_seq":37}`),
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	list := func(c caller, settled bool) string {
		resp, err := c.ListAlarmsWithResponse(ctx, &ctlapi.ListAlarmsParams{Acknowledged: &settled})
		must(t, resp, err, http.StatusOK)
		var ids []string
		for _, a := range resp.JSON200.Items {
			if a.Cause == "" || a.Remedy == "" || a.Install == nil {
				t.Errorf("alarm = %+v", a)
			}
			ids = append(ids, a.ID)
		}
		return strings.Join(ids, " ")
	}
	open := func(want int) {
		t.Helper()
		resp, err := o.GetInstallWithResponse(ctx, o.Install)
		must(t, resp, err, http.StatusOK)
		if got := resp.JSON200.OpenAlarms; got != want {
			t.Errorf("the install has %d open alarms, want %d", got, want)
		}
	}
	if raise("chain_behind") != 0 || raise("recipient_trusted") != 1 {
		t.Error("the same alarm is raised twice, or another is not")
	}
	if got := list(o.caller, false); got != "alm_of_vendor" {
		t.Errorf("open alarms: %s", got)
	}
	if got := list(viewer, false); got != "alm_of_vendor" {
		t.Errorf("a viewer sees %q", got)
	}
	if got := list(other, true); got != "" {
		t.Errorf("another org sees %q", got)
	}
	open(1)
	why, err := o.WhyInstallWithResponse(ctx, o.Install)
	must(t, why, err, http.StatusOK)
	found := false
	for _, item := range why.JSON200.Items {
		found = found || item.What == "alarm chain_behind" && *item.Unblock == "berth alarms acknowledge alm_of_vendor --reason TEXT" && strings.Contains(item.Reason, "chain restore")
	}
	if !found {
		t.Errorf("why says nothing of it: %+v", why.JSON200.Items)
	}

	settle := func(c caller, id, reason string, want int) *ctlapi.Alarm {
		t.Helper()
		resp, err := c.AcknowledgeAlarmWithResponse(ctx, id, nil, ctlapi.AlarmAcknowledgement{Reason: reason})
		must(t, resp, err, want)
		return resp.JSON200
	}
	settle(viewer, "alm_of_vendor", "looked", http.StatusForbidden)
	settle(other, "alm_of_vendor", "looked", http.StatusNotFound)
	settle(o.caller, "alm_of_vendor", "   ", http.StatusUnprocessableEntity)
	settle(o.caller, "alm_none", "looked", http.StatusNotFound)
	settle(o.caller, "alm_2", "whom is sealed to is no alarm", http.StatusNotFound)
	open(1)
	settle(o.caller, "alm_of_vendor", "restored from a snapshot", http.StatusOK)
	if again := settle(o.caller, "alm_of_vendor", "another reason", http.StatusOK); *again.Reason != "restored from a snapshot" {
		t.Errorf("acknowledged again: %+v", again)
	}
	open(0)
	if open, all := list(o.caller, false), list(o.caller, true); open != "" || all != "alm_of_vendor" {
		t.Errorf("open: %q, all: %q", open, all)
	}
	if n := d.count(`select count(*) from chain_records where org_id = $1 and convert_from(body, 'UTF8') like '%acknowledge alarm alm_of_vendor (chain_behind about subject of vendor): restored from a snapshot%'`, o.Org); n != 1 {
		t.Errorf("the org's chain has %d records of it", n)
	}

	if raise("chain_behind") != 1 {
		t.Error("what happened again raised no alarm")
	}
	open(1)
	if got := list(o.caller, false); got != "alm_3" {
		t.Errorf("open alarms: %s", got)
	}
}
