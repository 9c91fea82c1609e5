package helm

import (
	"context"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// recordTimeout bounds writing one revision, also one that says how a stopped
// action ended.
const recordTimeout = 20 * time.Second

// fenced is Helm's storage of releases, written only while the claim on the
// component is ours.
type fenced struct {
	driver.Driver
	// held checks the claim.
	held func() error
}

// fence lets the driver write only under the inventory's claim. It asks also
// when the job is to stop: how it ended is still recorded.
func fence(ctx context.Context, inner driver.Driver, inventory *kube.Inventory) fenced {
	return fenced{Driver: inner, held: func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		return inventory.Held(ctx)
	}}
}

func (f fenced) Create(key string, r *release.Release) error {
	if err := f.held(); err != nil {
		return err
	}
	return f.Driver.Create(key, record(r))
}

func (f fenced) Update(key string, r *release.Release) error {
	if err := f.held(); err != nil {
		return err
	}
	return f.Driver.Update(key, record(r))
}

func (f fenced) Delete(key string) (*release.Release, error) {
	if err := f.held(); err != nil {
		return nil, err
	}
	return f.Driver.Delete(key)
}
