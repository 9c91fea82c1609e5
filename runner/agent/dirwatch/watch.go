// Package dirwatch follows a directory that another process may change.
package dirwatch

import (
	"context"
	"reflect"
)

// Teller tells somebody what a directory says.
type Teller[T any] struct {
	Dir string
	// Read reads what there is to tell; ok is false for nothing.
	Read func() (now T, ok bool, err error)
	// Put tells it.
	Put func(context.Context, T) error
	// Failed hears of an error of either; the next change of the directory tries again.
	Failed func(error)
}

// Tell tells it at once, and again each time that it changes, until ctx ends.
func (t Teller[T]) Tell(ctx context.Context) error {
	changed, end, err := Watch(t.Dir)
	if err != nil {
		return err
	}
	defer end()
	var told *T
	for {
		now, ok, err := t.Read()
		if err == nil && ok && (told == nil || !reflect.DeepEqual(*told, now)) {
			if err = t.Put(ctx, now); err == nil {
				told = &now
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.Failed(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// Watch says on a channel when something in dir was written, replaced or removed: once for any
// number of changes that nobody has heard of yet. The function ends it.
func Watch(dir string) (<-chan struct{}, func(), error) {
	h, err := shared()
	if err != nil {
		return nil, nil, err
	}
	f, end, err := h.follow(dir)
	if err != nil {
		return nil, nil, err
	}
	return f.changed, end, nil
}
