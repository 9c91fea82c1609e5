package webhooks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/berth-dev/berth/pkg/webhook"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
)

var message = Message{OrgID: "org1", Event: stream.Event{Seq: 1, ID: "evt_1", Kind: "workflow.failed"}}

// receiver listens on an address of this machine and counts requests.
func receiver(t *testing.T, address string, answer http.HandlerFunc) (url string, got *atomic.Int32) {
	t.Helper()
	got = &atomic.Int32{}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got.Add(1); answer(w, r) }))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL, got
}

func fine(http.ResponseWriter, *http.Request) {}

func guard(t *testing.T, allowed string) *Guard {
	t.Helper()
	g, err := NewGuard(allowed)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A name that stands for a private address is refused where the connection is made.
func TestPrivateAddressBehindAName(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, "127.0.0.1:0", fine)
	out := NewSender(guard(t, "")).Send(t.Context(), strings.Replace(url, "127.0.0.1", "localhost", 1), message, []string{webhook.NewSecret()})
	if out.OK || got.Load() != 0 || !strings.Contains(out.Error, "BERTH_WEBHOOK_ALLOW") {
		t.Errorf("%d requests, %+v", got.Load(), out)
	}
}

// A resolver that answers an allowed address first and a private one afterwards.
func TestRebinding(t *testing.T) {
	t.Parallel()
	url, allowed := receiver(t, "127.0.0.2:0", fine)
	port := url[strings.LastIndex(url, ":"):]
	_, private := receiver(t, "127.0.0.1"+port, fine)
	asked := &atomic.Int32{}
	resolver := rebinding(t, func() [4]byte {
		if asked.Add(1) == 1 {
			return [4]byte{127, 0, 0, 2}
		}
		return [4]byte{127, 0, 0, 1}
	})
	g := guard(t, "127.0.0.2")
	s := newSender(func(ctx context.Context, network, address string) (net.Conn, error) {
		return g.dialWith(ctx, resolver, "tcp4", address)
	}, nil, sendTimeout)
	target := "http://rebind.test" + port
	if out := s.Send(t.Context(), target, message, []string{webhook.NewSecret()}); !out.OK {
		t.Fatalf("first: %+v", out)
	}
	s.client.CloseIdleConnections() // the next attempt resolves again
	out := s.Send(t.Context(), target, message, []string{webhook.NewSecret()})
	if out.OK || out.Error != errBlocked.Error() || private.Load() != 0 || allowed.Load() != 1 {
		t.Errorf("allowed %d, private %d: %+v", allowed.Load(), private.Load(), out)
	}
}

// rebinding is a DNS server of one A record that changes.
func rebinding(t *testing.T, address func() [4]byte) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}, Body: &dnsmessage.AResource{A: address()}}}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// Answers that attack: redirects, one that never ends, one that is huge, one that
// sends the secret back.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	secret := webhook.NewSecret()
	metadata, asked := receiver(t, "127.0.0.3:0", fine) // allowed or not, nothing is to follow there
	done := t.Context().Done()                          // it ends before the servers are closed
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   func(Outcome) bool
	}{
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, metadata, http.StatusTemporaryRedirect)
		},
			func(o Outcome) bool { return !o.OK && o.Status == 307 && strings.Contains(o.Error, "redirects") }},
		{"a redirect to the metadata of the cloud", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		}, func(o Outcome) bool { return !o.OK && o.Status == 302 }},
		{"no answer at all", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		}, func(o Outcome) bool {
			return !o.OK && strings.Contains(o.Error, "no complete answer") && o.Took < 10*timeout
		}},
		{"an answer that drips", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, ".")
				w.(http.Flusher).Flush()
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}, func(o Outcome) bool { return !o.OK && o.Took < 10*timeout }},
		{"a huge answer", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, func(o Outcome) bool { return !o.OK && len(o.Response) <= maxResponse && o.Status == 502 }},
		{"a huge header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
			func(o Outcome) bool { return !o.OK && o.Status == 0 }},
		{"the secret, and what a terminal obeys", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "\x1b[2Jyour secret is %s", secret)
		}, func(o Outcome) bool {
			return strings.Contains(o.Response, "your secret is") && !strings.Contains(o.Response, secret[6:]) && !strings.Contains(o.Response, "\x1b")
		}},
		{"no HTTP, but the secret", func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "%s %s\r\n\r\n", secret, strings.Repeat("x", 8000))
				_ = conn.Close()
			}
		}, func(o Outcome) bool {
			return !o.OK && o.Status == 0 && o.Error != "" && len(o.Error) <= maxResponse && !strings.Contains(o.Error, secret[6:])
		}},
		{"a plain yes", fine, func(o Outcome) bool { return o.OK && o.Error == "" }},
	}
	for _, tt := range tests {
		url, _ := receiver(t, "127.0.0.4:0", tt.answer)
		g := guard(t, "127.0.0.3, 127.0.0.4")
		out := newSender(g.Dial, nil, timeout).Send(t.Context(), url, message, []string{secret})
		if !tt.want(out) {
			t.Errorf("%s: %+v", tt.name, out)
		}
	}
	if asked.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TLS is verified: a certificate that nobody vouches for gets nothing.
func TestCertificatesAreVerified(t *testing.T) {
	t.Parallel()
	got := &atomic.Int32{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	out := NewSender(guard(t, "127.0.0.0/8")).Send(t.Context(), s.URL, message, []string{webhook.NewSecret()})
	if out.OK || got.Load() != 0 || !strings.Contains(out.Error, "certificate") {
		t.Errorf("%d requests, %+v", got.Load(), out)
	}
}
