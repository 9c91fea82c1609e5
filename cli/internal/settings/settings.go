// Package settings reads what people set of an install on the command line.
package settings

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

var known = []string{"approval", "approval-time", "label", "objective"}

// maxHours is how long a change may wait for a decision: a year.
const maxHours = 8760

// Update reads label=KEY=VALUE, label=KEY- (which removes a label),
// approval=prompt or approval=approve-all, approval-time=72h or approval-time=app, and objective=99.9 or objective=none. Labels are those that the install has
// with these changes. It does no I/O.
func Update(labels ctlapi.Labels, typed []string) (ctlapi.InstallUpdate, error) {
	var update ctlapi.InstallUpdate
	for _, setting := range typed {
		name, value, ok := strings.Cut(setting, "=")
		switch {
		case !ok:
			return update, usage.Errorf("%q is not NAME=VALUE; there are label=KEY=VALUE, approval=prompt|approve-all, approval-time=72h and objective=99.9", usage.Shortened(setting))
		case name == "label":
			if update.Labels == nil {
				next := ctlapi.Labels{}
				maps.Copy(next, labels)
				update.Labels = &next
			}
			if err := label(*update.Labels, value); err != nil {
				return update, err
			}
		case name == "approval":
			option := ctlapi.ApprovalOption(strings.ReplaceAll(value, "-", "_"))
			if option != ctlapi.ApprovalOptionPrompt && option != ctlapi.ApprovalOptionApproveAll {
				return update, usage.Errorf("approval is prompt or approve-all, not %q", usage.Shortened(value))
			}
			update.ApprovalOption = &option
		case name == "approval-time":
			hours := 0 // what the app says
			if value != "app" {
				var err error
				if hours, err = wholeHours(value); err != nil {
					return update, err
				}
			}
			update.ApprovalHours = &hours
		case name == "objective":
			percent, err := objective(value)
			if err != nil {
				return update, err
			}
			update.HealthObjective = &percent
		default:
			return update, usage.Errorf("an install has no setting %q%s", usage.Shortened(name), place.Meant(name, known))
		}
	}
	return update, nil
}

// objective reads 99.9, 99.9% or none.
func objective(value string) (float64, error) {
	if value == "none" {
		return 0, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
	if err != nil || !(percent >= 50 && percent <= 99.999) {
		return 0, usage.Errorf("objective is a percentage from 50 to 99.999, such as 99.9, or none, not %q", usage.Shortened(value))
	}
	return percent, nil
}

// wholeHours reads 72h: from one hour to a year.
func wholeHours(value string) (int, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d%time.Hour != 0 || d < time.Hour || d > maxHours*time.Hour {
		return 0, usage.Errorf("approval-time is a number of whole hours from 1h to %dh, such as 72h, not %q", maxHours, usage.Shortened(value))
	}
	return int(d / time.Hour), nil
}

func label(labels ctlapi.Labels, typed string) error {
	key, value, ok := strings.Cut(typed, "=")
	removed, removes := strings.CutSuffix(key, "-")
	switch {
	case ok && key != "":
		labels[key] = value
	case !ok && removes && removed != "":
		delete(labels, removed)
	default:
		return usage.Errorf("label=%s is neither label=KEY=VALUE nor label=KEY-", usage.Shortened(typed))
	}
	return nil
}
