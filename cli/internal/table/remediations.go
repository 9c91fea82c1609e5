package table

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Remediation shows what a runner did by itself about unhealthy checks.
func Remediation(now time.Time) output.View[ctlapi.Remediation] {
	return output.View[ctlapi.Remediation]{
		Name: func(r ctlapi.Remediation) string { return r.ID },
		None: "no remediations; an app names one so: [berth.health_check] remediation = \"ACTION\"",
		Columns: []output.Column[ctlapi.Remediation]{
			{Head: "CHECK", Shrinks: true, Least: 12, Cell: func(r ctlapi.Remediation) string { return r.Check }},
			{Head: "ACTION", Shrinks: true, Least: 10, Cell: func(r ctlapi.Remediation) string { return r.Action }},
			{Head: "STATE", Cell: func(r ctlapi.Remediation) string { return string(r.State) }},
			{Head: "ATTEMPTS", Cell: func(r ctlapi.Remediation) string { return fmt.Sprintf("%d of %d", r.Attempts, r.AttemptsOf) }},
			{Head: "BEGAN", Cell: func(r ctlapi.Remediation) string { return age(now, r.BeganAt) }},
			{Head: "CHANGED", Cell: func(r ctlapi.Remediation) string { return age(now, r.ChangedAt) }},
			{Head: "WHY", Yields: true, Cell: func(r ctlapi.Remediation) string { return api.Value(r.Why) }},
			{Head: "REVERTED", Wide: true, Cell: func(r ctlapi.Remediation) string { return fmt.Sprint(r.Reverted) }},
			{Head: "ENDED", Wide: true, Cell: func(r ctlapi.Remediation) string {
				if r.EndedAt == nil {
					return ""
				}
				return age(now, *r.EndedAt)
			}},
			{Head: "ID", Wide: true, Cell: func(r ctlapi.Remediation) string { return r.ID }},
		},
	}
}
