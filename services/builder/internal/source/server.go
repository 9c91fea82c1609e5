package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

var (
	errTooLarge = errors.New("git server: answer too large")
	errRedirect = errors.New("git server: redirect away from https")
)

// answerError is the status of a server that cannot answer now.
type answerError int

func (e answerError) Error() string { return fmt.Sprintf("git server: answer %d", int(e)) }

// guard bounds what a git server may do to us in one resolution. go-git does
// not hand on why a request was cut off, so it is remembered here.
type guard struct {
	next   http.RoundTripper
	limit  int64
	broken atomic.Pointer[error]
}

// client is go-git's smart HTTP without its globals.
func (g *guard) client() transport.Transport {
	return githttp.NewClient(&http.Client{Transport: g})
}

// reason is why a request was cut off; nil when none was.
func (g *guard) reason() error {
	if err := g.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (g *guard) fail(err error) error {
	g.broken.Store(&err)
	return err
}

// RoundTrip stops at a redirect away from https, and cuts off answers that go
// on and on.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.next.RoundTrip(req)
	if err != nil {
		if req.Context().Err() == nil {
			_ = g.fail(err)
		}
		return nil, err
	}
	if res.StatusCode >= http.StatusInternalServerError {
		_ = g.fail(answerError(res.StatusCode))
	}
	if to, err := res.Location(); err == nil && to.Scheme != "https" {
		res.Body.Close()
		return nil, g.fail(errRedirect)
	}
	res.Body = &boundedBody{ReadCloser: res.Body, guard: g, left: g.limit}
	return res, nil
}

type boundedBody struct {
	io.ReadCloser
	guard *guard
	left  int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.guard.fail(errTooLarge)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// server is a repository behind https.
type server struct {
	session    transport.UploadPackSession
	advertised *packp.AdvRefs
}

func openServer(ctx context.Context, client transport.Transport, address string) (*server, error) {
	endpoint, err := transport.NewEndpoint(address)
	if err != nil {
		return nil, err
	}
	session, err := client.NewUploadPackSession(endpoint, nil)
	if err != nil {
		return nil, err
	}
	advertised, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	return &server{session: session, advertised: advertised}, nil
}

func (s *server) ref(name string) (string, bool) {
	if name == "HEAD" && s.advertised.Head != nil {
		return s.advertised.Head.String(), true
	}
	if hash, ok := s.advertised.Peeled[name]; ok {
		return hash.String(), true
	}
	hash, ok := s.advertised.References[name]
	return hash.String(), ok
}

func (s *server) names() []string { return slices.Collect(maps.Keys(s.advertised.References)) }

// has believes what is advertised; another commit is asked for, alone: without
// its history and, where the server can leave them out, without its files.
func (s *server) has(ctx context.Context, hash string) (bool, error) {
	want := plumbing.NewHash(hash)
	for name := range s.advertised.References {
		if at, _ := s.ref(name); at == hash {
			return true, nil
		}
	}
	req := packp.NewUploadPackRequest()
	req.Wants = []plumbing.Hash{want}
	if s.advertised.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return false, err
		}
	}
	if s.advertised.Capabilities.Supports(capability.Filter) {
		req.Filter = packp.FilterTreeDepth(0)
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return false, err
		}
	}
	res, err := s.session.UploadPack(ctx, req)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, nil // "not our ref", in the words of whatever server
	}
	defer func() { _ = res.Close() }() // the rest of the answer is not wanted
	return packHas(res, want)
}

// packHas reads a pack until the commit is there; git puts commits first.
func packHas(r io.Reader, want plumbing.Hash) (bool, error) {
	scanner := packfile.NewScanner(r)
	_, count, noPack := scanner.Header()
	if noPack != nil {
		return false, nil //nolint:nilerr // an error message in its place: the server does not give the commit out
	}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return false, fmt.Errorf("read pack: %w", err)
		}
		if header.Type != plumbing.CommitObject {
			continue // the scanner skips its content
		}
		content := plumbing.NewHasher(header.Type, header.Length)
		if _, _, err := scanner.NextObject(content); err != nil {
			return false, fmt.Errorf("read pack: %w", err)
		}
		if content.Sum() == want {
			return true, nil
		}
	}
	return false, nil
}
