package orders

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customerrole"
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
			Name: written, Written: written, Kind: customerrole.Kind(r.Type), DisplayName: r.DisplayName, Description: r.Description,
		})
	}
	return list
}
