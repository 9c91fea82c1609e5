package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customersecret"
)

// Secrets is what an app says of the secrets that a customer keeps.
func Secrets(app *appconfig.App) []customersecret.Declaration {
	var list []customersecret.Declaration
	for _, s := range app.Secrets {
		if s.DisplayName != "" {
			s.Description = s.DisplayName + ": " + s.Description
		}
		list = append(list, customersecret.Declaration{
			Name: s.Name, Description: s.Description, Required: s.Required, AutoGenerate: s.AutoGenerate, Default: s.Default,
			Format: s.Format, UserConfigurable: s.UserConfigurable,
		})
	}
	return list
}
