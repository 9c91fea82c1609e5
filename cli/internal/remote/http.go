package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/reach"
	"github.com/berth-dev/berth/pkg/version"
)

const (
	httpTimeout  = 5 * time.Second // from the first byte sent to the last one read, redirects too
	maxRedirects = 5
)

var errLinkLocal = errors.New("is a link-local address, where cloud machines get their secrets")

// newTransport reaches what the environment's proxy settings say, and no
// link-local address: nothing that an app needs stands there.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: httpTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Unmap().IsLinkLocalUnicast() {
			return errLinkLocal
		}
		return nil
	}}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: httpTimeout, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
	}
}

func newClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, Timeout: httpTimeout, CheckRedirect: checkRedirect}
}

func checkRedirect(to *http.Request, before []*http.Request) error {
	last := before[len(before)-1].URL
	switch {
	case len(before) > maxRedirects:
		return failf("", "redirects more than %d times", maxRedirects)
	case !slices.Contains([]string{"http", "https"}, to.URL.Scheme):
		return failf("", "redirects to an address with %s://, which berth does not fetch", to.URL.Scheme)
	case last.Scheme == "https" && to.URL.Scheme == "http":
		return failf("write the final address", "redirects from https to http, where anyone on the way could change it")
	case to.URL.User != nil:
		return failf("", "redirects to an address with credentials in it")
	}
	return nil
}

// get reads one file over HTTP.
func (f *Fetcher) get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("is not an address")
	}
	req.Header.Set("User-Agent", "berth/"+version.Get().Version)
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, notReached(ctx, err)
	}
	defer resp.Body.Close()
	if err := checkAnswer(resp); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, fetch.MaxBytes+1))
	switch {
	case len(data) > fetch.MaxBytes:
		return nil, errTooLarge
	case err != nil:
		return nil, notReached(ctx, err)
	}
	return data, nil
}

func checkAnswer(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return failf("put files that need credentials into a git repository (git::), which berth reads with your git credentials",
			"answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case http.StatusNotFound, http.StatusGone:
		return failf("check the address; some hosts also say this about files you may not read", "answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	default:
		return failf("try again later, or put the file into the folder", "answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	// A page for people instead of the file is the commonest wrong address.
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/html" && !strings.HasPrefix(path.Ext(resp.Request.URL.Path), ".htm") {
		return failf("name the address of the raw file", "is a web page")
	}
	return nil
}

// notReached says why there is no answer, without the address: a redirect may
// have brought another one.
func notReached(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return errors.New("is not fetched: it was cut short")
	case errors.As(err, &timeout) && timeout.Timeout():
		return failf("try again, or put the file into the folder", "did not arrive within %s", httpTimeout)
	case errors.Is(err, errLinkLocal):
		return failf("", "%v", errLinkLocal)
	}
	if why, _ := reach.Why(err); why != "" {
		err = errors.New(why)
	}
	return failf("check the address, and that this machine can reach it (berth uses HTTPS_PROXY)", "cannot be fetched: %v", err)
}

// users is what stands before the "@" of an address.
var users = regexp.MustCompile(`://[^\s/@]*@`)

// withoutUsers takes credentials out of a text that quotes addresses.
func withoutUsers(text string) string {
	return users.ReplaceAllString(fmt.Sprint(text), "://…@")
}
