package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxConflicts is how often an object is compared and written again because
// somebody else wrote to it in between.
const maxConflicts = 3

// OnConflict calls write, and again after a conflict (409), at most three times
// more; again is called before each repetition, and should compare: its error
// ends it.
func OnConflict(write, again func() error) error {
	err := write()
	for range maxConflicts {
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := again(); err != nil {
			return err
		}
		err = write()
	}
	return err
}
