package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/berth-dev/berth/runner/engine/build/kustomize"
	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	maxAnswer    = 512 << 20 // bytes that one server answers with, of a repository
	maxBase      = 4 << 20   // bytes of one file
	maxRedirects = 5
)

// elsewhere fetches what a source itself names by its address: the bases of a
// kustomization. The source's author chooses these, so only https is followed, no
// address where a cloud machine finds its secrets, and no credentials are sent.
type elsewhere struct {
	job    *job.Job
	client *http.Client
	got    int
}

// overHTTPS lets go-git fetch by the rules of elsewhere; it has one client per
// scheme for the whole process.
var overHTTPS = sync.OnceFunc(func() { client.InstallProtocol("https", githttp.NewClient(newClient())) })

func newElsewhere(j *job.Job) *elsewhere {
	overHTTPS()
	return &elsewhere{job: j, client: newClient()}
}

var (
	errLinkLocal = errors.New("it is a link-local address, where cloud machines get their secrets")
	errNotHTTPS  = errors.New("it leads to an address that is not https")
)

func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && (at.Addr().Unmap().IsLinkLocalUnicast() || at.Addr().IsLinkLocalMulticast()) {
			return errLinkLocal
		}
		return nil
	}}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: bounded{transport}, CheckRedirect: func(to *http.Request, before []*http.Request) error {
		switch {
		case len(before) > maxRedirects:
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		case to.URL.Scheme != "https" || to.URL.User != nil:
			return errNotHTTPS
		}
		return nil
	}}
}

// bounded cuts off answers that go on and on.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil {
		res.Body = &boundedBody{ReadCloser: res.Body, left: maxAnswer}
	}
	return res, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server answers with more than %d MiB", maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// failed says which address was not had, and what helps.
func (e *elsewhere) failed(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return job.Failf("check the address and that the Build Runner reaches it, or put a copy of it into the source and name that by its path",
		"%s cannot be fetched: %s", address, reason(err))
}

// repository fetches one commit of a repository and checks it out.
func (e *elsewhere) repository(ctx context.Context, r kustomize.Repository) (string, error) {
	e.got++
	dir := e.job.Work("bases", fmt.Sprint(e.got))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var commit string
	err := patiently(ctx, e.job, wait{r.URL, fetchTimeout}, func() (err error) {
		commit, err = fetchInto(ctx, dir, r)
		return err
	})
	if err != nil {
		return "", e.failed(ctx, r.URL, err)
	}
	note := ""
	if commit != r.Ref {
		note = ": name the commit (?ref=) for the same build every time"
	}
	e.job.Logf("fetched base %s, commit %s%s", r.URL, commit, note)
	return dir, nil
}

func fetchInto(ctx context.Context, dir string, r kustomize.Repository) (commit string, err error) {
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		return "", err
	}
	remote, err := repo.CreateRemote(&config.RemoteConfig{Name: git.DefaultRemoteName, URLs: []string{r.URL}})
	if err != nil {
		return "", err
	}
	if commit = r.Ref; !fullCommit.MatchString(commit) {
		if commit, err = resolve(ctx, remote, r.Ref); err != nil {
			return "", err
		}
	}
	if err := fetch(ctx, remote, commit); err != nil {
		return "", err
	}
	tree, err := repo.Worktree()
	if err != nil {
		return "", err
	}
	return commit, tree.Checkout(&git.CheckoutOptions{Hash: plumbing.NewHash(commit)})
}

// resolve finds the commit of a branch or a tag; "" is the default branch.
func resolve(ctx context.Context, remote *git.Remote, ref string) (string, error) {
	refs, err := remote.ListContext(ctx, &git.ListOptions{PeelingOption: git.AppendPeeled})
	if err != nil {
		return "", err
	}
	at := map[string]*plumbing.Reference{}
	for _, r := range refs {
		at[r.Name().String()] = r
	}
	names := []string{"refs/tags/" + ref + "^{}", "refs/tags/" + ref, "refs/heads/" + ref}
	if ref == "" {
		names = []string{"HEAD"}
	}
	for _, name := range names {
		found := at[name]
		if found != nil && found.Type() == plumbing.SymbolicReference {
			found = at[found.Target().String()]
		}
		if found != nil {
			return found.Hash().String(), nil
		}
	}
	return "", fmt.Errorf("it has no branch or tag %q", ref)
}

// file fetches a file.
func (e *elsewhere) file(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	data, err := e.get(ctx, address)
	if err != nil {
		return nil, e.failed(ctx, address, err)
	}
	e.job.Logf("fetched base %s, %d bytes", address, len(data))
	return data, nil
}

func (e *elsewhere) get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("it is not an address")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBase+1))
	if err == nil && len(data) > maxBase {
		err = fmt.Errorf("it has more than %d MiB", maxBase>>20)
	}
	return data, err
}

// chart downloads a packed chart.
func (e *elsewhere) chart(ctx context.Context, c kustomize.Chart) (string, error) {
	e.got++
	to := e.job.Work("charts", fmt.Sprint(e.got))
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", err
	}
	p := &packer{j: e.job}
	if _, err := p.download(ctx, &chart.Dependency{Name: c.Name, Repository: c.Repository}, c.Version, to); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), ".tgz") {
		return "", errors.Join(errors.New("the download is no packed chart"), err)
	}
	return filepath.Join(to, entries[0].Name()), nil
}
