package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Missing are the secrets that need a value and have none, by name.
func Missing(rows []ctldb.InstallSecret) (names []string) {
	for _, row := range rows {
		if row.Needed && !row.Present {
			names = append(names, row.Name)
		}
	}
	return names
}

// missingSecrets says which secrets a step waits for, and what sets the first.
func (in Input) missingSecrets() (reason, unblock string) {
	switch len(in.MissingSecrets) {
	case 0:
		return "a secret had no value; it is about to be looked at again", ""
	case 1:
		reason = fmt.Sprintf("secret %s has no value yet", in.MissingSecrets[0])
	default:
		reason = fmt.Sprintf("secrets %s have no values yet", strings.Join(in.MissingSecrets, ", "))
	}
	return reason, "the customer runs, on the runner's machine: berth-runner secrets set " + in.MissingSecrets[0]
}

// SecretUse is what a live resource has of a secret that its templates read.
type SecretUse struct {
	Resource, Secret string
	Version          int32
}

// Uses keeps those reads of state trees that templates make: reads is by the resource's
// name, "sandbox" for the sandbox.
func Uses(rows []ctldb.SecretVersionsReadRow, reads map[string][]string) (uses []SecretUse) {
	for _, row := range rows {
		if slices.Contains(reads[row.Resource], row.Secret) {
			uses = append(uses, SecretUse{Resource: row.Resource, Secret: row.Secret, Version: row.Version})
		}
	}
	return uses
}

// Rotated explains which live resources still have an earlier value of a secret.
func Rotated(install ctldb.Install, secrets []ctldb.InstallSecret, uses []SecretUse) (out []Reason) {
	for _, secret := range secrets {
		for _, use := range uses {
			if use.Secret == secret.Name && secret.Present && use.Version != secret.Version {
				out = append(out, Reason{
					What: "secret " + secret.Name, ID: install.ID, Code: CodeRotated, Who: Operator, On: "operator", WokenBy: WakeRequest,
					Reason:  fmt.Sprintf("rotated to version %d; %s still uses version %d", secret.Version, use.Resource, use.Version),
					Unblock: fmt.Sprintf("berth deploy %s %s", install.Name, use.Resource),
				})
			}
		}
	}
	return out
}
