package appconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// TriggerType says what starts an action.
type TriggerType string

const (
	TriggerManual TriggerType = "manual"
	TriggerCron   TriggerType = "cron"
	// TriggerRoleEnabled and TriggerRoleDisabled fire when a break-glass or
	// custom role is switched on or off in the stack.
	TriggerRoleEnabled  TriggerType = "role-enabled"
	TriggerRoleDisabled TriggerType = "role-disabled"
)

// lifecyclePoints each have a trigger before ("pre-") and after ("post-") them.
var lifecyclePoints = []string{
	"provision", "reprovision", "deprovision", "reprovision-sandbox", "deprovision-sandbox",
	"deploy-all-components", "teardown-all-components", "deploy-component", "teardown-component",
	"update-inputs", "secrets-sync", "enable-component", "disable-component",
}

// laterPoints have a trigger after them, and none before.
var laterPoints = []string{"provision-sandbox"}

// besidesBreakGlass are the triggers of an action under a break-glass role: a
// person, or the customer's switch of a role.
var besidesBreakGlass = []TriggerType{TriggerManual, TriggerRoleEnabled, TriggerRoleDisabled}

// Trigger is one way in which an action starts.
type Trigger struct {
	// What starts it: by hand, a cron, a role that is switched on or off in the stack, or before or after a point of the life cycle.
	Type TriggerType `toml:"type" json:"type" rule:"required"`
	// Its place among the actions of one trigger.
	Index int `toml:"index" json:"index,omitempty" default:"0"`
	// When a cron trigger fires: five fields, in UTC.
	CronSchedule string `toml:"cron_schedule" alias:"schedule" json:"cron_schedule,omitempty"`
	// The component that a trigger of one component is for; left out, every component.
	ComponentName string `toml:"component_name" json:"component_name,omitempty"`
}

// Values lists what the key may hold, older names too.
func (TriggerType) Values() []string {
	all := triggerTypes()
	for older := range olderTriggers {
		all = append(all, string(older))
	}
	slices.Sort(all)
	return all
}

// olderTriggers maps names that the language had before.
var olderTriggers = map[TriggerType]TriggerType{
	"pre-component-deploy":  "pre-deploy-component",
	"post-component-deploy": "post-deploy-component",
}

// check rewrites old names and reports what does not fit together.
func (t *Trigger) check(c *checker, a *Action, at place.Place) {
	if name, older := olderTriggers[t.Type]; older {
		t.Type = name
	}
	known := triggerTypes()
	if t.Type != "" && !slices.Contains(known, string(t.Type)) {
		d := c.At(place.Error, place.CodeValue, at.Below("type"), "trigger type %q does not exist", t.Type)
		if near := place.Nearest(string(t.Type), known); near != "" {
			d = d.WithRemedy("did you mean %q?", near)
		}
		c.Diags = append(c.Diags, d)
		return
	}
	if a.BreakGlassRole != "" && t.Type != "" && !slices.Contains(besidesBreakGlass, t.Type) {
		c.Diags = append(c.Diags, c.At(place.Warning, place.CodeExclusive, at.Below("type"), "action %q runs under a break-glass role, which is off until the customer switches it on, so %s", a.Name, withoutRole(t.Type)).
			WithRemedy("use manual, role-enabled or role-disabled"))
	}
	isCron, isComponent := t.Type == TriggerCron, strings.HasSuffix(string(t.Type), "-component")
	switch {
	case isCron && t.CronSchedule == "" && c.Misspelt(at, "cron_schedule", "schedule"):
	case isCron && t.CronSchedule == "":
		c.Add(place.Error, place.CodeMissing, at, "a cron trigger needs cron_schedule")
	case !isCron && t.CronSchedule != "":
		c.Add(place.Warning, place.CodeValue, at.Below("cron_schedule"), "cron_schedule does nothing on a trigger of type %q", t.Type)
	case !isComponent && t.ComponentName != "":
		c.Add(place.Warning, place.CodeValue, at.Below("component_name"), "component_name does nothing on a trigger of type %q", t.Type)
	}
	c.cron(at.Below("cron_schedule"), t.CronSchedule)
}

// withoutRole is what comes of a trigger that would mostly find the role of its action
// off.
func withoutRole(t TriggerType) string {
	if t == TriggerCron {
		return "no schedule ever starts it"
	}
	return fmt.Sprintf("the trigger %q never starts it", t)
}

func triggerTypes() []string {
	all := []string{string(TriggerManual), string(TriggerCron), string(TriggerRoleEnabled), string(TriggerRoleDisabled)}
	for _, point := range lifecyclePoints {
		all = append(all, "pre-"+point, "post-"+point)
	}
	for _, point := range laterPoints {
		all = append(all, "post-"+point)
	}
	return all
}
