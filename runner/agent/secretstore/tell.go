package secretstore

import (
	"context"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/runner/agent/dirwatch"
)

// Told sends the versions that there are to the control plane.
type Told func(context.Context, []customersecret.Version) error

// Tell tells the control plane which versions there are, at once and each time that they
// change, until ctx ends. An error of put goes to failed; the next change sends the whole
// list again. A runner that never had a secret says nothing.
func (s Store) Tell(ctx context.Context, put Told, failed func(error)) error {
	if err := s.locked(func() error { return nil }); err != nil { // the directory is there
		return err
	}
	said := false
	return dirwatch.Teller[[]customersecret.Version]{
		Dir: s.Dir,
		Read: func() (list []customersecret.Version, ok bool, err error) {
			list, err = s.List()
			return list, list != nil || said, err
		},
		Put: func(ctx context.Context, list []customersecret.Version) error {
			err := put(ctx, list)
			said = said || err == nil
			return err
		},
		Failed: failed,
	}.Tell(ctx)
}
