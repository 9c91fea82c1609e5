// Package logapi is the client of log-ingest, generated from openapi/log-ingest.yaml by
// `make generate`. Nothing here is written by hand; what a call needs beyond the
// contract (signing, retries, tokens) is given as request editors and an
// *http.Client by whoever makes the client.
package logapi
