package orders

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
)

const (
	// surveyTimeout bounds one look for drift, moduleTimeout one at a Terraform module,
	// which is a plan.
	surveyTimeout = 5 * time.Minute
	moduleTimeout = 30 * time.Minute
	// modulesEvery is how many hours lie between two looks at a Terraform module that says
	// nothing: a look reads each of its resources from the cloud.
	modulesEvery = 6
	// surveyAfter is how long after a change the runner looks.
	surveyAfter = time.Minute
)

// Surveyed is a component that is live, or the sandbox.
type Surveyed struct {
	Resource jobspec.Resource
	Live     Revision
	Change   string // that made it so
	LiveAt   time.Time
	AskedAt  time.Time         // when somebody last asked for a look, zero for never
	State    interpolate.State // for a schedule that is a template
	// Mark is the Terraform state that is live, nil for none.
	Mark *jobspec.StateMark
	// Rehearsed: the install is a rehearsal.
	Rehearsed bool
}

// Survey says how a runner looks for drift of a resource. why says why it does not, ""
// when it does.
func Survey(s Surveyed) (look jobspec.Scheduled, why string, err error) {
	probe, err := Probe(s.Resource, s.Live)
	if err != nil {
		return look, "", err
	}
	block, err := saysOf(s.Live)
	if err != nil {
		return look, "", err
	}
	timeout := surveyTimeout
	switch kind := jobspec.Kinds[probe.Kind]; {
	case probe.HelmChart != nil && probe.HelmChart.StorageDriver == jobspec.StorageNuon:
		return look, "the control plane keeps the records of its release", nil
	case kind.HasState && s.Rehearsed:
		return look, "the install is a rehearsal: what stands in for its module is in no cloud", nil
	case kind.HasState && s.Mark == nil:
		return look, "its module has made nothing yet, so that there is no state", nil
	case kind.HasState:
		timeout = moduleTimeout
	}
	cron, problem := surveyCron(block.schedule, probe.Kind, s)
	look = jobspec.Scheduled{
		Probe: &probe, Cron: cron, TimeoutSeconds: int(timeout / time.Second),
		Drift: &jobspec.DriftLook{Change: s.Change, State: s.Mark, At: []time.Time{s.LiveAt.UTC().Truncate(time.Second).Add(surveyAfter)}},
	}
	if s.AskedAt.After(s.LiveAt) { // a question about what was there before is answered by the look after the change
		look.Drift.At = append(look.Drift.At, s.AskedAt.UTC().Truncate(time.Second))
	}
	if block.berth != nil && block.berth.Drift != nil {
		for _, accept := range block.berth.Drift.Accept {
			if rule, err := accept.Rule(); err == nil { // a sync refuses others
				look.Drift.Accept = append(look.Drift.Accept, rule)
			}
		}
	}
	return look, problem, nil
}

// says is what an app says of looks at a resource.
type says struct {
	schedule string
	berth    *appconfig.BlockExtension
}

func saysOf(live Revision) (says, error) {
	if live.Sandbox {
		var sandbox appconfig.Sandbox
		if err := json.Unmarshal(live.Spec, &sandbox); err != nil {
			return says{}, fmt.Errorf("read sandbox revision: %w", err)
		}
		return says{sandbox.DriftSchedule, sandbox.Berth}, nil
	}
	var c appconfig.Component
	if err := json.Unmarshal(live.Spec, &c); err != nil {
		return says{}, fmt.Errorf("read component revision: %w", err)
	}
	return says{c.DriftSchedule, c.Berth}, nil
}

// surveyCron is when the runner looks: as the app says, else once an hour, or every six
// hours at a Terraform module, at a time of the resource's own. A template that gives no
// schedule gives that one too, and problem says so.
func surveyCron(schedule string, kind jobspec.Kind, s Surveyed) (cron, problem string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Resource.ID)) // cannot fail
	own, every := fmt.Sprintf("%d * * * *", h.Sum32()%60), "each hour"
	if jobspec.Kinds[kind].HasState {
		own, every = fmt.Sprintf("%d %d/%d * * *", h.Sum32()%60, h.Sum32()/60%modulesEvery, modulesEvery), fmt.Sprintf("every %d hours", modulesEvery)
	}
	if schedule == "" {
		return own, ""
	}
	rendered, err := interpolate.Render(schedule, s.State, interpolate.Options{File: "drift_schedule"})
	if err != nil {
		return own, "drift_schedule cannot be rendered, so it is looked at " + every + ": " + err.Error()
	}
	if wrong := appconfig.DriftScheduleProblem(rendered); wrong != "" {
		return own, fmt.Sprintf("drift_schedule is %.64q, so it is looked at %s: %s", rendered, every, wrong)
	}
	return rendered, ""
}
