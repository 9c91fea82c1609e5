package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/berth-dev/berth/pkg/reach"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
)

const (
	// connectTimeout is for a connection and for its TLS; answerTimeout is from
	// there to the first word of the answer.
	connectTimeout = 10 * time.Second
	answerTimeout  = 20 * time.Second

	// defaultTimeout is long enough for a large repository on a slow line, and
	// short enough that a build says soon why it does not get on.
	defaultTimeout = time.Minute

	// defaultMaxBytes bounds what a git server may make us read for one
	// question: a million refs.
	defaultMaxBytes = 64 << 20
)

// Config of a Resolver; the zero value works.
type Config struct {
	// Map sends repositories elsewhere.
	Map Map
	// Keys open private chart repositories and registries.
	Keys *keyring.Ring
	// AllowFile lets app folders name repositories on this machine's disk.
	AllowFile bool
	// Timeout of one resolution; a minute when zero.
	Timeout time.Duration
	// MaxBytes that are read from a git server; 64 MiB when zero.
	MaxBytes int64
	// Transport does the requests; when nil one that gives up on a silent host
	// after half a minute.
	Transport http.RoundTripper
}

// Resolver finds commits. It is safe for concurrent use.
type Resolver struct{ config Config }

// NewResolver makes a Resolver.
func NewResolver(config Config) *Resolver {
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = defaultMaxBytes
	}
	if config.Transport == nil {
		config.Transport = newTransport()
	}
	return &Resolver{config: config}
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout, MaxIdleConns: 100, IdleConnTimeout: time.Minute,
	}
}

// Commit is where a source stands now.
type Commit struct {
	URL  string // git: what the engine clones; chart: what is downloaded
	Hash string // git: 40 hex digits; image: "sha256:…", or of a range a Pin; chart: a Pin
}

// Error is why a source could not be resolved, for people.
type Error struct {
	// Transient: the same may work later.
	Transient bool
	// Slow, with Transient: somebody did not answer in time, so that each try costs
	// that time.
	Slow bool
	// Key of the app folder that says what is wrong here, "" for none, such as
	// KeyRepo.
	Key Key
	// Operator: builder's operator has to do something, not who wrote the app folder.
	Operator bool
	// CopyWillDo: what a sync takes from a copy of the repository needs it no more.
	CopyWillDo bool
	text       string
	cause      error
}

// Key is a key of a component's source.
type Key string

// The keys.
const (
	KeyRepo      Key = "repo"
	KeyBranch    Key = "branch"
	KeyDirectory Key = "directory"
	KeyImage     Key = "image_url"
	KeyTag       Key = "tag"
	KeyPolicy    Key = "update_policy"
	KeyOCI       Key = "oci_source"
	KeySigner    Key = "signer"
)

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.cause }

// Refuse is an error that trying again does not change.
func Refuse(format string, args ...any) *Error { return refuse(format, args...) }

func refuse(format string, args ...any) *Error { return &Error{text: fmt.Sprintf(format, args...)} }

// about is an error that the value of a key makes.
func about(key Key, format string, args ...any) *Error {
	e := refuse(format, args...)
	e.Key = key
	return e
}

// Resolve finds the commit of a git source, the digest of an image, or the version
// and digest of a chart. Every error is an *Error, or that
// of ctx.
func (r *Resolver) Resolve(ctx context.Context, s Source) (Commit, error) {
	switch s.Kind {
	case KindImage, KindOCI:
		return r.image(ctx, s)
	case KindChart:
		return r.chart(ctx, s)
	}
	address, err := r.Address(s.Repo)
	if err != nil {
		return Commit{}, about(KeyRepo, "%s", err)
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()

	g := &guard{next: r.config.Transport, limit: r.config.MaxBytes}
	hash, err := lookUp(limited, g, address, s.Ref)
	switch {
	case ctx.Err() != nil:
		return Commit{}, ctx.Err()
	case limited.Err() != nil:
		err = limited.Err()
	case g.reason() != nil:
		err = g.reason()
	}
	if err != nil {
		return Commit{}, explain(err, s, r.config.Timeout)
	}
	return Commit{URL: address, Hash: hash}, nil
}

func lookUp(ctx context.Context, g *guard, address, ref string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	var r remote
	if u.Scheme == "file" {
		r, err = openDirectory(u.Path)
	} else {
		r, err = openServer(ctx, g.client(), address)
	}
	if err != nil {
		return "", err
	}
	return find(ctx, r, ref)
}

// remote is a repository that was asked for its refs.
type remote interface {
	// ref is the commit of a full ref name; of a tag, what it points to.
	ref(name string) (hash string, ok bool)
	// names are all full ref names.
	names() []string
	// has tells whether the repository gives out this commit.
	has(ctx context.Context, hash string) (bool, error)
}

// find looks for what a vendor wrote as branch, tag or commit, in this order:
// the key of the app folder is called branch.
func find(ctx context.Context, r remote, ref string) (string, error) {
	names := []string{"refs/heads/" + ref, "refs/tags/" + ref}
	switch {
	case ref == "" || ref == "HEAD":
		names = []string{"HEAD"}
	case strings.HasPrefix(ref, "refs/"):
		names = []string{ref}
	}
	if commitForm.MatchString(ref) {
		switch ok, err := r.has(ctx, ref); {
		case err != nil:
			return "", err
		case ok:
			return ref, nil
		}
		return "", about(KeyBranch, "the repository has no commit %s, or does not serve it", ref)
	}
	for _, name := range names {
		if hash, ok := r.ref(name); ok {
			return hash, nil
		}
	}
	return "", about(KeyBranch, "the repository has no branch, tag or commit %q%s", ref, hint(r.names()))
}

// hint names some branches, since a wrong one is what mostly went wrong.
func hint(names []string) string {
	var branches []string
	for _, name := range names {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			branches = append(branches, branch)
		}
	}
	slices.Sort(branches)
	const most = 5
	switch {
	case len(branches) == 0:
		return ""
	case len(branches) > most:
		return "; some of its branches: " + strings.Join(branches[:most], ", ")
	}
	return "; its branches: " + strings.Join(branches, ", ")
}

// explain says in a vendor's words what went wrong. What a server said is not
// repeated: it may be anything.
func explain(err error, s Source, timeout time.Duration) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	e := &Error{cause: err, Key: KeyRepo, CopyWillDo: true}
	say := func(format string, args ...any) error {
		e.text = "repository " + s.Repo + " " + fmt.Sprintf(format, args...)
		return e
	}
	why, lasting := reach.Why(err)
	broken, answered := errors.AsType[answerError](err)
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return say("is empty: push something to it")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return say("does not exist, or is not public")
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return say("asks for credentials: it does not exist or is not public")
	case errors.Is(err, errTooLarge):
		return say("answers with more than is read for one question")
	case errors.Is(err, errRedirect):
		return say("leads to an address that is not https")
	case reach.Slow(err):
		e.Transient, e.Slow = true, true
		if errors.Is(err, context.DeadlineExceeded) {
			return say("did not answer within %s", timeout)
		}
		return say("cannot be reached: %s", why)
	case answered:
		e.Transient = true
		return say("cannot be read now: its server answers %d %s", int(broken), http.StatusText(int(broken)))
	case why != "":
		e.Transient = !lasting
		return say("cannot be reached: %s", why)
	}
	e.Transient = true
	return say("cannot be reached now")
}
