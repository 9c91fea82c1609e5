//go:build tools

// Package buildkit pins the BuildKit that tests and development build images with:
// dev/scripts/buildkit.sh builds both commands from here. It is a module of its own,
// because its versions of gRPC, OpenTelemetry and containerd are no concern of ours.
package buildkit

import (
	_ "github.com/moby/buildkit/cmd/buildctl"
	_ "github.com/moby/buildkit/cmd/buildkitd"
)
