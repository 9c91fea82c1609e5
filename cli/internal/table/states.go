package table

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TerraformState shows what is known of states: of Terraform, Helm, Pulumi and plugins.
func TerraformState(now time.Time) output.View[ctlapi.TerraformState] {
	version := func(of func(ctlapi.TerraformStateVersion) string) func(ctlapi.TerraformState) string {
		return func(s ctlapi.TerraformState) string {
			if s.Current == nil {
				return ""
			}
			return of(*s.Current)
		}
	}
	return output.View[ctlapi.TerraformState]{
		Name: func(s ctlapi.TerraformState) string { return s.Name },
		None: "no states yet",
		Columns: []output.Column[ctlapi.TerraformState]{
			{Head: "NAME", Shrinks: true, Cell: func(s ctlapi.TerraformState) string { return s.Name }},
			{Head: "KIND", Yields: true, Cell: func(s ctlapi.TerraformState) string { return string(s.Kind) }},
			{Head: "SERIAL", Cell: version(func(v ctlapi.TerraformStateVersion) string { return strconv.FormatInt(v.Serial, 10) })},
			{Head: "RESOURCES", Cell: func(s ctlapi.TerraformState) string {
				if s.Counts == nil {
					return ""
				}
				total := 0
				for _, n := range api.Value(s.Counts) {
					total += n
				}
				return strconv.Itoa(total)
			}},
			{Head: "AGE", Cell: version(func(v ctlapi.TerraformStateVersion) string { return age(now, v.WrittenAt) })},
			{Head: "LOCK", Shrinks: true, Cell: lockOf},
			{Head: "SIZE", Wide: true, Cell: version(stateSize)},
			{Head: "CHANGE", Wide: true, Cell: version(func(v ctlapi.TerraformStateVersion) string { return api.Value(v.ChangeID) })},
			{Head: "TOOL VERSION", Wide: true, Cell: func(s ctlapi.TerraformState) string { return api.Value(s.TerraformVersion) }},
			{Head: "SHOWN", Wide: true, Cell: func(s ctlapi.TerraformState) string { return string(api.Value(s.Level)) }},
			{Head: "LINEAGE", Wide: true, Cell: version(func(v ctlapi.TerraformStateVersion) string { return v.Lineage })},
		},
	}
}

func lockOf(s ctlapi.TerraformState) string {
	switch {
	case s.Lock == nil:
		return ""
	case s.Lock.Alive:
		return "job " + s.Lock.JobID
	}
	return "left behind by job " + s.Lock.JobID
}

// stateSize is the size of a sealed state; "" where the runner did not tell it.
func stateSize(v ctlapi.TerraformStateVersion) string {
	n := api.Value(v.Bytes)
	switch {
	case n == 0:
		return ""
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// TerraformStateVersion shows the states that a resource has had.
func TerraformStateVersion(now time.Time) output.View[ctlapi.TerraformStateVersion] {
	return output.View[ctlapi.TerraformStateVersion]{
		Name: func(v ctlapi.TerraformStateVersion) string { return v.ID },
		None: "no states",
		Columns: []output.Column[ctlapi.TerraformStateVersion]{
			{Head: "SERIAL", Cell: func(v ctlapi.TerraformStateVersion) string { return strconv.FormatInt(v.Serial, 10) }},
			{Head: "STATE", Cell: func(v ctlapi.TerraformStateVersion) string { return string(v.Kind) }},
			{Head: "AGE", Cell: func(v ctlapi.TerraformStateVersion) string { return age(now, v.WrittenAt) }},
			{Head: "SIZE", Yields: true, Cell: stateSize},
			{Head: "CHANGE", Shrinks: true, Least: shortID, Cell: func(v ctlapi.TerraformStateVersion) string { return api.Value(v.ChangeID) }},
			{Head: "REASON", Shrinks: true, Cell: func(v ctlapi.TerraformStateVersion) string { return api.Value(v.Reason) }},
			{Head: "ID", Wide: true, Cell: func(v ctlapi.TerraformStateVersion) string { return v.ID }},
			{Head: "JOB", Wide: true, Cell: func(v ctlapi.TerraformStateVersion) string { return v.JobID }},
			{Head: "LINEAGE", Wide: true, Cell: func(v ctlapi.TerraformStateVersion) string { return v.Lineage }},
			{Head: "DIGEST", Wide: true, Cell: func(v ctlapi.TerraformStateVersion) string { return v.Digest }},
		},
	}
}

// TerraformObject shows addresses in a state.
func TerraformObject() output.View[ctlapi.TerraformObject] {
	return output.View[ctlapi.TerraformObject]{
		Name: func(o ctlapi.TerraformObject) string { return o.Address },
		None: "no addresses",
		Columns: []output.Column[ctlapi.TerraformObject]{
			{Head: "ADDRESS", Cell: func(o ctlapi.TerraformObject) string { return o.Address }},
			{Head: "TAINTED", Cell: func(o ctlapi.TerraformObject) string {
				if api.Value(o.Tainted) {
					return "yes"
				}
				return ""
			}},
		},
	}
}
