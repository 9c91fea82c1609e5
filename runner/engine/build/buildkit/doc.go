// Package buildkit has BuildKit build an image. It speaks to the daemon through
// BuildKit's own command, buildctl, in a process of its own: the client library
// would bring its versions of gRPC, OpenTelemetry and containerd into the runner
// (docs/adr/0013-buildkit.md).
//
//	Dockerfile ─ CheckDockerfile ─┐
//	context ─────── Normalise ────┼─▶ Solve.Run ─▶ OCI layout ─▶ Attach: provenance, SBOM
//	secrets, network ─────────────┘      │
//	                                  Steps ─▶ the job's log
//
// Where the source comes from, and where the daemon, belongs to others.
package buildkit
