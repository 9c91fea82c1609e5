package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A change that somebody denied, or that nobody decided on, says so wherever its
// workflow is shown; until a retry, its state stays failed.
func TestDenialIsNoFailure(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("initech")
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	type end struct{ How, By string }
	of := func(how *ctlapi.Ended, by *string) (e end) {
		if how != nil {
			e.How = string(*how)
		}
		if by != nil {
			e.By = *by
		}
		return e
	}
	shown := func() map[string]end {
		t.Helper()
		w, err := o.GetWorkflowWithResponse(t.Context(), o.Workflow, nil)
		must(t, w, err, http.StatusOK)
		list, err := o.ListWorkflowsWithResponse(t.Context(), nil)
		must(t, list, err, http.StatusOK)
		status, err := o.GetInstallStatusWithResponse(t.Context(), o.Install)
		must(t, status, err, http.StatusOK)
		why, err := o.WhyInstallWithResponse(t.Context(), o.Install)
		must(t, why, err, http.StatusOK)
		if body := string(why.Body); strings.Contains(body, "failed") {
			t.Errorf("why speaks of a failure: %s", body)
		}
		all := map[string]end{
			"workflow": of(w.JSON200.Ended, w.JSON200.EndedBy), "list": of(list.JSON200.Items[0].Ended, list.JSON200.Items[0].EndedBy),
			"status": of(status.JSON200.Last.Ended, status.JSON200.Last.EndedBy),
		}
		for _, s := range w.JSON200.Steps {
			if s.ID == o.Step {
				all["step"] = of(s.Ended, s.EndedBy)
			} else if s.Ended != nil {
				t.Errorf("step %s ended, too: %s", s.Name, *s.Ended)
			}
		}
		return all
	}
	exec(`update steps set state = 'failed', change_id = $2, error = 'denied by ada: not today', finished_at = now() where id = $1`, o.Step, o.Change)
	exec(`update changes set state = 'denied', denied_by = 'ada', wait_reason = null, wait_on = null, wait_deadline = null where id = $1`, o.Change)
	exec(`update workflows set state = 'failed', ended = 'denied', ended_by = 'ada', finished_at = now(), error = 'api was not done: denied by ada' where id = $1`, o.Workflow)
	denied := end{"denied", "ada"}
	if diff := cmp.Diff(map[string]end{"workflow": denied, "list": denied, "status": denied, "step": denied}, shown()); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	exec(`update changes set denied_by = null where id = $1`, o.Change)
	exec(`update workflows set ended = 'expired', ended_by = null where id = $1`, o.Workflow)
	expired := end{How: "expired"}
	if diff := cmp.Diff(map[string]end{"workflow": expired, "list": expired, "status": expired, "step": expired}, shown()); diff != "" {
		t.Errorf("expired (-want +got):\n%s", diff)
	}
}
