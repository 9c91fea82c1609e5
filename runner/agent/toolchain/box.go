// Package toolchain finds the Terraform or OpenTofu that a job needs, several versions
// next to each other: the executable that the operator named, a mirror, PATH, what was fetched
// before, and last the vendor's releases.
//
// Nothing that is fetched is trusted for where it came from: an archive, from a site or
// from a directory, is used only when its checksum is in a list that is signed with the
// vendor's key, which is compiled in. What lies unpacked in a directory or on PATH was
// put there by the operator, who may; the digest of the program that a plan was made
// with is part of what is approved, wherever it is from.
//
//	job ──▶ choose(version, programs, rules) ──▶ a program that is there
//	                                       └───▶ a version to fetch ──▶ DIR/terraform/VERSION/terraform
//	                                                           DIR/opentofu/VERSION/tofu
//
// Each tool has a Box of its own; Tools has both, and knows which one a module gets.
package toolchain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/tfprogram"
)

const (
	fetchTimeout  = 3 * time.Minute  // for 30 MB over a slow line
	answerTimeout = 15 * time.Second // to the first byte
)

var (
	// ErrNone says that no program fits and that none may be fetched. The message
	// says what there is.
	ErrNone = errors.New("the tool is missing")

	// ErrGone says that the program that a plan was made with is not on this runner
	// any more.
	ErrGone = errors.New("the program of the plan is gone")
)

// Config says where programs are from. The zero value has none but those on PATH.
type Config struct {
	// Vendor is whose programs they are; the zero value is Terraform's.
	Vendor tfprogram.Vendor
	// Named is the operator's executable, "" for none.
	Named string
	// Mirror is a directory or the https address of a copy of the vendor's site; ""
	// for none. A directory has VERSION/terraform, or archives with their signed lists
	// of checksums as the vendor's site has them.
	Mirror string
	// Downloads: what is nowhere is fetched, from the mirror where that is a site, else
	// from the vendor.
	Downloads bool
	// SameMinor: where an exact version is nowhere, another patch of it will do.
	SameMinor bool
	// SearchPath is PATH.
	SearchPath string
	// Dir is where programs are kept. Nobody but the agent writes there; engines of
	// other users read it.
	Dir string
	// Copy: engines see of this machine what is in Dir and in SearchPath only, so
	// programs of the mirror are copied to Dir.
	Copy bool

	// Site and Key stand in for the vendor's in tests.
	Site, Key string
	Client    *http.Client
}

// Box finds programs. It is safe for concurrent use.
type Box struct {
	cfg     Config
	asked   asked
	digests Digests
	turn    chan struct{} // who holds it writes to Dir
}

// Digests is how the digest of a file is found, "sha256:…".
type Digests interface {
	Of(path string) (string, error)
}

// Client is what downloads: through the proxy of the environment.
func Client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = answerTimeout
	return &http.Client{Transport: t}
}

// New returns a box. It looks at nothing yet.
func New(cfg Config, digests Digests) *Box {
	if cfg.Client == nil {
		cfg.Client = Client()
	}
	if cfg.Vendor.Tool == "" {
		cfg.Vendor = tfprogram.Terraform
	}
	if cfg.Site == "" {
		cfg.Site = cfg.Vendor.Site
	}
	if cfg.mirrorIsSite() {
		cfg.Site = strings.TrimSuffix(cfg.Mirror, "/")
	}
	return &Box{cfg: cfg, digests: digests, turn: make(chan struct{}, 1)}
}

func (c Config) mirrorIsSite() bool {
	return strings.HasPrefix(c.Mirror, "https://") || strings.HasPrefix(c.Mirror, "http://")
}

// For returns the path of the program for a module that asks for a version: an exact
// one, a range, or "" for any. It fetches one where that is needed and allowed. Errors
// are ErrNone, tfprogram.ErrUntrusted, and those of the network.
func (b *Box) For(ctx context.Context, want string) (path string, err error) {
	if want == "" && b.cfg.Named != "" {
		return b.cfg.Named, nil
	}
	have, err := b.programs(ctx)
	if err != nil {
		return "", err
	}
	c, err := choose(want, have, b.rules())
	switch {
	case err != nil:
		return "", err
	case c.program == nil:
		return b.fetch(ctx, c.fetch, b.site())
	}
	return b.bring(ctx, *c.program)
}

func (b *Box) rules() rules {
	return rules{vendor: b.cfg.Vendor, sameMinor: b.cfg.SameMinor, downloads: b.cfg.Downloads}
}

func (b *Box) site() site {
	return site{vendor: b.cfg.Vendor, base: b.cfg.Site, client: b.cfg.Client}
}

func (b *Box) folder() folder { return folder{vendor: b.cfg.Vendor, dir: b.cfg.Mirror} }

// VersionOf is the version that an executable tells, which asks it once as long as it
// does not change; "" when it tells none.
func (b *Box) VersionOf(ctx context.Context, path string) string {
	if b == nil {
		return ""
	}
	v, err := b.asked.version(ctx, path)
	if err != nil {
		return ""
	}
	return v.String()
}

// bring makes a program one that engines can run.
func (b *Box) bring(ctx context.Context, p program) (string, error) {
	switch {
	case p.path == "":
		return b.fetch(ctx, p.version.Original(), b.folder())
	case p.from == mirror && b.cfg.Copy:
		return b.copied(ctx, p.path)
	}
	return p.path, nil
}

// Pinned returns the path of a program of this version with this digest, as a plan
// named them. It fetches one where that is needed and allowed. The error is ErrGone
// when there is none.
func (b *Box) Pinned(ctx context.Context, version, digest string) (string, error) {
	v, err := semver.StrictNewVersion(version)
	if err != nil {
		return "", fmt.Errorf("%w: its version is %q", ErrGone, version)
	}
	have, err := b.programs(ctx)
	if err != nil {
		return "", err
	}
	if b.cfg.Named != "" { // it may tell no version
		have = append(have, program{version: v, from: named, path: b.cfg.Named})
	}
	var other []string
	for _, p := range have {
		// Those of the operator count whatever they are called: an engine says the version.
		if p.path == "" || !p.version.Equal(v) && p.from != named && p.from != onPath {
			continue
		}
		got, err := b.digests.Of(p.path)
		if err == nil && got == digest {
			return b.bring(ctx, p)
		}
		if err == nil {
			other = append(other, fmt.Sprintf("%s is %s", p.path, got))
		}
	}
	path, err := b.fetchPinned(ctx, v, have)
	if err == nil && path != "" {
		got, err := b.digests.Of(path)
		if err == nil && got == digest {
			return path, nil
		}
		other = append(other, fmt.Sprintf("%s is %s", path, got))
	}
	text := fmt.Sprintf("%s %s with digest %s is nowhere on this runner", b.cfg.Vendor.Tool, version, digest)
	if len(other) > 0 {
		text += ": " + strings.Join(other, ", ")
	}
	if err != nil {
		text += ": " + err.Error()
	}
	return "", fmt.Errorf("%w: %s", ErrGone, text)
}

// fetchPinned fetches a version again, "" where there is nothing to fetch it from.
func (b *Box) fetchPinned(ctx context.Context, v *semver.Version, have []program) (string, error) {
	for _, p := range have {
		if p.path == "" && p.version.Equal(v) {
			return b.bring(ctx, p)
		}
	}
	if !b.cfg.Downloads {
		return "", nil
	}
	return b.fetch(ctx, v.Original(), b.site())
}

// fetch returns the program of a version in Dir, which it gets there from a source
// unless it is there.
func (b *Box) fetch(ctx context.Context, version string, from tfprogram.Source) (string, error) {
	target := b.keptAt(version)
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	end, err := b.write(ctx, filepath.Dir(target))
	if err != nil {
		return "", err
	}
	defer end()
	if isProgram(target) {
		return target, nil
	}
	if err := (tfprogram.Release{Of: b.cfg.Vendor, From: from, Version: version, Key: b.cfg.Key}).Fetch(ctx, target); err != nil {
		return "", fmt.Errorf("%s %s could not be fetched: %w", b.cfg.Vendor.Tool, version, err)
	}
	return target, nil
}

// copied returns the copy in Dir of a program. It is named by its digest, so that a
// plan's own stays when the mirror has another build of its version.
func (b *Box) copied(ctx context.Context, path string) (string, error) {
	digest, err := b.digests.Of(path)
	if err != nil {
		return "", err
	}
	target := filepath.Join(b.cfg.Dir, "copies", strings.TrimPrefix(digest, "sha256:"), b.cfg.Vendor.Program)
	end, err := b.write(ctx, filepath.Dir(target))
	if err != nil {
		return "", err
	}
	defer end()
	if got, err := b.digests.Of(target); err == nil && got == digest {
		return target, nil
	}
	data, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = data.Close() }()
	if err := durable.Replace(target, 0o755, copyOf(data)); err != nil {
		return "", err
	}
	if got, err := b.digests.Of(target); err != nil || got != digest {
		return "", errors.Join(err, fmt.Errorf("%s changes while it is copied", path))
	}
	return target, nil
}

// write waits for its turn to write to a directory of Dir, makes it, and removes what a
// killed agent left half done there.
func (b *Box) write(ctx context.Context, dir string) (end func(), err error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	end = func() { <-b.turn }
	if err := os.MkdirAll(dir, 0o755); err != nil { // engines of other users read it
		end()
		return nil, err
	}
	half, _ := filepath.Glob(filepath.Join(dir, ".*"))
	for _, path := range half {
		_ = os.Remove(path)
	}
	return end, nil
}

func (b *Box) keptAt(version string) string {
	return filepath.Join(b.cfg.Dir, b.cfg.Vendor.Tool, version, b.cfg.Vendor.Program)
}
