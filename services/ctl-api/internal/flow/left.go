package flow

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
)

// Apply is an apply that was ordered of a resource which stands on no release:
// since then none of its deploys has succeeded, and no teardown.
type Apply struct {
	State     model.ChangeState // of its change
	ReleaseID string            // that the change is of
}

// Left says with which release a resource has to be removed that stands on none:
// that of its last apply which may have left something behind. Only a runner that
// says it did nothing leaves nothing. Empty when there is none; applies are the
// oldest first.
func Left(applies []Apply) string {
	for _, a := range slices.Backward(applies) {
		if a.State != model.ChangeStale && a.State != model.ChangeRefused {
			return a.ReleaseID
		}
	}
	return ""
}
