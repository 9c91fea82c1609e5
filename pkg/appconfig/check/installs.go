package check

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// installs checks names, and that inputs and components exist.
func (v *validator) installs() {
	once, components, inputs := v.once("install"), v.components(), v.inputNames()
	for _, in := range v.app.Installs {
		once(in.At, in.Name)
		for i, values := range in.Inputs {
			for name, value := range values {
				at := in.At.Below("inputs").Item(i).Below(name)
				v.exists(at, name, inputs)
				if def := v.app.Input(name); def != nil {
					if problem := def.Check(value); problem != "" {
						v.Add(place.Error, place.CodeValue, at, "input %q %s", name, problem)
					}
				}
			}
		}
		for name := range in.ComponentToggles {
			at := in.At.Below("component_toggles").Below(name)
			v.exists(at, name, components)
			if c := v.app.Component(name); c != nil && !c.Toggleable {
				v.Add(place.Error, place.CodeValue, at, "component %q is not toggleable", name)
			}
		}
		v.installToggles(in)
		for name, override := range in.Components {
			v.installComponent(in.At.Below("components").Below(name), name, override)
		}
	}
}

// installToggles checks that nothing that is on needs what the file switches off.
func (v *validator) installToggles(in appconfig.InstallConfig) {
	if len(in.ComponentToggles) == 0 {
		return
	}
	for _, c := range ToggleConflicts(v.app, in.ComponentToggles) {
		v.Add(place.Error, place.CodeValue, in.At.Below("component_toggles").Below(c.Component), "%s", c.Message)
	}
}

func (v *validator) installComponent(at place.Place, name string, override appconfig.InstallComponent) {
	v.exists(at, name, v.components())
	c := v.app.Component(name)
	if c == nil {
		return
	}
	for key, message := range misfits(override, c) {
		v.Add(place.Error, place.CodeValue, at.Below(key), "%s", message)
	}
}

// OverrideProblems lists what is wrong with what an install changes of a
// component, by key; nothing when it fits. Of texts that are templates, and of HCL, only the engine can tell.
func OverrideProblems(o appconfig.InstallComponent, c *appconfig.Component) map[string]string {
	problems := misfits(o, c)
	tell := func(key string, bad *badDocument) {
		if bad != nil {
			problems[key] = fmt.Sprintf("line %d %s", bad.line, bad.message)
		}
	}
	if o.HelmValues != "" && c.HelmChart != nil && !interpolate.IsTemplate(o.HelmValues) && len(o.HelmValues) <= maxText {
		tell("helm_values", yamlMapping(o.HelmValues))
	}
	if c.TerraformModule != nil && !interpolate.IsTemplate(o.TFVars) {
		tell("tf_vars", terraformValues(o.TFVars))
	}
	return problems
}

// misfits lists, by key, what a component of another type cannot take.
func misfits(o appconfig.InstallComponent, c *appconfig.Component) map[string]string {
	misfits := map[string]string{}
	if o.HelmValues != "" && c.HelmChart == nil {
		misfits["helm_values"] = fmt.Sprintf("component %q is no chart", c.Name)
	}
	if o.TFVars != "" && c.TerraformModule == nil {
		misfits["tf_vars"] = fmt.Sprintf("component %q is no Terraform module", c.Name)
	}
	return misfits
}
