package orders

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Action finds an action of the app and turns it into what the engine works
// from.
func Action(app *appconfig.App, name string, inputs map[string]string) (*jobspec.Action, time.Duration, error) {
	a := app.Action(name)
	if a == nil {
		return nil, 0, fmt.Errorf("the release has no action %q", name)
	}
	_, check := a.HealthCheck()
	spec := &jobspec.Action{
		Name: a.Name, Image: a.Image, ImageDigest: a.ImageDigest, Inputs: inputs, ReadOnly: check, File: a.At.File,
		Cluster: cluster(app, a.KubernetesContext), BreakGlassRole: customerrole.Canonical(a.BreakGlassRole),
	}
	if a.Berth != nil {
		spec.Tools = a.Berth.Tools
	}
	for _, s := range a.Steps {
		withCluster := a.EnableKubeConfig
		if s.EnableKubeConfig != nil {
			withCluster = *s.EnableKubeConfig
		}
		step := jobspec.ActionStep{Name: s.Name, Command: s.Command, EnvVars: s.EnvVars, NoKubeConfig: !withCluster}
		if s.InlineContents != nil {
			step.InlineContents, step.ScriptName = s.InlineContents.Contents, s.InlineContents.File
		}
		if s.Artifact != nil {
			step.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: s.Artifact.Digest}
		}
		spec.Steps = append(spec.Steps, step)
	}
	return spec, a.Timeout.Std(), nil
}

// AllInputs gives every input of an action a value: "" to those that are not given.
func AllInputs(a *appconfig.Action, given map[string]string) map[string]string {
	all := map[string]string{}
	for _, in := range a.Inputs {
		all[in.Name] = given[in.Name]
	}
	return all
}

// CheckInputs compares what a person gives an action with the inputs it has.
//
// Errors: ErrInvalid, naming every input that the action does not have and every
// required one that is missing.
func CheckInputs(a *appconfig.Action, given map[string]string) error {
	var faults, names []string
	for _, in := range a.Inputs {
		names = append(names, in.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			faults = append(faults, fmt.Sprintf("has no input %q", name)+meant(name, names))
		}
	}
	for _, in := range a.Inputs {
		if _, ok := given[in.Name]; in.Required && !ok {
			faults = append(faults, fmt.Sprintf("needs input %q: --input %s=…", in.Name, in.Name))
		}
	}
	if len(faults) > 0 {
		return fault.Newf(fault.ErrInvalid, "action %s %s", a.Name, strings.Join(faults, ", and "))
	}
	return nil
}

// meant says which name a wrong one stands for, or else which ones there are.
func meant(name string, names []string) string {
	text := place.Meant(name, names)
	if text == "" && len(names) > 0 {
		text = "; it has: " + strings.Join(names, ", ")
	}
	return text
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
		script.WhenRoleIsOff = a.BreakGlassRole != "" && slices.ContainsFunc(a.Triggers, func(t appconfig.Trigger) bool { return t.Type == appconfig.TriggerRoleDisabled })
		for _, input := range a.Inputs {
			script.Inputs = append(script.Inputs, input.Name)
		}
		slices.Sort(script.Inputs)
		script.Heals = heals(app, a.Name)
		scheduled := false
		for _, t := range a.Triggers {
			if t.Type == appconfig.TriggerCron {
				scheduled = true
				script.Cron, script.Unattended = t.CronSchedule, a.Unattended()
				list = append(list, script)
				script.Heals = nil // the first one's
			}
		}
		if !scheduled {
			list = append(list, script)
		}
	}
	return list, nil
}

// heals lists the checks that an action heals, or whose remediation it takes back.
func heals(app *appconfig.App, action string) (list []jobspec.Heal) {
	for _, r := range app.Remedied() {
		if !r.ByItself || r.RemediationMode == appconfig.RemediationAsk {
			continue
		}
		h := jobspec.Heal{
			Check: r.Check(), UnhealthyAfter: r.UnhealthyAfter, HealthyAfter: r.HealthyAfter,
			Attempts: r.RemediationAttempts, CooldownSeconds: int(r.RemediationCooldown.Std() / time.Second),
		}
		switch action {
		case r.Remediation:
			list = append(list, h)
		case r.RemediationRevert:
			h.Reverts = true
			list = append(list, h)
		}
	}
	return list
}
