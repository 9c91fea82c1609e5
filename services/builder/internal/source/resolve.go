package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

const (
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
	// AllowFile lets app folders name repositories on this machine's disk.
	AllowFile bool
	// Timeout of one resolution; a minute when zero.
	Timeout time.Duration
	// MaxBytes that are read from a git server; 64 MiB when zero.
	MaxBytes int64
	// Transport does the requests; http.DefaultTransport when nil.
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
		config.Transport = http.DefaultTransport
	}
	return &Resolver{config: config}
}

// Commit is where a source stands now.
type Commit struct {
	URL  string // git: what the engine clones
	Hash string // git: 40 hex digits; image: "sha256:…"
}

// Error is why a source could not be resolved, for people.
type Error struct {
	// Transient: the same may work later.
	Transient bool
	text      string
	cause     error
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.cause }

func refuse(format string, args ...any) *Error { return &Error{text: fmt.Sprintf(format, args...)} }

// Resolve finds the commit of a git source, or the digest of an image. Every error is an *Error, or that
// of ctx.
func (r *Resolver) Resolve(ctx context.Context, s Source) (Commit, error) {
	if s.Kind == KindImage {
		return r.image(ctx, s)
	}
	address, err := r.Address(s.Repo)
	if err != nil {
		return Commit{}, refuse("%s", err)
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
		return "", refuse("the repository has no commit %s, or does not serve it", ref)
	}
	for _, name := range names {
		if hash, ok := r.ref(name); ok {
			return hash, nil
		}
	}
	return "", refuse("the repository has no branch, tag or commit %q%s", ref, hint(r.names()))
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
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{text: fmt.Sprintf("repository %s did not answer within %s", s.Repo, timeout), cause: err, Transient: true}
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return &Error{text: fmt.Sprintf("repository %s is empty", s.Repo), cause: err}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &Error{text: fmt.Sprintf("there is no repository %s", s.Repo), cause: err}
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return &Error{text: fmt.Sprintf("repository %s does not exist or is not public", s.Repo), cause: err}
	case errors.Is(err, errTooLarge):
		return &Error{text: fmt.Sprintf("repository %s answers with more than is read for one question", s.Repo), cause: err}
	case errors.Is(err, errRedirect):
		return &Error{text: fmt.Sprintf("repository %s leads to an address that is not https", s.Repo), cause: err}
	}
	return &Error{text: fmt.Sprintf("repository %s cannot be reached now", s.Repo), cause: err, Transient: true}
}
