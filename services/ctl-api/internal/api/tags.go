package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
)

// tagOf is the ETag of values that consist of strings, numbers and booleans.
func tagOf(values ...any) string {
	raw, _ := json.Marshal(values) // these cannot fail
	sum := sha256.Sum256(raw)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// checkTag refuses a change that is based on an older version than the one that
// now reads, under a lock of what is changed. Without If-Match it is not called.
func checkTag(ifMatch *string, what string, now func() (string, error)) error {
	want := optional.Value(ifMatch)
	if want == "" {
		return nil
	}
	tag, err := now()
	if err != nil || want == "*" || want == tag {
		return err
	}
	return fault.With(fault.Newf(fault.ErrPreconditionFailed, "%s has changed since you read it", what),
		fault.Remedy("read it again and repeat the change"))
}
