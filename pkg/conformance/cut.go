package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// The rules about jobs that are cut off: asked to stop, or killed.

func (t *trial) cancelPlan() error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	whole, err := t.must(a{Order: planFirst})
	if err != nil {
		return err
	}
	if _, err := t.run(a{Order: planFirst, signal: syscall.SIGTERM, after: whole.took / 2}); err != nil {
		return err
	}
	if err := t.world.Killed(); err != nil {
		return err
	}
	return t.unchanged(before)
}

func (t *trial) killPlan() error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	whole, err := t.must(a{Order: planFirst})
	if err != nil {
		return err
	}
	for _, after := range []time.Duration{whole.took / 3, whole.took * 2 / 3} {
		if _, err := t.start(a{Order: planFirst, signal: syscall.SIGKILL, after: after}); err != nil {
			return err
		}
		if err := t.world.Killed(); err != nil {
			return err
		}
	}
	if err := t.unchanged(before); err != nil {
		return err
	}
	again, err := t.must(a{Order: planFirst})
	if err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(whole.dir, "out", "plan.canonical.json"))
	if err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(again.dir, "out", "plan.canonical.json"))
	if err == nil && string(got) != string(want) {
		err = fmt.Errorf("the plan before was\n%s\nthe one after is\n%s", want, got)
	}
	return err
}

// cut lets an apply run whole, to see how long it takes and what it leaves, and
// cuts it short twice in another world.
func (t *trial) cut(with syscall.Signal, destroy bool) error {
	if destroy {
		if _, _, err := t.deploy(First, false); err != nil {
			return err
		}
	}
	_, whole, err := t.deploy(First, destroy)
	if err != nil {
		return err
	}
	want, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	if err := t.renew(); err != nil {
		return err
	}
	if destroy {
		if _, _, err := t.deploy(First, false); err != nil {
			return err
		}
	}
	var before *job
	for _, after := range []time.Duration{whole.took / 3, whole.took * 2 / 3} {
		if before, err = t.cutOnce(with, destroy, before, after); err != nil {
			return err
		}
	}
	if _, err := t.follow(before, destroy, a{}); err != nil {
		return err
	}
	if err := t.settled(First, destroy); err != nil {
		return err
	}
	return t.unchanged(want)
}

// cutOnce plans after an apply that was cut short, and cuts the next one short.
func (t *trial) cutOnce(with syscall.Signal, destroy bool, before *job, after time.Duration) (*job, error) {
	at, err := t.world.Look(t.ctx)
	if err != nil {
		return nil, err
	}
	j, err := t.follow(before, destroy, a{signal: with, after: after})
	if err != nil || j == nil {
		return before, err
	}
	if r := j.result; r != nil && (r.Outcome == jobspec.OutcomeNotStarted || r.Outcome == jobspec.OutcomeRefused || r.Outcome == jobspec.OutcomeStale) {
		if err := t.unchanged(at); err != nil {
			return nil, fmt.Errorf("it said %s: %w", r.Outcome, err)
		}
	}
	return j, t.world.Killed()
}

// follow plans what is left after an apply that was cut short, and applies that; nil
// when nothing is left. A job that is not cut short must succeed.
func (t *trial) follow(before *job, destroy bool, how a) (*job, error) {
	order := planFirst
	order.Destroy = destroy
	plan, err := t.must(a{Order: order, previous: before})
	if err != nil {
		return nil, err
	}
	if none, err := plan.noChange(); err != nil || none {
		return nil, err
	}
	how.Order, how.plan = order, plan
	how.Operation = jobspec.OperationApply
	if how.signal == 0 {
		return t.must(how)
	}
	return t.run(how)
}
