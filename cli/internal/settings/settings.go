// Package settings reads what people set of an install on the command line.
package settings

import (
	"maps"
	"strings"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

var known = []string{"approval", "label"}

// Update reads label=KEY=VALUE, label=KEY- (which removes a label) and
// approval=prompt or approval=approve-all. Labels are those that the install has
// with these changes. It does no I/O.
func Update(labels ctlapi.Labels, typed []string) (ctlapi.InstallUpdate, error) {
	var update ctlapi.InstallUpdate
	for _, setting := range typed {
		name, value, ok := strings.Cut(setting, "=")
		switch {
		case !ok:
			return update, usage.Errorf("%q is not NAME=VALUE; there are label=KEY=VALUE and approval=prompt|approve-all", usage.Shortened(setting))
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
		default:
			return update, usage.Errorf("an install has no setting %q%s", usage.Shortened(name), place.Meant(name, known))
		}
	}
	return update, nil
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
