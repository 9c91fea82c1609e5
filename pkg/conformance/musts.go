package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Must is one rule of the contract.
type Must struct {
	Number int
	// ID names it where engines declare what does not apply to them.
	ID string
	// Says is the rule in one sentence.
	Says string

	test func(*trial) error
}

// Musts lists the rules in their order.
func Musts() []Must {
	all := []Must{
		{ID: "plan", Says: "A plan leaves plan.canonical.json, plan.summary.json and, when there is something to do, pinned/; it changes nothing, and nothing below in/.", test: (*trial).plan},
		{ID: "same-plan", Says: "Two plans of the same thing leave the same bytes in plan.canonical.json.", test: (*trial).samePlan},
		{ID: "apply", Says: "An apply does what its plan showed and ends with exit code 0.", test: (*trial).apply},
		{ID: "pinned-only", Says: "An apply works from in/pinned alone: what job.json says of the config by then counts for nothing.", test: (*trial).pinnedOnly},
		{ID: "no-op", Says: "A plan that would do nothing says no_change, and lists nothing.", test: (*trial).noOp},
		{ID: "update", Says: "A plan shows what changes in place as an update, and its apply leaves nothing to do.", test: (*trial).update},
		{ID: "replace", Says: "A plan shows what has to be made again as replace, or as delete and create.", test: (*trial).replace},
		{ID: "destroy", Says: "The plan of a teardown shows what is deleted, its apply leaves nothing behind, and a second teardown has nothing to do.", test: (*trial).destroy},
		{ID: "drift", Says: "A plan sees what somebody changed behind the engine's back, and its apply puts it right.", test: (*trial).drift},
		{ID: "secret-outputs", Says: "A secret is in no log, summary or error, and an output that holds it is marked sensitive.", test: (*trial).secretOutputs},
		{ID: "wrong-digest", Says: "An apply whose pinned files are damaged does nothing, and does not succeed.", test: (*trial).wrongDigest},
		{ID: "missing-credential", Says: "Without a credential that it needs, a job ends by itself, says so in one line, and changes nothing.", test: (*trial).missingCredential},
		{ID: "missing-tool", Says: "Without a tool that it needs, a job ends by itself, says so in one line, and changes nothing.", test: (*trial).missingTool},
		{ID: "unknown-version", Says: "A job of a version of the contract that it does not know is refused with exit code 10, and nothing is done.", test: (*trial).unknownVersion},
		{ID: "cancel-plan", Says: "A plan ends within 20 s after SIGTERM, and has changed nothing.", test: (*trial).cancelPlan},
		{ID: "cancel-apply", Says: "An apply ends within 20 s after SIGTERM; whatever it says it did not begin was not done, and a new plan and apply finish the work.", test: func(t *trial) error { return t.cut(syscall.SIGTERM, false) }},
		{ID: "cancel-destroy", Says: "The same holds for the apply of a teardown.", test: func(t *trial) error { return t.cut(syscall.SIGTERM, true) }},
		{ID: "kill-plan", Says: "A plan that is killed has changed nothing, and the next one leaves the same bytes.", test: (*trial).killPlan},
		{ID: "kill-apply", Says: "After an apply that is killed, and one that is killed again, a new plan and apply finish the work.", test: func(t *trial) error { return t.cut(syscall.SIGKILL, false) }},
		{ID: "kill-destroy", Says: "The same holds for the apply of a teardown.", test: func(t *trial) error { return t.cut(syscall.SIGKILL, true) }},
	}
	for i := range all {
		all[i].Number = i + 1
	}
	return all
}

var (
	planFirst  = Order{Operation: jobspec.OperationPlan, Config: First}
	applyFirst = Order{Operation: jobspec.OperationApply, Config: First}
)

// unchanged checks that the world still looks as it did.
func (t *trial) unchanged(before string) error {
	now, err := t.world.Look(t.ctx)
	if err == nil && now != before {
		err = fmt.Errorf("it changed something: before\n%s\nnow\n%s", before, now)
	}
	return err
}

// deploy plans and applies a config, which has to change something.
func (t *trial) deploy(c Config, destroy bool) (plan, apply *job, err error) {
	plan, err = t.must(a{Order: Order{Operation: jobspec.OperationPlan, Config: c, Destroy: destroy}})
	if err != nil {
		return nil, nil, err
	}
	if none, err := plan.noChange(); err != nil || none {
		return plan, nil, errors.Join(err, errors.New("the plan shows no change where there is one"))
	}
	apply, err = t.must(a{Order: Order{Operation: jobspec.OperationApply, Config: c, Destroy: destroy}, plan: plan})
	return plan, apply, err
}

// settled checks that a plan of a config has nothing to do.
func (t *trial) settled(c Config, destroy bool) error {
	plan, err := t.must(a{Order: Order{Operation: jobspec.OperationPlan, Config: c, Destroy: destroy}})
	if err != nil {
		return err
	}
	none, err := plan.noChange()
	if err == nil && !none {
		s, _ := plan.summary()
		err = fmt.Errorf("the next plan still has something to do: %s%s", s.Counts(), plan.tail())
	}
	return err
}

func (t *trial) plan() error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	plan, err := t.must(a{Order: planFirst})
	if err != nil {
		return err
	}
	if err := plan.onlyItsOwn(); err != nil {
		return err
	}
	return t.unchanged(before)
}

func (t *trial) samePlan() error {
	var first []byte
	for i := range 2 {
		plan, err := t.must(a{Order: planFirst})
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(plan.dir, "out", "plan.canonical.json"))
		if err != nil {
			return err
		}
		if i == 1 && string(raw) != string(first) {
			return fmt.Errorf("the first plan is\n%s\nthe second\n%s", first, raw)
		}
		first = raw
	}
	return nil
}

func (t *trial) apply() error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	now, err := t.world.Look(t.ctx)
	if err == nil && now == before {
		err = errors.New("an apply of a plan with changes changed nothing")
	}
	return err
}

func (t *trial) pinnedOnly() error {
	plan, err := t.must(a{Order: planFirst})
	if err != nil {
		return err
	}
	// The order of the apply has another config by now.
	if _, err := t.must(a{Order: Order{Operation: jobspec.OperationApply, Config: Updated}, plan: plan}); err != nil {
		return err
	}
	got, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	if err := t.renew(); err != nil {
		return err
	}
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	want, err := t.world.Look(t.ctx)
	if err == nil && got != want {
		err = fmt.Errorf("it did\n%s\nplanned was\n%s", got, want)
	}
	return err
}

func (t *trial) noOp() error {
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	return t.settled(First, false)
}

func (t *trial) update() error {
	return t.changed(Updated, func(c jobspec.Counts) bool { return c.Update > 0 && c.Replace == 0 }, "an update")
}

func (t *trial) replace() error {
	return t.changed(Replaced, func(c jobspec.Counts) bool { return c.Replace > 0 || c.Delete > 0 && c.Create > 0 }, "a replace, or a delete and a create")
}

// changed deploys First and then another config.
func (t *trial) changed(c Config, shown func(jobspec.Counts) bool, what string) error {
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	plan, _, err := t.deploy(c, false)
	if err != nil {
		return err
	}
	s, err := plan.summary()
	if err != nil {
		return err
	}
	if counts := s.Counts(); !shown(counts) {
		return fmt.Errorf("the plan shows %s, want %s", counts, what)
	}
	now, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	if now == before {
		return errors.New("the apply changed nothing")
	}
	return t.settled(c, false)
}

func (t *trial) destroy() error {
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	plan, _, err := t.deploy(First, true)
	if err != nil {
		return err
	}
	s, err := plan.summary()
	if err != nil {
		return err
	}
	if c := s.Counts(); c.Delete == 0 {
		return fmt.Errorf("the plan of the teardown shows %s, and no delete", c)
	}
	if err := t.unchanged(""); err != nil {
		return fmt.Errorf("after the teardown: %w", err)
	}
	return t.settled(First, true)
}

func (t *trial) drift() error {
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	want, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	if err := t.world.Drift(t.ctx); err != nil {
		return fmt.Errorf("drift: %w", err)
	}
	if _, _, err := t.deploy(First, false); err != nil {
		return err
	}
	if err := t.unchanged(want); err != nil {
		return fmt.Errorf("after the apply: %w", err)
	}
	return t.settled(First, false)
}

func (t *trial) secretOutputs() error {
	plan, apply, err := t.deploy(First, false)
	if err != nil {
		return err
	}
	for _, j := range []*job{plan, apply} {
		if strings.Contains(j.log, t.Secret) {
			return fmt.Errorf("the log of the %s has the secret", j.spec.Operation)
		}
		shown, err := os.ReadFile(filepath.Join(j.dir, "out", "plan.summary.json"))
		if err == nil && strings.Contains(string(shown), t.Secret) {
			return errors.New("the summary of the plan has the secret")
		}
		if strings.Contains(j.result.Error+j.result.Remedy, t.Secret) {
			return errors.New("the error has the secret")
		}
	}
	outputs, err := apply.outputs()
	if err != nil {
		return err
	}
	out, there := outputs[t.SecretOutput]
	switch {
	case !there:
		return fmt.Errorf("there is no output %q in out/outputs.json", t.SecretOutput)
	case !strings.Contains(string(out.Value), t.Secret):
		return fmt.Errorf("output %q does not hold the secret of the test", t.SecretOutput)
	case !out.Sensitive:
		return fmt.Errorf("output %q holds a secret and is not marked sensitive", t.SecretOutput)
	}
	for name, o := range outputs {
		if !o.Sensitive && strings.Contains(string(o.Value), t.Secret) {
			return fmt.Errorf("output %q holds a secret and is not marked sensitive", name)
		}
	}
	return nil
}

func (t *trial) wrongDigest() error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	plan, err := t.must(a{Order: planFirst})
	if err != nil {
		return err
	}
	j, err := t.run(a{Order: applyFirst, plan: plan, damage: empty})
	if err != nil {
		return err
	}
	if j.result.Outcome == jobspec.OutcomeSucceeded {
		return errors.New("it applied what was damaged")
	}
	return t.unchanged(before)
}

// empty leaves nothing in any file.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = errors.Join(err, empty(path))
		} else {
			err = errors.Join(err, os.WriteFile(path, nil, 0o600))
		}
	}
	return err
}

func (t *trial) missingCredential() error { return t.without(LacksCredential) }

func (t *trial) missingTool() error { return t.without(LacksTool) }

// without runs a plan that lacks something, and if that succeeds, the apply.
func (t *trial) without(what Lack) error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	order := planFirst
	order.Lacks = what
	j, err := t.run(a{Order: order})
	if err != nil {
		return err
	}
	if j.result.Outcome == jobspec.OutcomeSucceeded {
		order.Operation = jobspec.OperationApply
		if j, err = t.run(a{Order: order, plan: j}); err != nil {
			return err
		}
	}
	if j.result.Outcome == jobspec.OutcomeSucceeded {
		return fmt.Errorf("plan and apply succeeded without a %s", what)
	}
	return t.unchanged(before)
}

func (t *trial) unknownVersion() error {
	before, err := t.world.Look(t.ctx)
	if err != nil {
		return err
	}
	j, err := t.run(a{Order: planFirst, change: func(s *jobspec.Spec) { s.Version = 99 }})
	if err != nil {
		return err
	}
	if j.result.Outcome != jobspec.OutcomeRefused {
		return fmt.Errorf("outcome %s, want %s", j.result.Outcome, jobspec.OutcomeRefused)
	}
	return t.unchanged(before)
}
