package control

import (
	"net/http"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/runner/agent/egress"
)

// Gated returns a client like base whose requests leave only while gate lets
// them: for the registry and the logs, which are not signed.
func Gated(base egress.Client, gate Gate) *http.Client {
	return base.Wrap(func(under http.RoundTripper) http.RoundTripper { return gatedTransport{base: under, gate: gate} }).HTTP()
}

type gatedTransport struct {
	base http.RoundTripper
	gate Gate
}

// RoundTrip waits until it may send, and breaks off when it may no more. The
// trace of the request's context goes with it.
func (t gatedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.gate.WaitNetwork(req.Context()); err != nil {
		return nil, err
	}
	ctx, cancel := t.gate.WhileNetwork(req.Context())
	sent := req.Clone(ctx) // a RoundTripper leaves the caller's request as it is
	for name, value := range telemetry.Inject(ctx) {
		sent.Header.Set(name, value)
	}
	resp, err := t.base.RoundTrip(sent)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &closer{ReadCloser: resp.Body, done: cancel}
	return resp, nil
}
