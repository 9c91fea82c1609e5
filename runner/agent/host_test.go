package agent_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/ending"
)

// What ends the host of an engine in the middle of an apply is no person's
// cancel: the report says so, and that a plan has to look.
func TestHostThatEndsInAnApply(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config processConfig
		asUser bool // the agent is not root, and its engines share its user
		signal syscall.Signal
	}{
		"the agent is told to end":                 {signal: syscall.SIGTERM},
		"the agent is killed, its engines with it": {processConfig{UIDs: "off"}, true, syscall.SIGKILL},
		"one that shares its user is told to end":  {processConfig{UIDs: "off"}, true, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first *exec.Cmd
			begin := func(r *runner) {
				var user *syscall.Credential
				if tc.asUser {
					r.yield()
					user = r.user()
				}
				first = r.process(tc.config, user)
				r.run(first)
			}
			c := newChange(t, begin, "")
			c.script = []string{"touch " + c.file("begun") + "\nwait " + c.file("never")}
			order := c.order(asItIs)
			c.appears(c.file("begun"))
			if err := first.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			_ = first.Wait()
			begin(c.runner)

			result := c.plane.result(t, order)
			if result.Outcome != jobspec.OutcomeUncertain || result.Reason != jobspec.ReasonHostEnded ||
				!strings.HasPrefix(result.Error, "the runner's process, pod or machine ended") {
				t.Errorf("result = %+v, want it uncertain because its host ended", result)
			}
			if diff := cmp.Diff([]string{order}, c.effects()); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
			records := c.records(2)
			if last := records[len(records)-1]; last.Kind != chain.Outcome || last.Result != string(jobspec.OutcomeUncertain) {
				t.Errorf("chain ends with %+v", last)
			}
		})
	}
}

// A person's cancel stays one, also when the agent ends while the engine stops.
func TestCancelBeforeTheHostEnds(t *testing.T) {
	t.Parallel()
	c := newChange(t, here, "")
	c.script = []string{"touch " + c.file("begun") + "\nwait " + c.file("never")}
	order := c.order(asItIs)
	c.appears(c.file("begun"))
	c.plane.change(func() { c.plane.answers[order] = "cancel" })
	if result := c.plane.result(t, order); result.Outcome != jobspec.OutcomeCancelled || result.Reason != "" {
		t.Errorf("result = %+v, want it cancelled (%s)", result, ending.Cancel)
	}
}
