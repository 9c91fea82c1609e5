// Package api is how the command line talks to the control plane: the generated
// clients of ctl-api and log-ingest with credentials, idempotency keys, a trace,
// patience while a service restarts, problems as errors, and server-sent events
// that resume where they stopped.
package api
