// Package runnerclient makes the requests of a runner those of that runner: it
// signs each one with the runner's key and adds the token of its session. The
// calls themselves are those of package runnerapi.
//
//	t := runnerclient.New(nil, key)
//	c, err := runnerapi.NewClientWithResponses(url, runnerapi.WithHTTPClient(t.Client()))
//	enrolled, err := c.EnrolWithResponse(ctx, …)
//	t.SetRunner(enrolled.JSON200.RunnerID)
//	opened, err := c.OpenSessionWithResponse(ctx, …)
//	t.SetSession(opened.JSON200.Token)
package runnerclient

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/httpsig"
)

// Transport is an http.RoundTripper. Safe for concurrent use.
type Transport struct {
	base http.RoundTripper
	key  ed25519.PrivateKey

	mu    sync.RWMutex
	keyID string
	token string
}

// New returns a transport that signs with key, under the key's own id as long
// as there is no runner. base sends the requests; http.DefaultTransport when
// nil.
func New(base http.RoundTripper, key ed25519.PrivateKey) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	pub, _ := key.Public().(ed25519.PublicKey)
	return &Transport{base: base, key: key, keyID: capsule.KeyID(pub)}
}

// Client returns an HTTP client without a timeout of its own: claims are held
// open. Bound each call by its context.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// SetRunner signs under the id of a runner from now on.
func (t *Transport) SetRunner(runnerID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keyID = runnerID
}

// SetSession sends the token of a session from now on; empty for none.
func (t *Transport) SetSession(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = token
}

// RoundTrip signs and sends a copy of req. It reads the whole body first: a
// signature covers it. Each attempt of a retry must come through here again,
// since a signature is good for one.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	t.mu.RLock()
	keyID, token := t.keyID, t.token
	t.mu.RUnlock()

	signed := req.Clone(req.Context())
	signed.Body, signed.ContentLength = http.NoBody, 0
	// Without GetBody the standard transport does not send a body again by itself
	// when a connection turns out to be closed: it would repeat the nonce. A GET
	// it may repeat; at worst that is answered signature_replayed.
	signed.GetBody = nil
	if len(body) > 0 {
		signed.Body, signed.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if token != "" {
		signed.Header.Set("Authorization", "Bearer "+token)
	}
	if err := (httpsig.Signer{KeyID: keyID, Key: t.key}).Sign(signed, body, time.Now()); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(signed)
}

func readBody(req *http.Request) (body []byte, err error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer func() { err = errors.Join(err, req.Body.Close()) }()
	if body, err = io.ReadAll(req.Body); err != nil {
		return nil, fmt.Errorf("read body to sign: %w", err)
	}
	return body, nil
}
