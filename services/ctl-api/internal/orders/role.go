package orders

import (
	"slices"
	"strings"

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
			Name: written, Written: written, Kind: customerrole.Kind(r.Type), DisplayName: short(r.DisplayName), Description: short(r.Description),
		})
	}
	return list
}

// maxText is how much of what the app says of a role its customers see, in bytes.
const maxText = 900

func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
