package table

import (
	"time"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Freeze shows freezes.
func Freeze(now time.Time) output.View[ctlapi.Freeze] {
	return output.View[ctlapi.Freeze]{
		Name: func(f ctlapi.Freeze) string { return f.ID },
		None: "no freezes: add one with berth freezes add",
		Columns: []output.Column[ctlapi.Freeze]{
			{Head: "FREEZE", Cell: func(f ctlapi.Freeze) string { return f.ID }},
			{Head: "OF", Cell: func(f ctlapi.Freeze) string { return string(f.Scope) }},
			{Head: "WHEN", Shrinks: true, Cell: func(f ctlapi.Freeze) string { return f.When }},
			{Head: "NOW", Cell: func(f ctlapi.Freeze) string {
				if !f.InForce || f.Until == nil {
					return ""
				}
				return "until " + f.Until.UTC().Format(time.RFC3339)
			}},
			{Head: "REASON", Shrinks: true, Cell: func(f ctlapi.Freeze) string { return f.Reason }},
			{Head: "BY", Wide: true, Cell: func(f ctlapi.Freeze) string { return f.CreatedBy }},
			{Head: "AGE", Wide: true, Cell: func(f ctlapi.Freeze) string { return age(now, f.CreatedAt) }},
		},
	}
}

// DecidedChange shows what became of changes that were answered together.
func DecidedChange() output.View[ctlapi.DecidedChange] {
	return output.View[ctlapi.DecidedChange]{
		Name: func(d ctlapi.DecidedChange) string { return d.ChangeID },
		Columns: []output.Column[ctlapi.DecidedChange]{
			{Head: "CHANGE", Cell: func(d ctlapi.DecidedChange) string { return d.ChangeID }},
			{Head: "OUTCOME", Cell: func(d ctlapi.DecidedChange) string { return string(d.Outcome) }},
			{Head: "WHY", Shrinks: true, Cell: func(d ctlapi.DecidedChange) string {
				if d.Outcome == ctlapi.DecidedChangeOutcomeCounted && d.Approvals != nil {
					return d.Approvals.Summary
				}
				return d.Detail
			}},
			{Head: "REMEDY", Wide: true, Cell: func(d ctlapi.DecidedChange) string { return d.Remedy }},
		},
	}
}
