package orders

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Roles lists the roles of an app that its customers switch, with their names as the app
// writes them.
func Roles(app *appconfig.App) (list []customerrole.Role) {
	for _, r := range slices.Concat(app.BreakGlass, app.Permissions) {
		if r.Type != appconfig.RoleBreakGlass && r.Type != appconfig.RoleCustom {
			continue
		}
		written := customerrole.Canonical(r.Name)
		list = append(list, customerrole.Role{
			Name: written, Written: written, Kind: customerrole.Kind(r.Type), DisplayName: jobspec.CutText(r.DisplayName, maxText), Description: jobspec.CutText(r.Description, maxText),
		})
	}
	return list
}

// maxText is how much of what the app says of a role its customers see, in bytes.
const maxText = 900
