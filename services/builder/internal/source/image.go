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
	"github.com/berth-dev/berth/services/builder/internal/keyring"
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
	remote, _, err := r.Image(s)
	if err != nil {
		return Commit{}, err
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	found, err := findImage(limited, remote, s)
	switch {
	case ctx.Err() != nil:
		return Commit{}, ctx.Err()
	case err == nil:
		return Commit{Hash: found}, nil
	case limited.Err() != nil && !errors.As(err, new(*keyring.Error)):
		err = limited.Err()
	}
	return Commit{}, r.explainImage(err, s)
}

// Image is the way to the repository of an image. private says that builder has a
// key for it, which nobody else is shown: builder itself copies the image.
func (r *Resolver) Image(s Source) (remote oci.Remote, private bool, _ error) {
	remote, err := oci.ImageRemote(s.Repo)
	if err != nil {
		return remote, false, about(s.key(), "%s", err)
	}
	remote.Client = &http.Client{Transport: r.config.Transport}
	key, known := r.key(s, remote)
	switch {
	case s.ECR != nil && (!known || !key.ForECR()):
		return remote, false, needsKey("image %s is in a registry of AWS, for which builder's BERTH_SOURCE_CREDENTIALS has no entry with the helper aws_ecr that org %s may use", s.Repo, s.Org)
	case !known:
		return remote, false, nil
	case s.ECR != nil:
		key = key.With(*s.ECR)
	}
	remote.Login = key.Login
	return remote, true, nil
}

func (r *Resolver) key(s Source, remote oci.Remote) (keyring.Key, bool) {
	return r.config.Keys.Find("oci://"+remote.String(), s.Org)
}

// needsKey is an error that the operator of builder has to do something about.
func needsKey(format string, args ...any) *Error {
	e := refuse(format, args...)
	e.Operator = true
	return e
}

// ExplainCopy says in a vendor's words why an image could not be copied.
func (r *Resolver) ExplainCopy(err error, s Source) error { return r.explainImage(err, s) }

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

// soon is what a build waits for by trying again.
const soon = 15 * time.Second

func rateLimit(after time.Duration) string {
	if after == 0 {
		return "allows no more requests now; sync again later"
	}
	return fmt.Sprintf("allows no more requests for %s; sync again then", after)
}

func (r *Resolver) explainImage(err error, s Source) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	e, name := &Error{cause: err, Key: s.key()}, s.what()+" "+s.Repo
	if !s.Range {
		name += s.at()
	}
	say := func(format string, args ...any) error {
		e.text = fmt.Sprintf(format, args...)
		return e
	}
	why, lasting := reach.Why(err)
	after, limited := oci.RateLimited(err)
	cloud, refused := errors.AsType[*keyring.Error](err)
	switch {
	case refused:
		e.Transient, e.Operator = cloud.Transient, true
		return say("%s needs credentials, but %s", name, cloud)
	case limited:
		e.Transient = after < soon
		return say("the registry of %s %s", name, rateLimit(after))
	case errors.Is(err, oci.ErrNotFound):
		if !s.Range && s.Kind == KindImage {
			e.Key = KeyTag
		}
		return say("there is no %s", name)
	case oci.Denied(err):
		return r.explainDenied(e, s, name)
	case errors.Is(err, oci.ErrInsecure):
		return say("the registry of %s leads to an address that is not https", name)
	case errors.Is(err, context.DeadlineExceeded):
		e.Transient, e.Slow = true, true
		return say("the registry of %s did not answer within %s", name, r.config.Timeout)
	case reach.Untrusted(err):
		e.Operator = true
		return say("the registry of %s cannot be reached: %s; add its CA to the file of builder's SSL_CERT_FILE", name, why)
	case why != "":
		e.Transient, e.Slow = !lasting, reach.Slow(err)
		return say("the registry of %s cannot be reached: %s", name, why)
	}
	e.Transient = true
	return say("the registry of %s cannot be reached now", name)
}

// explainDenied tells a missing entry from one that does not work any more.
func (r *Resolver) explainDenied(e *Error, s Source, name string) error {
	remote, err := oci.ImageRemote(s.Repo)
	if err != nil {
		return err
	}
	key, known := r.key(s, remote)
	switch ended, until := key.Ended(); {
	case !known:
		e.text = fmt.Sprintf("%s does not exist or is not public, and builder's BERTH_SOURCE_CREDENTIALS has no entry for it", name)
	case ended:
		e.Operator = true
		e.text = fmt.Sprintf("%s: the token of entry %q of builder's BERTH_SOURCE_CREDENTIALS expired at %s", name, key.Name(), until.UTC().Format(time.RFC3339))
	default:
		e.Operator = true
		e.text = fmt.Sprintf("%s does not exist, or entry %q of builder's BERTH_SOURCE_CREDENTIALS does not open it: the registry refuses these credentials", name, key.Name())
	}
	return e
}
