package api_test

import (
	"net/http"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Remediations are listed, newest first, and one that needs attention is among what to look
// at until it ends.
func TestRemediations(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i, state := range []string{"helped", "needs_attention", "running"} {
		exec(`insert into remediations (id, org_id, install_id, check_name, action, seq, state, why, attempts, attempts_of, began_at, changed_at)
			select $1, org_id, id, 'component/web', 'restart', 1, $2, case $2 when 'needs_attention' then 'still unhealthy' else '' end, 2, 3, now(), now() from installs where id = $3`,
			"rmd_"+string(rune('a'+i)), state, made.JSON201.ID)
	}
	exec(`update remediations set ended_at = now() where state = 'helped'`)
	listed := func(p ctlapi.ListRemediationsParams, want ...string) *string {
		t.Helper()
		got, err := c.ListRemediationsWithResponse(t.Context(), "acme", &p)
		must(t, got, err, http.StatusOK)
		var ids []string
		for _, r := range got.JSON200.Items {
			ids = append(ids, r.ID)
		}
		if len(ids) != len(want) {
			t.Fatalf("%+v lists %v, want %v", p, ids, want)
		}
		for i := range want {
			if ids[i] != want[i] {
				t.Errorf("%+v lists %v, want %v", p, ids, want)
			}
		}
		if got.JSON200.Next == "" {
			return nil
		}
		return &got.JSON200.Next
	}
	listed(ctlapi.ListRemediationsParams{}, "rmd_c", "rmd_b", "rmd_a")
	listed(ctlapi.ListRemediationsParams{Open: new(true)}, "rmd_c", "rmd_b")
	listed(ctlapi.ListRemediationsParams{State: new(ctlapi.RemediationState("helped"))}, "rmd_a")
	next := listed(ctlapi.ListRemediationsParams{Limit: new(2)}, "rmd_c", "rmd_b")
	listed(ctlapi.ListRemediationsParams{Limit: new(2), After: next}, "rmd_a")

	unhealed := func() (found bool) {
		t.Helper()
		why, err := c.WhyInstallWithResponse(t.Context(), "acme")
		must(t, why, err, http.StatusOK)
		for _, r := range why.JSON200.Items {
			if string(r.Code) == "needs_attention" {
				found = true
				if r.Reason != "action restart did not help: still unhealthy" {
					t.Errorf("reason = %q", r.Reason)
				}
			}
		}
		return found
	}
	if !unhealed() {
		t.Error("nobody is told of the one that needs attention")
	}
	exec(`update remediations set ended_at = now()`)
	if unhealed() {
		t.Error("one that has ended is told of")
	}
}
