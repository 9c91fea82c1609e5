package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/reach"
)

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func (s Source) checkImage() error {
	if _, err := oci.ImageRemote(s.Repo); err != nil {
		return err
	}
	if s.Range {
		if _, err := semver.NewConstraint(s.Ref); err != nil {
			return fmt.Errorf("update_policy %q is not a range of versions", s.Ref)
		}
		return nil
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
	found, err := findImage(limited, remote, s)
	switch {
	case ctx.Err() != nil:
		return Commit{}, ctx.Err()
	case err == nil:
		return Commit{Hash: found}, nil
	case limited.Err() != nil:
		err = limited.Err()
	}
	return Commit{}, explainImage(err, s, r.config.Timeout)
}

// findImage is the digest behind a tag, or the Pin of the newest tag in a range.
func findImage(ctx context.Context, remote oci.Remote, s Source) (string, error) {
	if !s.Range {
		found, err := oci.ResolveTag(ctx, remote, s.Ref)
		return found.String(), err
	}
	tags, err := oci.Tags(ctx, remote, maxTags)
	if err != nil {
		return "", err
	}
	tag, ok := newestTag(tags, s.Ref)
	if !ok {
		hint := ""
		if newest, ok := newestTag(tags, ">=0.0.0-0"); ok {
			hint = "; its newest one is " + newest
		}
		return "", about(KeyPolicy, "image %s has no tag that is a version within %q%s", s.Repo, s.Ref, hint)
	}
	found, err := oci.ResolveTag(ctx, remote, tag)
	return Pin{tag, found.String()}.String(), err
}

// newestTag is the tag of the newest version in a range. Tags that are no whole
// version, such as "1.4", are names that move, and do not count.
func newestTag(tags []string, within string) (string, bool) {
	return newestWithin(tags, within, func(tag string) (*semver.Version, error) {
		return semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	})
}

func explainImage(err error, s Source, timeout time.Duration) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	e, name := &Error{cause: err, Key: KeyImage}, s.Repo
	if !s.Range {
		name += ":" + s.Ref
	}
	say := func(format string, args ...any) error {
		e.text = fmt.Sprintf(format, args...)
		return e
	}
	why, lasting := reach.Why(err)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		if !s.Range {
			e.Key = KeyTag
		}
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
