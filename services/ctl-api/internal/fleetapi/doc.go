// Package fleetapi answers the routes that look at, or act on, many things at
// once: filters of installs, resources across installs, bulk operations, the jobs
// of a runner, and its versions; and graphs and plans as data for a dashboard. It is mounted by
// package api.
package fleetapi

import (
	"context"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
)

// Fleet are the routes. Read and Write are as in package eventapi.
type Fleet struct {
	Read  func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	Bulk  *bulk.Office
	// RegistryURL is where versions of the runner are pushed.
	RegistryURL string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (h *Fleet) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

// kindSandbox is written as resources have it.
const kindSandbox = string(model.KindSandbox)
