package httpsig_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/httpsig"
)

const maxSkew = time.Minute

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newKey(seed byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return key.Public().(ed25519.PublicKey), key
}

func signed(t *testing.T, method, target string, body []byte) *http.Request {
	t.Helper()
	_, key := newKey(1)
	req := httptest.NewRequest(method, target, bytes.NewReader(body))
	if err := (httpsig.Signer{KeyID: "rnr_1", Key: key}).Sign(req, body, now); err != nil {
		t.Fatal(err)
	}
	return req
}

// TestVectorByHand builds the signature base of RFC 9421 from its text and not
// from the package, so that other implementations can be expected to agree.
func TestVectorByHand(t *testing.T) {
	t.Parallel()
	pub, _ := newKey(1)
	body := []byte(`{"slots": 2}`)
	req := signed(t, "POST", "https://example.com/v1/jobs/cl%20aim?wait=30s&x=%2F", body)

	sum := sha256.Sum256(body)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	if got := req.Header.Get("Content-Digest"); got != digest {
		t.Errorf("Content-Digest = %s, want %s", got, digest)
	}
	in := req.Header.Get("Signature-Input")
	form := regexp.MustCompile(`^berth=\("@method" "@path" "@query" "content-digest"\);created=1795262400;nonce="[0-9a-f]{32}";keyid="rnr_1";alg="ed25519"$`)
	if !form.MatchString(in) {
		t.Fatalf("Signature-Input = %s", in)
	}
	base := strings.Join([]string{
		`"@method": POST`,
		`"@path": /v1/jobs/cl%20aim`,
		`"@query": ?wait=30s&x=%2F`,
		`"content-digest": ` + digest,
		`"@signature-params": ` + strings.TrimPrefix(in, "berth="),
	}, "\n")
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(req.Header.Get("Signature"), "berth=:"), ":"))
	if err != nil || !ed25519.Verify(pub, []byte(base), sig) {
		t.Errorf("signature is not over the base of RFC 9421 (%v):\n%s", err, base)
	}
}

func TestVerifyOverRealHTTP(t *testing.T) {
	t.Parallel()
	pub, key := newKey(1)
	answers := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = (httpsig.Verifier{Key: pub, Now: now, MaxSkew: maxSkew}).Verify(r, body)
		}
		answers <- err
	}))
	defer server.Close()
	for _, tt := range []struct {
		method, target string
		body           string
	}{
		{"POST", "/jobs/claim?wait=30s", `{"slots":1}`},
		{"GET", "/settings", ""},
		{"GET", "", ""},
		{"GET", "/?", ""},
		{"PUT", "/states/res%2F1/a%20b?q=%C3%A4+b", "x"},
		{"DELETE", "/states//double/../dots?x;y", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.target, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := (httpsig.Signer{KeyID: "rnr_1", Key: key}).Sign(req, []byte(tt.body), now); err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if err := <-answers; err != nil {
			t.Errorf("%s %q: %v", tt.method, tt.target, err)
		}
	}
}

func TestVerifyReturnsParams(t *testing.T) {
	t.Parallel()
	pub, _ := newKey(1)
	req := signed(t, "GET", "/settings", nil)
	peeked, err := httpsig.Peek(req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (httpsig.Verifier{Key: pub, Now: now.Add(maxSkew), MaxSkew: maxSkew}).Verify(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := httpsig.Params{KeyID: "rnr_1", Nonce: peeked.Nonce, Created: now}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Params (-want +got):\n%s", diff)
	}
}

func TestAttacksAreRefused(t *testing.T) {
	t.Parallel()
	body := []byte(`{"result":"applied"}`)
	replace := func(header, from, to string) func(*http.Request) {
		return func(r *http.Request) {
			was := r.Header.Get(header)
			r.Header.Set(header, strings.Replace(was, from, to, 1))
			if r.Header.Get(header) == was {
				panic("attack changes nothing: " + from)
			}
		}
	}
	tests := []struct {
		name   string
		attack func(*http.Request)
		body   string // "" sends the signed one
		now    time.Time
		want   error
	}{
		{name: "changed method", attack: func(r *http.Request) { r.Method = "DELETE" }},
		{name: "changed path", attack: func(r *http.Request) { r.URL.Path = "/jobs/job_2/result" }},
		{name: "path escaped otherwise", attack: func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/jobs/job_1/result", "/jobs/job_1%2Fresult" }},
		{name: "changed query", attack: func(r *http.Request) { r.URL.RawQuery = "fence=8" }},
		{name: "dropped query", attack: func(r *http.Request) { r.URL.RawQuery = "" }},
		{name: "path and query moved", attack: func(r *http.Request) { r.URL.Path, r.URL.RawQuery = "/jobs/job_1", "result?fence=7" }},
		{name: "changed body", body: `{"result":"failed"}`},
		{name: "changed body and digest", body: "x", attack: func(r *http.Request) {
			sum := sha256.Sum256([]byte("x"))
			r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		}},
		{name: "digest removed", attack: func(r *http.Request) { r.Header.Del("Content-Digest") }, want: httpsig.ErrMissing},
		{name: "second digest", attack: func(r *http.Request) { r.Header.Add("Content-Digest", "sha-512=:AAAA:") }},
		{name: "signature removed", attack: func(r *http.Request) { r.Header.Del("Signature") }, want: httpsig.ErrMissing},
		{name: "input removed", attack: func(r *http.Request) { r.Header.Del("Signature-Input") }, want: httpsig.ErrMissing},
		{name: "second signature", attack: func(r *http.Request) { r.Header.Add("Signature", r.Header.Get("Signature")) }},
		{name: "second input", attack: func(r *http.Request) { r.Header.Add("Signature-Input", r.Header.Get("Signature-Input")) }},
		{name: "component stripped", attack: replace("Signature-Input", ` "content-digest"`, "")},
		{name: "all components stripped", attack: replace("Signature-Input", `"@method" "@path" "@query" "content-digest"`, "")},
		{name: "component replaced", attack: replace("Signature-Input", `"@query"`, `"date"`)},
		{name: "components in another order", attack: replace("Signature-Input", `"@method" "@path"`, `"@path" "@method"`)},
		{name: "component with a parameter", attack: replace("Signature-Input", `"@path"`, `"@path";req`)},
		{name: "other algorithm", attack: replace("Signature-Input", `alg="ed25519"`, `alg="hmac-sha256"`)},
		{name: "no algorithm", attack: replace("Signature-Input", `;alg="ed25519"`, "")},
		{name: "other key id", attack: replace("Signature-Input", `keyid="rnr_1"`, `keyid="rnr_2"`)},
		{name: "nonce removed", attack: func(r *http.Request) {
			in := r.Header.Get("Signature-Input")
			r.Header.Set("Signature-Input", regexp.MustCompile(`;nonce="[^"]*"`).ReplaceAllString(in, ""))
		}},
		{name: "fresh nonce for a replay", attack: func(r *http.Request) {
			in := r.Header.Get("Signature-Input")
			r.Header.Set("Signature-Input", regexp.MustCompile(`nonce="[^"]*"`).ReplaceAllString(in, `nonce="00000000000000000000000000000000"`))
		}},
		{name: "created moved", attack: replace("Signature-Input", "created=1795262400", "created=1795262430")},
		{name: "parameter appended", attack: replace("Signature-Input", `alg="ed25519"`, `alg="ed25519";expires=9999999999`)},
		{name: "second member appended", attack: replace("Signature-Input", `alg="ed25519"`, `alg="ed25519", x=()`)},
		{name: "signature of another label", attack: replace("Signature", "berth=", "sig1=")},
		{name: "stale", now: now.Add(maxSkew + time.Second), want: httpsig.ErrStale},
		{name: "from the future", now: now.Add(-maxSkew - time.Second), want: httpsig.ErrStale},
	}
	pub, _ := newKey(1)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := signed(t, "PUT", "/jobs/job_1/result?fence=7", body)
			at, sent, want := now, body, httpsig.ErrRefused
			if tt.attack != nil {
				tt.attack(req)
			}
			if tt.body != "" {
				sent = []byte(tt.body)
			}
			if !tt.now.IsZero() {
				at = tt.now
			}
			if tt.want != nil {
				want = tt.want
			}
			if _, err := (httpsig.Verifier{Key: pub, Now: at, MaxSkew: maxSkew}).Verify(req, sent); !errors.Is(err, want) {
				t.Errorf("Verify: %v, want %v", err, want)
			}
		})
	}
	t.Run("key of another", func(t *testing.T) {
		t.Parallel()
		other, _ := newKey(2)
		if _, err := (httpsig.Verifier{Key: other, Now: now, MaxSkew: maxSkew}).Verify(signed(t, "GET", "/", nil), nil); !errors.Is(err, httpsig.ErrRefused) {
			t.Errorf("Verify: %v, want ErrRefused", err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		t.Parallel()
		if _, err := (httpsig.Verifier{Key: nil, Now: now, MaxSkew: maxSkew}).Verify(signed(t, "GET", "/", nil), nil); !errors.Is(err, httpsig.ErrRefused) {
			t.Errorf("Verify: %v, want ErrRefused", err)
		}
	})
}

func TestSignRefusesUnsafeKeyID(t *testing.T) {
	t.Parallel()
	_, key := newKey(1)
	for _, id := range []string{"", `a";alg="none`, "a b", "a\nb"} {
		if err := (httpsig.Signer{KeyID: id, Key: key}).Sign(httptest.NewRequest("GET", "/", nil), nil, now); err == nil {
			t.Errorf("key id %q: no error", id)
		}
	}
}

func TestNonceCache(t *testing.T) {
	t.Parallel()
	cache := httpsig.NewNonceCache(maxSkew, 3)
	use := func(key, nonce string, after time.Duration) error {
		return cache.Use(httpsig.Params{KeyID: key, Nonce: nonce, Created: now}, now.Add(after))
	}
	steps := []struct {
		name  string
		key   string
		nonce string
		after time.Duration
		want  error
	}{
		{"first use", "a", "n1", 0, nil},
		{"replay at once", "a", "n1", 0, httpsig.ErrReplay},
		{"same nonce of another key", "b", "n1", 0, nil},
		{"replay at the end of the window", "a", "n1", 2 * maxSkew, httpsig.ErrReplay},
		{"replay in the next generation", "a", "n1", 2*maxSkew + time.Second, httpsig.ErrReplay},
		{"new generation has room", "a", "n2", 2*maxSkew + time.Second, nil},
		{"second", "a", "n3", 2*maxSkew + time.Second, nil},
		{"third", "a", "n4", 2*maxSkew + time.Second, nil},
		{"over the share", "a", "n5", 2*maxSkew + time.Second, httpsig.ErrTooMany},
		{"others are not touched", "b", "n5", 2*maxSkew + time.Second, nil},
		{"forgotten after two generations", "a", "n1", 9 * maxSkew, nil},
	}
	for _, s := range steps {
		if err := use(s.key, s.nonce, s.after); !errors.Is(err, s.want) || (s.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", s.name, err, s.want)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	pub, key := newKey(1)
	body := bytes.Repeat([]byte("x"), 1024)
	req := httptest.NewRequest("POST", "/jobs/claim?wait=30s", nil)
	if err := (httpsig.Signer{KeyID: "rnr_1", Key: key}).Sign(req, body, now); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := (httpsig.Verifier{Key: pub, Now: now, MaxSkew: maxSkew}).Verify(req, body); err != nil {
			b.Fatal(fmt.Errorf("verify: %w", err))
		}
	}
}
