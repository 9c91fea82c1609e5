package berth

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	second := new(time.Second)
	for _, tc := range []struct {
		name string
		try  attempt
		want time.Duration // -1: not again
	}{
		{"the service restarts", attempt{status: 503}, 100 * time.Millisecond},
		{"a proxy has nobody behind it", attempt{status: 502}, 100 * time.Millisecond},
		{"a proxy waited too long", attempt{status: 504}, 100 * time.Millisecond},
		{"the service says when", attempt{status: 503, asked: second}, time.Second},
		{"the service asks for less than the pause", attempt{status: 503, asked: new(time.Duration(0))}, 100 * time.Millisecond},
		{"too many requests", attempt{status: 429, asked: second}, time.Second},
		{"too many requests, who knows until when", attempt{status: 429}, -1},
		{"it asks for more than the patience", attempt{status: 429, asked: new(time.Hour)}, -1},
		{"the patience is over", attempt{status: 503, left: 50 * time.Millisecond}, -1},
		{"never repeated", attempt{status: 503, left: -1}, -1},
		{"done", attempt{status: 200}, -1},
		{"a fault of the service", attempt{status: 500}, -1},
		{"refused", attempt{status: 409}, -1},
		{"refused, with a time", attempt{status: 403, asked: second}, -1},
		{"the connection broke", attempt{err: io.ErrUnexpectedEOF}, 100 * time.Millisecond},
		{"nobody wants the answer", attempt{err: context.Canceled}, -1},
		{"not who it should be", attempt{err: &tls.CertificateVerificationError{Err: errors.New("expired")}}, -1},
		{"not TLS", attempt{err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, -1},
		{"plain text", attempt{err: http.ErrSchemeMismatch}, -1},
		{"sent elsewhere", attempt{err: &NotBerth{Host: "a", To: "http://b"}}, -1},
		{"too large", attempt{err: &TooLarge{}}, -1},
		{"conditional, perhaps done", attempt{status: 503, conditional: true}, -1},
		{"conditional, perhaps done before the connection broke", attempt{err: io.EOF, conditional: true}, -1},
		{"conditional, certainly not done", attempt{status: 429, asked: second, conditional: true}, time.Second},
	} {
		tc.try.rewindable, tc.try.pause = true, 100*time.Millisecond
		if tc.try.left == 0 {
			tc.try.left = time.Minute
		}
		if tc.try.left < 0 {
			tc.try.left = -time.Second
		}
		got, again := tc.try.again()
		if again != (tc.want >= 0) || again && got != tc.want {
			t.Errorf("%s: got %s, %t; want %s", tc.name, got, again, tc.want)
		}
		tc.try.rewindable = false
		if _, again := tc.try.again(); again {
			t.Errorf("%s: repeated, though its body is gone", tc.name)
		}
	}
}

func TestAskedFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"2":                             2 * time.Second,
		" 0 ":                           0,
		"Fri, 20 Nov 2026 10:00:07 GMT": 7 * time.Second,
		"Fri, 20 Nov 2026 09:00:00 GMT": 0,
		"2147483647":                    2147483647 * time.Second,
		"99999999999999999999":          -1,
		"-1":                            -1,
		"soon":                          -1,
		"1.5":                           -1,
		"":                              -1,
	} {
		got := askedFor(header, now)
		if (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("Retry-After %q: got %v, want %s", header, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"https://berth.example.com", "https://BERTH.example.com:443/x", true},
		{"http://berth.example.com:80", "http://berth.example.com/", true},
		{"http://[::1]:80", "http://[::1]", true},
		{"https://berth.example.com", "http://berth.example.com", false},
		{"https://berth.example.com", "https://berth.example.com:8443", false},
		{"https://berth.example.com", "https://api.berth.example.com", false},
		{"https://berth.example.com", "https://berth.example.com.attacker.test", false},
		{"https://berth.example.com", "https://berth.example.com@attacker.test", false},
	} {
		if got := shown(tc.a) == shown(tc.b); got != tc.same {
			t.Errorf("%s and %s: same %t, want %t", tc.a, tc.b, got, tc.same)
		}
	}
}
