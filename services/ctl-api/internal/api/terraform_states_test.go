package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// heldState has a second state of a tenant's resource, and a lock of a job in a state.
func (o tenant) heldState(jobState string) {
	t, d := o.d.t, o.d
	t.Helper()
	for _, sql := range []string{
		`update resources set fence = 1, locked_by = null, locked_at = null where id = $1`,
		`delete from tf_locks where resource_id = $1`,
		`insert into tf_locks (org_id, resource_id, lock_id, info, job_id, attempt, fence)
			select org_id, $1, 'L', '{"Who":"berth@machine","Operation":"OperationTypeApply"}', id, 1, 1 from runner_jobs where resource_id = $1 and id like 'job_of_%'`,
	} {
		if _, err := d.db.Admin().Exec(t.Context(), sql, o.Resource); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := d.db.Admin().Exec(t.Context(), `update runner_jobs set state = $2 where resource_id = $1`, o.Resource, jobState); err != nil {
		t.Fatal(err)
	}
}

// The vendor sees addresses, serials and the holder of a lock, and attributes only where
// the customer's runner tells them; it frees the lock of a job that has ended, on record.
func TestTerraformStates(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("vendor")
	ctx := t.Context()
	viewer := o.member(ctlapi.MemberRequest{Name: "viewer", Kind: ctlapi.MemberRequestKindService, Role: ctlapi.MemberRequestRoleViewer})
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	tells := func(summary string) ctlapi.TerraformState {
		t.Helper()
		exec(`update tf_states set summary = $2 where resource_id = $1 and kind = 'current'`, o.Resource, summary)
		got, err := viewer.GetTerraformStateWithResponse(ctx, o.Install, o.Resource)
		must(t, got, err, http.StatusOK)
		if strings.Contains(string(got.Body), "sealed") {
			t.Errorf("the answer has the sealed bytes: %s", got.Body)
		}
		return *got.JSON200
	}
	const objects = `"bytes":900,"terraform_version":"1.11.4","objects":[{"address":"terraform_data.a","attributes":{"input":"x"}}],"outputs":{"o":"(sensitive)"}`
	if s := tells(`{"resources":{"terraform_data":1}}`); *s.Level != "counts" || (*s.Counts)["terraform_data"] != 1 || s.Objects != nil || s.Current.Serial != 1 {
		t.Errorf("counts: %+v", s)
	}
	if s := tells(`{"level":"addresses",` + objects + `}`); *s.Level != "addresses" || (*s.Objects)[0].Attributes != nil || s.Outputs != nil || *s.Current.Bytes != 900 {
		t.Errorf("addresses: %+v", s)
	}
	if s := tells(`{"level":"attributes",` + objects + `}`); (*(*s.Objects)[0].Attributes)["input"] != "x" || (*s.Outputs)["o"] != "(sensitive)" {
		t.Errorf("attributes: %+v", s)
	}

	exec(`update tf_states set kind = 'superseded' where resource_id = $1`, o.Resource)
	exec(`insert into tf_states (id, org_id, resource_id, serial, lineage, kind, body, digest, job_id, attempt, fence, reason, created_at) values
		('tfs_b', $1, $2, 2, 'lineage', 'current', 'sealed', 'd2', 'job_of_vendor', 1, 1, '', now() + interval '1 second'),
		('tfs_c', $1, $2, 3, 'lineage', 'orphaned', 'sealed', 'd3', 'job_of_vendor', 1, 1, 'the state is not locked', now() + interval '2 seconds')`, o.Org, o.Resource)
	var all []string
	after := ""
	for range 3 {
		one := 1
		page, err := o.ListTerraformStateHistoryWithResponse(ctx, o.Install, o.Resource, &ctlapi.ListTerraformStateHistoryParams{Limit: &one, After: &after})
		must(t, page, err, http.StatusOK)
		for _, v := range page.JSON200.Items {
			all = append(all, fmt.Sprintf("%d %s", v.Serial, v.Kind))
		}
		after = page.JSON200.Next
	}
	if got := strings.Join(all, ", "); got != "3 orphaned, 2 current, 1 superseded" || after != "" {
		t.Errorf("history: %s, next %q", got, after)
	}

	unlock := func(c caller) *ctlapi.UnlockTerraformStateResponse {
		t.Helper()
		resp, err := c.UnlockTerraformStateWithResponse(ctx, o.Install, o.Resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	o.heldState("leased")
	list, err := viewer.ListTerraformStatesWithResponse(ctx, o.Install)
	must(t, list, err, http.StatusOK)
	if l := list.JSON200.Items[0].Lock; len(list.JSON200.Items) != 1 || l == nil || !l.Alive || *l.Who != "berth@machine" || *l.Operation != "OperationTypeApply" || l.JobID != "job_of_vendor" {
		t.Errorf("listed: %s", list.Body)
	}
	refusal := unlock(o.caller)
	if refusal.StatusCode() != http.StatusConflict || refusal.ApplicationProblemJSONDefault.Code != "state_in_use" || !strings.Contains(string(refusal.Body), "still running") {
		t.Errorf("while the job runs: %d %s", refusal.StatusCode(), refusal.Body)
	}
	o.heldState("failed")
	if resp := unlock(viewer); resp.StatusCode() != http.StatusForbidden {
		t.Errorf("a viewer unlocks: %d %s", resp.StatusCode(), resp.Body)
	}
	freed := unlock(o.caller)
	if freed.StatusCode() != http.StatusOK || freed.JSON200.Lock != nil {
		t.Errorf("after the job: %d %s", freed.StatusCode(), freed.Body)
	}
	if again := unlock(o.caller); again.StatusCode() != http.StatusOK {
		t.Errorf("again: %d %s", again.StatusCode(), again.Body)
	}
	var fence, records int
	if err := d.db.Admin().QueryRow(ctx, `select fence, (select count(*) from chain_records where org_id = $2 and convert_from(body, 'UTF8') like '%free the lock that job job_of_vendor held%')
		from resources where id = $1`, o.Resource, o.Org).Scan(&fence, &records); err != nil || fence != 2 || records != 1 {
		t.Errorf("fence %d, %d records in the chain, %v; want 2, 1", fence, records, err)
	}
}

// An unlock that meets a new grant either comes first, and the grant is newer, or finds
// the resource in use. A lock of the new grant never goes, nor its fence.
func TestUnlockRacesWithGrant(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("vendor")
	ctx := t.Context()
	outcomes := map[int]int{}
	for range 12 {
		o.heldState("failed")
		var both sync.WaitGroup
		var status int
		var granted int64
		var grantErr error
		both.Go(func() {
			resp, err := o.UnlockTerraformStateWithResponse(ctx, o.Install, o.Resource, nil)
			if err != nil {
				t.Error(err)
				return
			}
			status = resp.StatusCode()
		})
		both.Go(func() {
			grantErr = d.store.Tx(ctx, o.Org, func(ctx context.Context, tx *database.Tx) (err error) {
				if granted, err = tx.GrantResource(ctx, ctldb.GrantResourceParams{ID: o.Resource, ChangeID: o.Change}); err != nil {
					return err
				}
				return tx.FreeTerraformLock(ctx, ctldb.FreeTerraformLockParams{ResourceID: o.Resource, Fence: granted})
			})
			if grantErr == nil { // the new job's engine locks
				_, grantErr = d.db.Admin().Exec(ctx, `with job as (update runner_jobs set state = 'leased', fence = $2 where resource_id = $1 returning org_id, id)
					insert into tf_locks (org_id, resource_id, lock_id, info, job_id, attempt, fence) select org_id, $1, 'new', '{}', id, 1, $2 from job`, o.Resource, granted)
			}
		})
		both.Wait()
		if grantErr != nil {
			t.Fatal(grantErr)
		}
		var lock string
		var fence, now int64
		err := d.db.Admin().QueryRow(ctx, `select l.lock_id, l.fence, r.fence from resources r join tf_locks l on l.resource_id = r.id where r.id = $1`, o.Resource).Scan(&lock, &fence, &now)
		if err != nil || lock != "new" || fence != granted || now != granted {
			t.Fatalf("unlock answered %d: lock %q at fence %d, the resource's is %d, granted was %d, %v", status, lock, fence, now, granted, err)
		}
		outcomes[status]++
	}
	for status := range outcomes {
		if status != http.StatusOK && status != http.StatusConflict {
			t.Errorf("outcomes: %v", outcomes)
		}
	}
	t.Logf("outcomes: %v", outcomes)
}
