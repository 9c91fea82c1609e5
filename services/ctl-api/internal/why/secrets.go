package why

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
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

// Copies are those of secrets in the install's cluster, as the last sync left them.
func Copies(resources []ctldb.Resource) (list []jobspec.Copied, err error) {
	for _, r := range resources {
		if r.Kind != model.KindSecrets || r.LiveReleaseID == nil {
			continue
		}
		var outputs jobspec.Outputs
		if err := json.Unmarshal(r.Outputs, &outputs); err != nil {
			return nil, fmt.Errorf("read outputs of %s: %w", r.Name, err)
		}
		if copies, there := outputs[jobspec.CopiesOutput]; there {
			if err := json.Unmarshal(copies.Value, &list); err != nil {
				return nil, fmt.Errorf("read copies of secrets: %w", err)
			}
		}
	}
	return list, nil
}

// Behind says whether a copy has another value than the secret has now.
func Behind(c jobspec.Copied, secret ctldb.InstallSecret) bool {
	return !secret.Present || int(secret.Version) != c.Version
}

// copyBehind explains the copies of a secret that have an earlier value, nil when none has.
func copyBehind(install ctldb.Install, secret ctldb.InstallSecret, copies []jobspec.Copied) *Reason {
	for _, c := range copies {
		if c.Secret != secret.Name || !Behind(c, secret) {
			continue
		}
		now := fmt.Sprintf("rotated to version %d", secret.Version)
		if !secret.Present {
			now = "its value was taken away"
		}
		return &Reason{
			What: "secret " + secret.Name, ID: install.ID, Code: CodeRotated, Who: Operator, On: "operator", WokenBy: WakeRequest,
			Reason:  fmt.Sprintf("%s; its copy in the cluster (%s/%s, key %s) still has version %d", now, c.Namespace, c.Name, c.Key, c.Version),
			Unblock: "berth installs sync-secrets " + install.Name,
		}
	}
	return nil
}

// SecretsInUse is which values of secrets are where.
type SecretsInUse struct {
	Uses   []SecretUse
	Copies []jobspec.Copied
}

// Rotated explains which live resources and copies still have an earlier value of a secret.
func Rotated(install ctldb.Install, secrets []ctldb.InstallSecret, in SecretsInUse) (out []Reason) {
	for _, secret := range secrets {
		if behind := copyBehind(install, secret, in.Copies); behind != nil {
			out = append(out, *behind)
		}
		for _, use := range in.Uses {
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
