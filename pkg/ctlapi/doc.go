// Package ctlapi is the client of ctl-api, generated from openapi/ctl-api.yaml
// by `make generate`. Nothing here is written by hand; what a call needs beyond
// the contract (signing, retries, tokens) comes from the caller of the
// constructor, as request editors and an *http.Client.
package ctlapi
