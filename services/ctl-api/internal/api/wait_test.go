package api_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// provisioning makes an install with a workflow that nobody works on.
func (c caller) provisioning() (workflowID string) {
	c.d.t.Helper()
	c.released("hello", hello())
	req := acme()
	req.Provision = true
	made, err := c.CreateInstallWithResponse(c.d.t.Context(), nil, req)
	must(c.d.t, made, err, http.StatusCreated)
	return *made.JSON201.WorkflowID
}

// waitFor asks for the workflow as it will be after the version.
func (c caller) waitFor(workflowID string, version int64) <-chan *ctlapi.GetWorkflowResponse {
	answer := make(chan *ctlapi.GetWorkflowResponse, 1)
	go func() {
		defer close(answer)
		got, err := c.GetWorkflowWithResponse(c.d.t.Context(), workflowID, &ctlapi.GetWorkflowParams{Wait: new("60s"), AfterVersion: &version})
		if err != nil {
			c.d.t.Error(err)
			return
		}
		answer <- got
	}()
	return answer
}

// A workflow says which trace it belongs to, and where that is seen.
func TestTraceOfWorkflow(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	id := c.provisioning()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for parent, want := range map[string]*ctlapi.WorkflowTrace{
		"":                                     nil,
		"00-" + trace + "-b7ad6b7169203331-00": {ID: trace},
		"00-" + trace + "-b7ad6b7169203331-01": {ID: trace, URL: new("https://traces.test/" + trace)},
	} {
		d.sql(`update workflows set trace = jsonb_build_object('traceparent', $2::text) where id = $1`, id, parent)
		got, err := c.GetWorkflowWithResponse(t.Context(), id, nil)
		must(t, got, err, http.StatusOK)
		if diff := cmp.Diff(want, got.JSON200.Trace); diff != "" {
			t.Errorf("%q (-want +got):\n%s", parent, diff)
		}
	}
}

func TestWaitForWorkflow(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	id := c.provisioning()
	now, err := c.GetWorkflowWithResponse(t.Context(), id, nil)
	must(t, now, err, http.StatusOK)

	moved := c.waitFor(id, now.JSON200.Version)
	if _, err := d.db.Admin().Exec(t.Context(), `
		with event as (
			insert into workflow_events (org_id, workflow_id, seq, kind, body)
			select org_id, id, event_seq + 1, 'workflow', '{}' from workflows where id = $1)
		update workflows set event_seq = event_seq + 1 where id = $1`, id); err != nil {
		t.Fatal(err)
	}
	if _, err := d.db.Admin().Exec(t.Context(), `select pg_notify('berth_workflow', $1)`, id); err != nil {
		t.Fatal(err)
	}
	got := <-moved
	must(t, got, nil, http.StatusOK)
	if got.JSON200.Version != now.JSON200.Version+1 {
		t.Errorf("answered version %d, want %d", got.JSON200.Version, now.JSON200.Version+1)
	}

	// One that is finished moves no more, so nobody is held back.
	if _, err := d.db.Admin().Exec(t.Context(), `update workflows set state = 'failed', finished_at = now() where id = $1`, id); err != nil {
		t.Fatal(err)
	}
	got = <-c.waitFor(id, got.JSON200.Version)
	must(t, got, nil, http.StatusOK)

	for _, wait := range []string{"soon", "61s", "3600s", "-1s", "+1s", "NaN", "1e3s", "60001ms", "99999ms", "1m", "1h0s", "0.5s"} {
		bad, err := c.GetWorkflowWithResponse(t.Context(), id, &ctlapi.GetWorkflowParams{Wait: &wait})
		if err != nil || bad.StatusCode() != http.StatusUnprocessableEntity {
			t.Errorf("wait=%s: answered %d (%v), want 422", wait, bad.StatusCode(), err)
		}
	}
	for _, wait := range []string{"0s", "9s", "59s", "60s", "0ms", "60000ms"} { // answered at once: it moves no more
		good, err := c.GetWorkflowWithResponse(t.Context(), id, &ctlapi.GetWorkflowParams{Wait: &wait})
		must(t, good, err, http.StatusOK)
	}
	beyond := int64(1) << 60
	bad, err := c.GetWorkflowWithResponse(t.Context(), id, &ctlapi.GetWorkflowParams{Wait: new("60s"), AfterVersion: &beyond})
	problemOf(t, bad, err, http.StatusUnprocessableEntity, "invalid")
}

// A server that ends lets go of those who follow: they come back to another
// replica.
func TestEndLetsGoOfWhoeverFollows(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	stream, err := c.StreamWorkflowEvents(t.Context(), c.provisioning(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "id: ") {
		t.Fatalf("the stream begins with %q, %v", lines.Text(), lines.Err())
	}
	d.stop()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: end") {
			t.Error("the stream says that the workflow has ended")
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream breaks off: %v", err)
	}
}
