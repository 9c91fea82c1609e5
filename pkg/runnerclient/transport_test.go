package runnerclient_test

import (
	"crypto/ed25519"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/httpsig"
	"github.com/berth-dev/berth/pkg/runnerclient"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		keyID, authorization, body string
		err                        error
	}
	requests := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		params, err := (httpsig.Verifier{Key: pub, Now: time.Now(), MaxSkew: time.Minute}).Verify(r, body)
		requests <- seen{params.KeyID, r.Header.Get("Authorization"), string(body), err}
	}))
	t.Cleanup(server.Close)
	transport := runnerclient.New(nil, key)
	send := func(method, path, body string) seen {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		return <-requests
	}

	if got, want := send(http.MethodPost, "/enrol", "{}"), (seen{capsule.KeyID(key.Public().(ed25519.PublicKey)), "", "{}", nil}); got != want {
		t.Errorf("before enrolment: got %+v, want %+v", got, want)
	}
	transport.SetRunner("rnr_1")
	transport.SetSession("brs_x")
	if got, want := send(http.MethodGet, "/settings?after_version=3", ""), (seen{"rnr_1", "Bearer brs_x", "", nil}); got != want {
		t.Errorf("in a session, without a body: got %+v, want %+v", got, want)
	}
	if got, want := send(http.MethodPut, "/jobs/a/result", "long body"), (seen{"rnr_1", "Bearer brs_x", "long body", nil}); got != want {
		t.Errorf("in a session, with a body: got %+v, want %+v", got, want)
	}
}
