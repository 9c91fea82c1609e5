package timeline

import (
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
)

// Because are the entries that explain why paths of the state tree differ, in the
// order in which they are given.
func Because(entries []Entry, changes []treediff.Change) []Entry {
	var found []Entry
	for _, e := range entries {
		if of := pathOf(e); of != "" && len(under(changes, of)) > 0 {
			found = append(found, e)
		}
	}
	return found
}

// pathOf is where in the tree an entry has its effect; empty for one that has none.
func pathOf(e Entry) string {
	switch e.Kind {
	case "inputs.changed":
		return "inputs"
	case "variables.changed":
		return "app.variables"
	case "change.applied":
		switch {
		case e.Body.Resource == "sandbox" || e.Body.Resource == "":
			return e.Body.Resource
		case strings.ContainsAny(e.Body.Resource, ".[]"):
			return "components[" + e.Body.Resource + "]"
		}
		return "components." + e.Body.Resource
	case "action_run.succeeded", "action_run.failed":
		return "actions.workflows." + e.Body.Action
	case "runner.enrolled", "runner.revoked":
		return "runner"
	case "install.updated":
		return "install"
	}
	return ""
}
