package remote

import "net/http"

// Over takes another transport: one that trusts a test's server.
func (f *Fetcher) Over(transport http.RoundTripper) { f.client = newClient(transport) }
