package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/berth-dev/berth/pkg/oci"
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
		return Commit{}, refuse("%s", err)
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
	}
	name := s.Repo + ":" + s.Ref
	switch {
	case limited.Err() != nil:
		return Commit{}, &Error{text: fmt.Sprintf("the registry of image %s did not answer within %s", name, r.config.Timeout), cause: err, Transient: true}
	case errors.Is(err, oci.ErrNotFound):
		return Commit{}, &Error{text: fmt.Sprintf("there is no image %s: check image_url and tag", name), cause: err}
	case oci.Denied(err):
		return Commit{}, &Error{text: fmt.Sprintf("image %s does not exist or is not public: Berth reads images without credentials", name), cause: err}
	case errors.Is(err, oci.ErrInsecure):
		return Commit{}, &Error{text: fmt.Sprintf("the registry of image %s leads to an address that is not https", name), cause: err}
	}
	return Commit{}, &Error{text: fmt.Sprintf("the registry of image %s cannot be reached now", name), cause: err, Transient: true}
}
