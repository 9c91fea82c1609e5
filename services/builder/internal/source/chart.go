package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/reach"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
)

const (
	// maxChartBytes bounds a packed chart: many times what large ones have.
	maxChartBytes = 32 << 20

	// chartTimeout is for one packed chart.
	chartTimeout = 2 * time.Minute
)

// Keys of the app folder about a chart.
const (
	KeyRepoURL Key = "repo_url"
	KeyChart   Key = "chart"
	KeyVersion Key = "version"
)

var chartForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (s Source) checkChart() error {
	if !chartForm.MatchString(s.Directory) {
		return fmt.Errorf("%q cannot be the name of a chart", s.Directory)
	}
	if _, err := semver.NewConstraint(s.Ref); s.Ref != "" && err != nil {
		return fmt.Errorf("version %q is neither a version nor a range of versions", s.Ref)
	}
	return nil
}

// Pin is the exact chart behind a version or a range, or the exact image behind a
// range.
type Pin struct {
	Version string // of an image its tag
	Digest  string // of the packed chart or the image, "sha256:…"
}

func (p Pin) String() string { return p.Version + "@" + p.Digest }

// ReadPin reads what String writes.
func ReadPin(s string) (Pin, bool) {
	version, digest, _ := strings.Cut(s, "@")
	return Pin{version, digest}, version != "" && digestForm.MatchString(digest)
}

// A chartRepo is a repository that is asked for one chart.
type chartRepo interface {
	// versions are all that it lists.
	versions(ctx context.Context) ([]string, error)
	// find says where a version is: its address and the digest of the packed chart.
	find(ctx context.Context, version string) (address, digest string, err error)
	// open opens the packed chart that find returned.
	open(ctx context.Context, at packedChart) (io.ReadCloser, error)
}

// packedChart is where a packed chart is, and its digest, "" when its repository
// does not say it.
type packedChart struct{ address, digest string }

// chart finds the version and the digest of a chart.
func (r *Resolver) chart(ctx context.Context, s Source) (Commit, error) {
	limited, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	g := &guard{next: r.config.Transport, limit: r.config.MaxBytes}
	repo, err := r.chartRepo(s, g)
	if err != nil {
		return Commit{}, about(KeyRepoURL, "%s", err)
	}
	found, err := findChart(limited, repo, s)
	return found, r.explainChart(outcome{ctx: ctx, limited: limited, guard: g, err: err}, s)
}

func findChart(ctx context.Context, repo chartRepo, s Source) (Commit, error) {
	pin, pinned := ReadPin(s.Ref)
	version := pin.Version
	if !pinned {
		versions, err := repo.versions(ctx)
		if err != nil {
			return Commit{}, err
		}
		if version, pinned = newest(versions, s.Ref); !pinned {
			return Commit{}, about(KeyVersion, "chart %s of %s has no version %s%s", s.Directory, s.Repo, wanted(s.Ref), someOf(versions))
		}
	}
	address, digest, err := repo.find(ctx, version)
	switch {
	case err != nil:
		return Commit{}, err
	case pin.Digest != "" && digest != pin.Digest:
		return Commit{}, refuse("chart %s %s of %s became another one while it was built: it was %s and is %s now; sync again", s.Directory, version, s.Repo, pin.Digest, digest)
	}
	return Commit{URL: address, Hash: Pin{version, digest}.String()}, nil
}

// Download writes the packed chart that Resolve found to a file of the directory
// dest. It has the digest that was resolved. Its errors are as Resolve's.
func (r *Resolver) Download(ctx context.Context, s Source, c Commit, dest string) error {
	pin, ok := ReadPin(c.Hash)
	if !ok {
		return refuse("%q is no resolved chart", c.Hash)
	}
	limited, cancel := context.WithTimeout(ctx, chartTimeout)
	defer cancel()
	g := &guard{next: r.config.Transport, limit: maxChartBytes + 1}
	repo, err := r.chartRepo(s, g)
	if err != nil {
		return about(KeyRepoURL, "%s", err)
	}
	file, err := os.OpenFile(filepath.Join(dest, jobspec.ChartFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	digest, err := copyChart(limited, repo, packedChart{c.URL, pin.Digest}, file)
	closed := file.Close()
	if err == nil && digest != pin.Digest {
		err = refuse("chart %s %s of %s is not what its repository says: the digest of its index is %s, that of the chart %s", s.Directory, pin.Version, s.Repo, pin.Digest, digest)
	}
	if err != nil {
		return r.explainChart(outcome{ctx: ctx, limited: limited, guard: g, err: err, slow: chartTimeout}, s)
	}
	return closed
}

// copyChart writes a packed chart and returns its digest.
func copyChart(ctx context.Context, repo chartRepo, at packedChart, to io.Writer) (string, error) {
	body, err := repo.open(ctx, at)
	if err != nil {
		return "", err
	}
	defer body.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(body, maxChartBytes+1))
	if err == nil && n > maxChartBytes {
		err = errTooLarge
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), err
}

// newest is the version that is meant: the one that is written just so, else the
// newest in the range. The range "" is all but prereleases.
func newest(versions []string, want string) (string, bool) {
	if slices.Contains(versions, want) && want != "" {
		return want, true
	}
	return newestWithin(versions, cmp.Or(want, "*"), semver.NewVersion)
}

// newestWithin is the text of the newest version in a range, of those that parse
// reads.
func newestWithin(texts []string, within string, parse func(string) (*semver.Version, error)) (string, bool) {
	constraint, err := semver.NewConstraint(within)
	if err != nil {
		return "", false
	}
	best, bestVersion := "", (*semver.Version)(nil)
	for _, text := range texts {
		v, err := parse(text)
		if err != nil || !constraint.Check(v) {
			continue
		}
		if bestVersion == nil || v.GreaterThan(bestVersion) || v.Equal(bestVersion) && text > best {
			best, bestVersion = text, v
		}
	}
	return best, best != ""
}

func wanted(ref string) string {
	if ref == "" {
		return "that is no prerelease"
	}
	return fmt.Sprintf("%q", ref)
}

// someOf names the newest versions, since a wrong one is what mostly went wrong.
func someOf(versions []string) string {
	last, ok := newest(versions, ">=0.0.0-0")
	if !ok {
		return ""
	}
	return "; its newest one is " + last
}

// chartRepo is the way to the repository of a chart. What the operator's map sends
// elsewhere is asked there.
func (r *Resolver) chartRepo(s Source, g *guard) (chartRepo, error) {
	address := strings.TrimSuffix(s.Repo, "/")
	if mapped, ok := r.config.Map.find(address); ok {
		address = mapped
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || strings.Contains(u.Path, ".."):
		return nil, errors.New("this is not an address of a chart repository that Berth can use: write an https or an oci URL")
	case u.User != nil:
		return nil, errors.New("the repository's address has a user name or a password in it: remove it from the app folder")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the repository's address %q has a query or a fragment", u.Redacted())
	}
	client := &http.Client{Transport: g}
	key, known := r.config.Keys.Find(address, s.Org)
	switch {
	case u.Scheme == "oci":
		remote, err := oci.RegistryRemote(address, s.Directory)
		if err != nil {
			return nil, fmt.Errorf("%s/%s is not the address of a chart in a registry: %w", address, s.Directory, err)
		}
		if remote.Client = client; known {
			remote.Login = key.Login
		}
		client.Transport = &onlyTo{next: g, plain: remote.PlainHTTP}
		return &registryRepo{remote: remote, name: s.Directory}, nil
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		if _, mapped := r.config.Map.find(strings.TrimSuffix(s.Repo, "/")); !mapped && !r.config.AllowFile {
			return nil, errors.New("file:// sources are not allowed here: set BERTH_ALLOW_FILE_SOURCES=true at the builder if every vendor may read its disk")
		}
		return &indexRepo{base: u, name: s.Directory, get: fileGetter{dir: u.Path}}, nil
	case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && isLoopback(u):
		to := &onlyTo{next: g, plain: u.Scheme == "http", host: u.Host}
		if known {
			to.access = &key
		}
		client.Transport = to
		return &indexRepo{base: u, name: s.Directory, get: webGetter{client: client}, limit: r.config.MaxBytes}, nil
	}
	return nil, fmt.Errorf("charts are not read by %q: use https or oci", u.Scheme)
}

// outcome is how asking a repository ended.
type outcome struct {
	ctx, limited context.Context //nolint:containedctx // of the call that ends here
	guard        *guard
	err          error
	slow         time.Duration // the limit, when it is not that of the Resolver
}

// explainChart says in a vendor's words what went wrong with a chart. What a server
// said is not repeated: it may be anything.
func (r *Resolver) explainChart(o outcome, s Source) error {
	err := o.err
	switch {
	case err == nil:
		return nil
	case o.ctx.Err() != nil:
		return o.ctx.Err()
	case o.limited.Err() != nil:
		err = o.limited.Err()
	case o.guard.reason() != nil:
		err = o.guard.reason()
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	e := &Error{cause: err, Key: KeyRepoURL, CopyWillDo: true}
	say := func(format string, args ...any) error {
		e.text = "chart repository " + s.Repo + " " + fmt.Sprintf(format, args...)
		return e
	}
	broken, answered := errors.AsType[answerError](err)
	why, lasting := reach.Why(err)
	after, limited := oci.RateLimited(err)
	cloud, refused := errors.AsType[*keyring.Error](err)
	switch {
	case refused:
		e.Transient, e.Key, e.CopyWillDo = cloud.Transient, "", true
		return say("needs credentials, but %s", cloud)
	case limited:
		e.Transient = after < soon
		return say("%s", rateLimit(after))
	case errors.Is(err, oci.ErrNotFound), answered && broken == http.StatusNotFound:
		return say("has no chart %s, or is none", s.Directory)
	case oci.Denied(err), answered && (broken == http.StatusUnauthorized || broken == http.StatusForbidden):
		return say("does not give out chart %s without other credentials: it does not exist, is not public, or builder's BERTH_SOURCE_CREDENTIALS has none that work", s.Directory)
	case errors.Is(err, errTooLarge):
		return say("answers with more than is read for one question")
	case errors.Is(err, errRedirect), errors.Is(err, oci.ErrInsecure):
		return say("leads to an address that is not https")
	case errors.Is(err, context.DeadlineExceeded):
		e.Transient, e.Slow = true, true
		limit := r.config.Timeout
		if o.slow != 0 {
			limit = o.slow
		}
		return say("did not answer within %s", limit)
	case answered:
		e.Transient = broken >= http.StatusInternalServerError || broken == http.StatusTooManyRequests
		return say("cannot be read: its server answers %d %s", int(broken), http.StatusText(int(broken)))
	case why != "":
		e.Transient, e.Slow = !lasting, reach.Slow(err)
		return say("cannot be reached: %s", why)
	}
	e.Transient = true
	return say("cannot be reached now")
}
