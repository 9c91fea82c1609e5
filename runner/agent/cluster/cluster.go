// Package cluster says how the jobs of an install reach its Kubernetes cluster:
// it makes the kubeconfig that a job gets as in/kubeconfig, complete in itself.
//
// The agent only carries it. Who talks to the cluster is the engine, in a
// process of its own.
package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/runner/agent/cloudcluster"
)

// maxFile is the largest kubeconfig, key or token that is read, in bytes.
const maxFile = 1 << 20

// Access is how one job reaches the cluster.
type Access struct {
	// Kubeconfig holds one context and names no other file, but for the
	// commands of exec plugins.
	Kubeconfig []byte
	// Server and Authority, certificates in PEM, are what names the cluster.
	Server    string
	Authority []byte
	// Secrets must not be seen in the log of the job.
	Secrets []string
	// Cloud is the cluster whose token was made here, nil for other credentials; the
	// token ends at Until, and Keep renews it.
	Cloud *cloudcluster.Cluster
	Until time.Time
}

// A Source gives access to a job that may take as long as lifetime. The agent
// asks it for each job, so a changed file counts from the next job on.
type Source func(ctx context.Context, lifetime time.Duration) (Access, error)

// File is a source that reads the kubeconfig at path. Only its current context
// is handed on.
func File(path string) Source {
	return func(context.Context, time.Duration) (Access, error) {
		raw, err := readFile(path)
		if err != nil {
			return Access{}, fmt.Errorf("kubeconfig: %w", err)
		}
		access, err := Parse(raw, filepath.Dir(path))
		if err != nil {
			return Access{}, fmt.Errorf("kubeconfig %s: %w", path, err)
		}
		return access, nil
	}
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return raw, err
}
