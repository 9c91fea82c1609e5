package stage

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// standIn is what stands in for a part, and where the part stands.
func (s *staging) standIn(part Part, why string) (place.Place, table, bool) {
	kind, name, _ := strings.Cut(string(part), "/")
	switch kind {
	case appconfig.BlockSandbox:
		if s.app.Sandbox == nil {
			return place.Place{}, nil, false
		}
		return s.app.Sandbox.At, moduleOf(why), true
	case appconfig.BlockComponent:
		c := s.app.Component(name)
		if c == nil {
			return place.Place{}, nil, false
		}
		t := moduleOf(why)
		t["name"], t["type"], t["dependencies"] = c.Name, string(appconfig.TypeTerraformModule), s.graph.Needs(c.Name)
		if c.VarName != "" {
			t["var_name"] = c.VarName
		}
		if c.Toggleable {
			t["toggleable"] = true
			if c.DefaultEnabled != nil {
				t["default_enabled"] = *c.DefaultEnabled
			}
		}
		return c.At, t, true
	}
	a := s.app.Action(name)
	if a == nil {
		return place.Place{}, nil, false
	}
	return a.At, s.action(a, why), true
}

func moduleOf(why string) table {
	return table{"terraform_version": ">= 1.0.0", "berth": table{"local_source": moduleDir, "stand_in": why}}
}

// action is an action whose steps do nothing but give the outputs that templates
// read; one that nobody reads is left to be run by hand.
func (s *staging) action(a *appconfig.Action, why string) table {
	t := table{"name": a.Name, "description": a.Description, "berth": table{"stand_in": why}}
	if len(a.Dependencies) > 0 {
		t["dependencies"] = a.Dependencies
	}
	var inputs []table
	for _, in := range a.Inputs {
		inputs = append(inputs, table{"name": in.Name, "description": in.Description})
	}
	if len(inputs) > 0 {
		t["inputs"] = inputs
	}
	read := s.outputsOf(a.Name)
	triggers := []table{{"type": string(appconfig.TriggerManual)}}
	if len(read) > 0 {
		triggers = nil
		for _, trigger := range a.Triggers {
			if trigger.Type == appconfig.TriggerCron {
				continue
			}
			one := table{"type": string(trigger.Type), "index": trigger.Index}
			if trigger.ComponentName != "" {
				one["component_name"] = trigger.ComponentName
			}
			triggers = append(triggers, one)
		}
	}
	t["triggers"] = triggers
	var steps []table
	for i, step := range a.Steps {
		values := read[step.Name]
		if i == 0 {
			values = merged(read[""], values)
		}
		steps = append(steps, table{"name": step.Name, "inline_contents": script(values)})
	}
	t["steps"] = steps
	return t
}

func merged(a, b map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// script writes outputs to where a step leaves them.
func script(values map[string]any) string {
	text := "#!/bin/sh\n# A stand-in of a rehearsal.\n"
	if len(values) == 0 {
		return text + "exit 0\n"
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // texts only
	}
	quoted := "'" + strings.ReplaceAll(string(raw), "'", `'\''`) + "'"
	return text + "printf '%s\\n' " + quoted + ` > "$NUON_ACTIONS_OUTPUT_FILEPATH"` + "\n"
}

// outputsOf are the outputs of an action that templates read, made up, by step; those
// of no step are below "".
func (s *staging) outputsOf(action string) map[string]map[string]any {
	read := map[string]map[string]any{}
	put := func(step, key string) {
		if read[step] == nil {
			read[step] = map[string]any{}
		}
		read[step][key] = "rehearsal-" + key
	}
	for _, block := range check.Blocks(s.app) {
		for _, value := range block.Templates() {
			refs, _ := value.References() // what does not parse, the sync reports
			for _, ref := range refs {
				if ref.Kind != interpolate.KindAction || ref.Name != action || ref.Root != interpolate.RootTree {
					continue
				}
				path := ref.Path
				at := slices.Index(path, "outputs")
				switch {
				case at < 0 || len(path) < at+2 || path[at+1] == interpolate.Any:
				case path[at+1] == "steps" && len(path) >= at+4 && path[at+3] != interpolate.Any:
					put(path[at+2], path[at+3])
				case path[at+1] != "steps":
					put("", path[at+1])
				}
			}
		}
	}
	return read
}
