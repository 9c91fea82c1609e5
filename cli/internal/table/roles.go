package table

import (
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// InstallRole shows the roles that the customer of an install switches.
func InstallRole(now time.Time) output.View[ctlapi.InstallRole] {
	return output.View[ctlapi.InstallRole]{
		Name: func(r ctlapi.InstallRole) string { return r.Name },
		None: "the release that the install's runner accepted has no role that its customer could switch on",
		Columns: []output.Column[ctlapi.InstallRole]{
			{Head: "NAME", Shrinks: true, Cell: func(r ctlapi.InstallRole) string { return r.Name }},
			{Head: "STATE", Cell: roleState},
			{Head: "SINCE", Cell: func(r ctlapi.InstallRole) string {
				if r.Since == nil {
					return ""
				}
				return age(now, *r.Since)
			}},
			{Head: "UNTIL", Cell: func(r ctlapi.InstallRole) string {
				if r.Until == nil {
					return ""
				}
				return r.Until.UTC().Format(time.RFC3339)
			}},
			{Head: "BY", Cell: func(r ctlapi.InstallRole) string { return r.SwitchedBy }},
			{Head: "ACTIONS", Shrinks: true, Cell: func(r ctlapi.InstallRole) string { return strings.Join(r.Actions, ", ") }},
			{Head: "KIND", Wide: true, Cell: func(r ctlapi.InstallRole) string { return string(r.Kind) }},
			{Head: "REASON", Wide: true, Shrinks: true, Cell: func(r ctlapi.InstallRole) string { return r.Reason }},
			{Head: "WRITTEN", Wide: true, Cell: func(r ctlapi.InstallRole) string { return r.Written }},
			{Head: "DESCRIPTION", Wide: true, Cell: func(r ctlapi.InstallRole) string { return r.Description }},
		},
	}
}

func roleState(r ctlapi.InstallRole) string {
	switch {
	case r.On:
		return "on"
	case !r.Known:
		return "off, name not known"
	}
	return "off"
}
