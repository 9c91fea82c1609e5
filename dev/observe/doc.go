// Package observe holds the metrics of the code, docs/reference/metrics.md, and
// the dashboard and alerts of deploy/observability together: its tests fail when
// one of them names what another does not have.
package observe
