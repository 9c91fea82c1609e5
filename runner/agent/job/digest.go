package job

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// showsValues tells whether what a job finds shows values: a plan's, a look for drift's.
func showsValues(spec jobspec.Spec) bool {
	return spec.Resource != nil && (spec.Operation == jobspec.OperationPlan || spec.Operation == jobspec.OperationDrift)
}

// digestKey is the key of the digests of a resource's sensitive values: made of the
// install's salt, which moves along when another machine takes over, so that a value keeps
// its digest.
func digestKey(salt []byte, resource jobspec.Resource) jobspec.DigestKey {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte("berth digests of sensitive values of " + resource.ID))
	return mac.Sum(nil)
}
