//go:build !linux

package fleet

import (
	"context"
	"errors"
)

// adopt cannot find the runner here; the keeper looks again after a while.
func adopt(context.Context, dataDir) error {
	return errors.New("a runner that an earlier builder started is still active")
}
