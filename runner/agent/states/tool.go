package states

import (
	"github.com/berth-dev/berth/pkg/jobspec"
)

// WrittenWith is the tool that wrote a state, "" where that is not known: it was written
// on another machine, by an older runner, or by hand.
func (s Store) WrittenWith(resource, lineage string, serial int64) string {
	all, err := s.history(s.of(resource))
	if err != nil {
		return ""
	}
	for _, k := range all {
		if k.Lineage == lineage && k.Serial == serial && k.Tool != "" {
			return k.Tool
		}
	}
	return ""
}

// ToolChange is what stands above a plan whose tool is not the one that wrote the state
// that it begins with, "" where it is. before is "" where that is not known; Terraform
// is what is expected then.
func ToolChange(before string, now jobspec.Tool) string {
	titles := map[string]string{jobspec.ToolTerraform: "Terraform", jobspec.ToolOpenTofu: "OpenTofu"}
	title, wrote := titles[now.Name], titles[before]
	switch {
	case title == "" || before == now.Name || before == "" && now.Name == jobspec.ToolTerraform:
		return ""
	case wrote == "":
		wrote = "This runner does not know which tool wrote the state; "
	default:
		wrote += " wrote the state; "
	}
	return "Tool changes: " + wrote + "this plan is of " + title + " " + now.Version +
		". The state keeps its lineage and its objects, and the next apply writes it with " + title + ".\n\n"
}
