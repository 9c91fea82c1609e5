package control

import "net/http"

// Gated returns a client like base whose requests leave only while gate lets
// them: for the registry and the logs, which are not signed.
func Gated(base *http.Client, gate Gate) *http.Client {
	client := *base
	client.Transport = gatedTransport{base: base.Transport, gate: gate}
	return &client
}

type gatedTransport struct {
	base http.RoundTripper
	gate Gate
}

// RoundTrip waits until it may send, and breaks off when it may no more.
func (t gatedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.gate.WaitNetwork(req.Context()); err != nil {
		return nil, err
	}
	ctx, cancel := t.gate.WhileNetwork(req.Context())
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &closer{ReadCloser: resp.Body, done: cancel}
	return resp, nil
}
