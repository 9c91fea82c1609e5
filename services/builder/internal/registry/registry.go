// Package registry is the OCI registry of the builder: one for all orgs, with
// a wall between them.
//
//	request ─▶ route ─▶ authenticate ─▶ authorise ─▶ limit ─▶ referrers ─▶ distribution ─▶ files or a bucket
//
// A repository is "<org_id>/<anything>". A client that asks for another org's
// gets "does not exist", whether it does or not. An [Authenticator] finds who a
// token belongs to; its owner decides how to make and store tokens.
//
// Storage and the distribution API are distribution/v3's. This package adds
// what it lacks: access by token, the referrers API, a size limit for
// uploads, and silence in the log. Which artifacts are kept is decided by the
// builder.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/distribution/distribution/v3/registry/storage/driver"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/pkg/oci"
)

// DefaultGrace is for a client that is slow to begin.
const DefaultGrace = 10 * time.Second

const (
	// blobRate and manifestRate, in bytes per second, are the least of a body. A
	// blob goes to the disk as it comes, so it may come slowly.
	blobRate     = 8 << 10
	manifestRate = 160 << 10

	maxOtherBytes = 4 << 10 // of requests that need no body
)

// DefaultMaxBlobBytes is large enough for images with model weights.
const DefaultMaxBlobBytes = 16 << 30

// Config of a registry. Auth and Secret are required, and either Dir, or S3 and
// Locks.
type Config struct {
	// Dir holds the contents; made when missing.
	Dir string
	// S3 holds them instead.
	S3 *S3
	// Locks are those of all replicas that share the bucket. Replicas that share
	// Dir have theirs there.
	Locks Locker
	// Auth decides who asks.
	Auth Authenticator
	// Secret signs the state of uploads that clients hold. Replicas that share
	// the contents share it, and it should outlive a restart, or running uploads start over.
	Secret string
	// MaxBlobBytes limits one blob; 0 means DefaultMaxBlobBytes. Manifests are
	// limited to 4 MiB by distribution.
	MaxBlobBytes int64
	// ManifestMemory bounds the manifests that are held at once; nil for no bound.
	ManifestMemory *intake.Memory
	// Grace is how long a client may take for a body, plus the time that its
	// bytes need at the least rate; 0 means DefaultGrace.
	Grace time.Duration
	// Logger gets what an operator should see; nil means slog.Default.
	// Distribution logs by a logger of the whole process: the last registry
	// made gets its errors.
	Logger *slog.Logger
}

// Registry is an http.Handler for /v2/. It keeps all state in its storage: killed and started again it serves what was completely pushed.
type Registry struct {
	auth   Authenticator
	limit  int64
	memory *intake.Memory
	grace  time.Duration
	// failures counts bad tokens by address.
	failures *intake.Failures
	log      *slog.Logger
	// artifacts are what is deployed; caches are those of builds, apart from them.
	artifacts, caches shelf
}

// shelf is a storage with distribution's API for it.
type shelf struct {
	app    *handlers.App
	files  contents
	refers referrerIndex
	whole  wholeBlobs
}

// shelfOf is where a repository is.
func (r *Registry) shelfOf(repository string) *shelf {
	if oci.IsCacheRepository(repository) {
		return &r.caches
	}
	return &r.artifacts
}

// New opens the registry that is in config.Dir or config.S3.
func New(config Config) (r *Registry, err error) {
	if (config.Dir == "") == (config.S3 == nil) || config.Auth == nil || config.Secret == "" {
		return nil, errors.New("registry: a directory or a bucket, authenticator and secret are required")
	}
	if config.S3 != nil && config.Locks == nil {
		return nil, errors.New("registry: a bucket wants locks, which it has none of")
	}
	if config.MaxBlobBytes < 0 {
		return nil, errors.New("registry: the blob limit is negative")
	}
	r = &Registry{
		auth: config.Auth, limit: config.MaxBlobBytes, log: config.Logger,
		memory: config.ManifestMemory, grace: cmp.Or(config.Grace, DefaultGrace), failures: intake.NewFailures(nil),
	}
	if r.limit == 0 {
		r.limit = DefaultMaxBlobBytes
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	redirectLogs(r.log)
	if config.S3 == nil {
		config.Locks = newDirLock(config.Dir)
	}
	if r.artifacts, err = openShelf(config); err != nil {
		return nil, err
	}
	r.caches, err = openShelf(config.ofCaches())
	return r, err
}

func openShelf(config Config) (s shelf, err error) {
	if s.files, err = openContents(context.Background(), config); err != nil {
		return s, err
	}
	if s.app, err = newApp(s.files, config.Secret); err != nil {
		return s, err
	}
	if s.whole, err = newWholeBlobs(s.files); err != nil {
		return s, fmt.Errorf("registry: %w", err)
	}
	s.refers = referrerIndex{app: s.app, locks: config.Locks}
	return s, nil
}

// newApp configures distribution, which panics where others return an error.
func newApp(files driver.StorageDriver, secret string) (app *handlers.App, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("registry: %v", p)
		}
	}()
	config := &configuration.Configuration{
		Version: "0.1",
		Storage: configuration.Storage{
			openStorage: {openStorage: files},
			"delete":    {"enabled": true},
			// A client of ours need not reach the bucket, and what it may read is
			// decided at each request.
			"redirect": {"disable": true},
			// Its own purging is a goroutine with a random delay that nobody
			// owns; see PurgeUploads.
			"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
		},
	}
	config.Log.AccessLog.Disabled = true
	config.HTTP.Secret = secret
	// Locations then do not depend on a Host header that the client chose.
	config.HTTP.RelativeURLs = true
	return handlers.NewApp(context.Background(), config), nil
}

// terms are how the body of a request may be read.
func (r *Registry) terms(target route, grant Grant) intake.Terms {
	switch target.name {
	case routeUpload, routeUploadChunk:
		// serveUpload holds it to what is left of the limit.
		return intake.Terms{MaxBytes: math.MaxInt64 - 1, Pace: intake.Pace{Grace: r.grace, BytesPerSecond: blobRate}}
	case routeManifest:
		// One byte more than allowed, for putManifest to answer.
		return intake.Terms{
			MaxBytes: maxManifestBytes + 1, Memory: r.memory, Holder: grant.OrgID,
			Pace: intake.Pace{Grace: r.grace, BytesPerSecond: manifestRate},
		}
	}
	return intake.Terms{MaxBytes: maxOtherBytes, Pace: intake.Pace{Grace: r.grace}}
}

// Close ends what distribution started; requests must have ended before.
func (r *Registry) Close() error {
	return errors.Join(r.artifacts.app.Shutdown(), r.caches.app.Shutdown())
}

// ServeHTTP implements the distribution API for tokens.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	grant, err := r.authenticate(req)
	if err != nil {
		r.refuseCredential(w, req, err)
		return
	}
	target, ok := parseRoute(req)
	if !ok {
		writeError(w, http.StatusNotFound, codeUnsupported, "not found")
		return
	}
	if target.repository != "" { // all but the version check
		switch grant.decide(target.repository, target.action) {
		case hidden:
			writeError(w, http.StatusNotFound, codeNameUnknown, unknownName)
			return
		case denied:
			writeError(w, http.StatusForbidden, codeDenied, "the token does not allow "+string(target.action))
			return
		}
	}
	req, err = sanitise(req, target, grant)
	if err != nil {
		writeError(w, http.StatusBadRequest, codeUnsupported, err.Error())
		return
	}
	// Only now is known whose bytes they are: nothing was read before.
	if err := intake.BodyOf(req.Context()).Open(r.terms(target, grant)); err != nil {
		refuseBody(w, err)
		return
	}
	shelf := r.shelfOf(target.repository)
	switch {
	case target.name == routeReferrers:
		shelf.refers.list(w, req, target)
	case target.name == routeTags:
		r.listTags(w, req, target)
	case target.name == routeManifest && req.Method == http.MethodPut:
		shelf.refers.putManifest(w, req, target)
	case shelf.whole.takes(req, target) && req.ContentLength <= r.limit:
		shelf.whole.serve(w, req, target)
	case target.upload != "" && (req.Method == http.MethodPatch || req.Method == http.MethodPut):
		r.serveUpload(w, req, target)
	default:
		shelf.app.ServeHTTP(w, req)
	}
}
