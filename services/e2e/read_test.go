package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// output reads the outputs of a component as the API shows them.
func (in *install) output(component string) map[string]any {
	in.t.Helper()
	var state struct {
		Tree struct {
			Components map[string]struct {
				Outputs map[string]any `json:"outputs"`
			} `json:"components"`
		} `json:"tree"`
	}
	in.get("/installs/"+in.name+"/state", &state)
	return state.Tree.Components[component].Outputs
}

// builds counts the builds that were not reused.
func (in *install) builds() int {
	in.t.Helper()
	var page ctlapi.BuildPage
	in.get("/builds?limit=200", &page)
	return len(slices.DeleteFunc(page.Items, func(b ctlapi.Build) bool { return b.ReusedFrom != nil }))
}

// changes lists the install's changes in a state, with their jobs.
func (in *install) changes(state string) []ctlapi.Change {
	in.t.Helper()
	var page ctlapi.ChangePage
	in.get("/changes?install="+in.name+"&state="+state+"&limit=200", &page)
	var all []ctlapi.Change
	for _, item := range page.Items {
		var c ctlapi.Change
		in.get("/changes/"+item.ID, &c)
		all = append(all, c)
	}
	return all
}

// streams are the logs of a change's jobs.
func streams(c ctlapi.Change) []string {
	var ids []string
	for _, j := range c.Jobs {
		ids = append(ids, j.StreamIds...)
	}
	return ids
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
