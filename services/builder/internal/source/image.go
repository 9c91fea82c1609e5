package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/reach"
)

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func (s Source) checkImage() error {
	if _, err := oci.ImageRemote(s.Repo); err != nil {
		return err
	}
	if !tagForm.MatchString(s.Ref) {
		return fmt.Errorf("%q cannot be the tag of an image", s.Ref)
	}
	return nil
}

// image finds the digest behind the tag of an image, as a Commit.
func (r *Resolver) image(ctx context.Context, s Source) (Commit, error) {
	remote, err := oci.ImageRemote(s.Repo)
	if err != nil {
		return Commit{}, about(KeyImage, "%s", err)
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	remote.Client = &http.Client{Transport: r.config.Transport}
	found, err := oci.ResolveTag(limited, remote, s.Ref)
	switch {
	case ctx.Err() != nil:
		return Commit{}, ctx.Err()
	case err == nil:
		return Commit{Hash: found.String()}, nil
	case limited.Err() != nil:
		err = limited.Err()
	}
	return Commit{}, explainImage(err, s.Repo+":"+s.Ref, r.config.Timeout)
}

func explainImage(err error, name string, timeout time.Duration) error {
	e := &Error{cause: err, Key: KeyImage}
	say := func(format string, args ...any) error {
		e.text = fmt.Sprintf(format, args...)
		return e
	}
	why, lasting := reach.Why(err)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		e.Key = KeyTag
		return say("there is no image %s", name)
	case oci.Denied(err):
		return say("image %s does not exist or is not public: Berth reads images without credentials", name)
	case errors.Is(err, oci.ErrInsecure):
		return say("the registry of image %s leads to an address that is not https", name)
	case errors.Is(err, context.DeadlineExceeded):
		e.Transient, e.Slow = true, true
		return say("the registry of image %s did not answer within %s", name, timeout)
	case why != "":
		e.Transient, e.Slow = !lasting, reach.Slow(err)
		return say("the registry of image %s cannot be reached: %s", name, why)
	}
	e.Transient = true
	return say("the registry of image %s cannot be reached now", name)
}
