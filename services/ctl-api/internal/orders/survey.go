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
	// surveyTimeout bounds one look for drift.
	surveyTimeout = 5 * time.Minute
	// surveyAfter is how long after a change the runner looks.
	surveyAfter = time.Minute
)

// Surveyed is a component that is live.
type Surveyed struct {
	Resource jobspec.Resource
	Live     Revision
	Change   string // that made it so
	LiveAt   time.Time
	AskedAt  time.Time         // when somebody last asked for a look, zero for never
	State    interpolate.State // for a schedule that is a template
}

// Survey says how a runner looks for drift of a component. why says why it does not, ""
// when it does.
func Survey(s Surveyed) (look jobspec.Scheduled, why string, err error) {
	probe, err := Probe(s.Resource, s.Live)
	if err != nil {
		return look, "", err
	}
	var c appconfig.Component
	if err := json.Unmarshal(s.Live.Spec, &c); err != nil {
		return look, "", fmt.Errorf("read component revision: %w", err)
	}
	if probe.HelmChart != nil && probe.HelmChart.StorageDriver == jobspec.StorageNuon {
		return look, "the control plane keeps the records of its release", nil
	}
	cron, problem := surveyCron(c.DriftSchedule, s)
	look = jobspec.Scheduled{
		Probe: &probe, Cron: cron, TimeoutSeconds: int(surveyTimeout / time.Second),
		Drift: &jobspec.DriftLook{Change: s.Change, At: []time.Time{s.LiveAt.UTC().Truncate(time.Second).Add(surveyAfter)}},
	}
	if s.AskedAt.After(s.LiveAt) { // a question about what was there before is answered by the look after the change
		look.Drift.At = append(look.Drift.At, s.AskedAt.UTC().Truncate(time.Second))
	}
	if c.Berth != nil && c.Berth.Drift != nil {
		for _, accept := range c.Berth.Drift.Accept {
			if rule, err := accept.Rule(); err == nil { // a sync refuses others
				look.Drift.Accept = append(look.Drift.Accept, rule)
			}
		}
	}
	return look, problem, nil
}

// surveyCron is when the runner looks: as the app says, else once an hour, at a minute of
// the component's own. A template that gives no schedule gives that one too, and problem
// says so.
func surveyCron(schedule string, s Surveyed) (cron, problem string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Resource.ID)) // cannot fail
	hourly := fmt.Sprintf("%d * * * *", h.Sum32()%60)
	if schedule == "" {
		return hourly, ""
	}
	rendered, err := interpolate.Render(schedule, s.State, interpolate.Options{File: "drift_schedule"})
	if err != nil {
		return hourly, "drift_schedule cannot be rendered, so it is looked at each hour: " + err.Error()
	}
	if wrong := appconfig.DriftScheduleProblem(rendered); wrong != "" {
		return hourly, fmt.Sprintf("drift_schedule is %.64q, so it is looked at each hour: %s", rendered, wrong)
	}
	return rendered, ""
}
