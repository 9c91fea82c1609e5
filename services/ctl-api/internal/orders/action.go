package orders

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Action finds an action of the app and turns it into what the engine works
// from.
func Action(app *appconfig.App, name string, inputs map[string]string) (*jobspec.Action, time.Duration, error) {
	a := app.Action(name)
	if a == nil {
		return nil, 0, fmt.Errorf("the release has no action %q", name)
	}
	_, check := a.HealthCheck()
	spec := &jobspec.Action{Name: a.Name, Inputs: inputs, ReadOnly: check, File: a.At.File}
	for _, s := range a.Steps {
		withCluster := a.EnableKubeConfig
		if s.EnableKubeConfig != nil {
			withCluster = *s.EnableKubeConfig
		}
		step := jobspec.ActionStep{Name: s.Name, Command: s.Command, EnvVars: s.EnvVars, NoKubeConfig: !withCluster}
		if s.InlineContents != nil {
			step.InlineContents, step.ScriptName = s.InlineContents.Contents, s.InlineContents.File
		}
		spec.Steps = append(spec.Steps, step)
	}
	return spec, a.Timeout.Std(), nil
}

// Scripts lists the scripts that an app brings: every action, once for each of
// its schedules, or once when it has none. The same app gives the same scripts.
func Scripts(app *appconfig.App) ([]jobspec.Script, error) {
	list := []jobspec.Script{}
	for i := range app.Actions {
		a := &app.Actions[i]
		action, timeout, err := Action(app, a.Name, nil)
		if err != nil {
			return nil, err
		}
		_, check := a.HealthCheck()
		script := jobspec.Script{Action: *action, Role: a.Role, TimeoutSeconds: int(timeout / time.Second), HealthCheck: check}
		for _, input := range a.Inputs {
			script.Inputs = append(script.Inputs, input.Name)
		}
		slices.Sort(script.Inputs)
		scheduled := false
		for _, t := range a.Triggers {
			if t.Type == appconfig.TriggerCron {
				scheduled = true
				script.Cron = t.CronSchedule
				list = append(list, script)
			}
		}
		if !scheduled {
			list = append(list, script)
		}
	}
	return list, nil
}
