package secretstore

import (
	"context"
	"reflect"

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
	changed, end, err := dirwatch.Watch(s.Dir)
	if err != nil {
		return err
	}
	defer end()
	var told []customersecret.Version
	for {
		list, err := s.List()
		if err == nil && !reflect.DeepEqual(told, list) {
			if err = put(ctx, list); err == nil {
				told = list
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}
