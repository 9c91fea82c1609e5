package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

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

// maxRedirects is what net/http allows by itself.
const maxRedirects = 10

// newClient is go-git's smart HTTP without its globals, bounded.
func newClient(config Config) transport.Transport {
	return githttp.NewClient(&http.Client{
		Transport: bounded{next: config.Transport, limit: config.MaxBytes},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != "https" {
				return errRedirect
			}
			if len(via) >= maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	})
}

// bounded cuts off answers that go on and on.
type bounded struct {
	next  http.RoundTripper
	limit int64
}

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil {
		res.Body = &boundedBody{ReadCloser: res.Body, left: b.limit}
	}
	return res, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
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
	case err != nil && (ctx.Err() != nil || errors.Is(err, errTooLarge)):
		return false, errors.Join(ctx.Err(), err)
	case err != nil:
		return false, nil // "not our ref", in the words of whatever server
	}
	defer res.Close()
	return packHas(res, want)
}

// packHas reads a pack until the commit is there; git puts commits first.
func packHas(r io.Reader, want plumbing.Hash) (bool, error) {
	scanner := packfile.NewScanner(r)
	_, count, err := scanner.Header()
	if err != nil {
		if errors.Is(err, errTooLarge) {
			return false, err
		}
		return false, nil // an error message in place of a pack
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
