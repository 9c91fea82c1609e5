package job

import (
	"context"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/roles"
)

// admitRole refuses an action, or a plugin, whose role the customer has not switched on,
// whatever order there is for it.
func (j *job) admitRole(ctx context.Context) error {
	if j.deps.Roles == nil || j.spec.Kind != jobspec.KindAction && j.spec.Kind != jobspec.KindPlugin || weakened.Is(weakened.Roles) {
		return nil
	}
	known, _, err := j.deps.Roles.Read()
	if err != nil {
		return err
	}
	judge := roles.Judge
	if j.spec.Kind == jobspec.KindPlugin {
		judge = roles.JudgePlugin
	}
	r := judge(roles.Asked{Spec: j.spec, Scripts: j.deps.Scripts.List(), Find: j.deps.Scripts.Find, Roles: known, Now: j.deps.Now()})
	if r == nil {
		return nil
	}
	j.recordEvent(ctx, string(jobspec.OutcomeRefused), r.Text)
	return j.refuseRun(r.Outcome, r.Objection)
}

// declareRoles makes the roles of an accepted release those that the customer can
// switch.
func (j *job) declareRoles(release jobspec.Release) error {
	if j.deps.Roles == nil {
		return nil
	}
	return j.deps.Disk.Insist(func() error { return j.deps.Roles.Declare(release.Roles) })
}
