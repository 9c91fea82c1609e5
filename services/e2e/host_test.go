package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestHostEnds tells the runner's process to end in the middle of an apply, as a
// restart of its machine does. Nobody wanted the deploy to end: it continues by
// itself with a new plan. The limit of that is in TestNextOfOneChange.
func TestHostEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")

	in.change("told to end")
	release := in.hold()
	w := in.deploy(true, "one")
	in.sinceEffect("begin one told to end")
	in.signal(in.pid("runner acme"), syscall.SIGTERM)
	in.back("agent")
	release()
	got := in.settled(w.ID)
	if got.State != "succeeded" {
		t.Fatalf("workflow: %s", in.explain(got))
	}
	in.plannedAgain(w.ID)
}

// plannedAgain checks that one change of a workflow was ended with its host.
func (in *install) plannedAgain(workflowID string) {
	in.t.Helper()
	again := slices.DeleteFunc(in.changes("uncertain"), func(c ctlapi.Change) bool { return c.WorkflowID != workflowID })
	if len(again) != 1 {
		in.t.Fatalf("%d changes are uncertain, want one: %+v", len(again), again)
	}
	if c := again[0]; c.Error == nil || !strings.HasPrefix(*c.Error, "the runner's process, pod or machine ended") {
		in.t.Errorf("the change does not say that its host ended: %+v", c)
	}
}
