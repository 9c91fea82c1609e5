package reach_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/reach"
)

// TestWhy asks real listeners on this machine. Names are resolved by a server of
// the test.
func TestWhy(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0") // accepts by the kernel alone, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hung.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = nil
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	breaks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // a reset
		_ = conn.Close()
	}))
	t.Cleanup(breaks.Close)
	get := func(address string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		return err
	}
	for _, tc := range []struct {
		name    string
		err     error
		want    string
		lasting bool
	}{
		{"nobody listens", get("http://" + closed.Addr().String()), closed.Addr().String() + " refuses the connection", true},
		{"no answer", get("http://" + hung.Addr().String()), "did not answer in time", false},
		{"a certificate that nobody knows", get(untrusted.URL), "its certificate is not trusted here", true},
		{"a connection that breaks", get(breaks.URL), "the connection broke off", false},
		{"a name that is none", fmt.Errorf("x: %w", &net.DNSError{Name: "git.example.com", IsNotFound: true}), "the name git.example.com does not resolve", true},
		{"no network", &net.OpError{Op: "dial", Err: &net.DNSError{Name: "git.example.com", IsTemporary: true}}, "no name server answers for git.example.com", true},
		{"a slow name server", &net.DNSError{Name: "git.example.com", IsTimeout: true}, "the name git.example.com was not resolved in time", false},
		{"something else", io.ErrUnexpectedEOF, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			why, lasting := reach.Why(tc.err)
			if tc.err == nil || !strings.Contains(why, tc.want) || (tc.want == "") != (why == "") || lasting != tc.lasting {
				t.Errorf("Why(%v) = %q, %t; want %q, %t", tc.err, why, lasting, tc.want, tc.lasting)
			}
		})
	}
}
