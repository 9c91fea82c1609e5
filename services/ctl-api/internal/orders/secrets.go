package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/jobspec"
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

// SecretsFile is where copies are declared, for errors.
const SecretsFile = "secrets.toml"

// SecretCopies is what an app copies of the customer's secrets into the install's cluster,
// one item per key of a Secret, in the order of the app.
func SecretCopies(app *appconfig.App) (copies []jobspec.SecretCopy) {
	for i := range app.Secrets {
		s := &app.Secrets[i]
		for _, t := range s.Copies() {
			for _, namespace := range t.Namespaces {
				copies = append(copies, jobspec.SecretCopy{Secret: s.Name, Format: s.Format, Namespace: namespace, Name: t.Name, Key: t.Key})
			}
		}
	}
	return copies
}
