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

// checkTag refuses a change that is based on an older version than now. The
// caller holds a lock on what it changes.
func checkTag(ifMatch *string, now, what string) error {
	if want := optional.Value(ifMatch); want == "" || want == "*" || want == now {
		return nil
	}
	return fault.With(fault.Newf(fault.ErrConflict, "%s has changed since you read it", what), fault.Code("precondition_failed"),
		fault.Remedy("read it again and repeat the change"))
}
