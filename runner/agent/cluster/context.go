package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/cloudcluster"
)

// Contexts is how jobs reach the clusters that components of the install make.
type Contexts struct {
	// Dir holds the customer's own kubeconfigs, one file per context under its
	// name. The directory need not be there.
	Dir string
	// Clouds make tokens for clusters of EKS, GKE and AKS.
	Clouds cloudcluster.Clouds
}

// MissingError says that there is no way to a named cluster, and what the customer
// can do about it.
type MissingError struct {
	Why, Remedy string
	// Transient: the same may work later.
	Transient bool
}

// Error is the reason.
func (e *MissingError) Error() string { return e.Why }

// Of finds the way to a cluster: the customer's file for the context, else what
// made returns, which is called only then.
//
// Errors: a *MissingError when neither gives one.
func (c Contexts) Of(ctx context.Context, named jobspec.Cluster, made func() (Access, error)) (Access, error) {
	path := filepath.Join(c.Dir, named.Context) // of the job's validated spec: no separator
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		access, err := File(path)(ctx, 0)
		if err != nil {
			return Access{}, &MissingError{Why: err.Error(), Remedy: "correct the file, then retry the step"}
		}
		return access, nil
	}
	access, err := made()
	if cloud, ok := errors.AsType[*cloudcluster.Error](err); ok {
		return Access{}, &MissingError{
			Why:       fmt.Sprintf("no credentials for Kubernetes context %q: %v", named.Context, cloud),
			Remedy:    fmt.Sprintf("%s; or put a kubeconfig for the cluster into %s on the runner's machine; then retry the step", cloud.Remedy, path),
			Transient: cloud.Transient,
		}
	}
	if err != nil {
		return Access{}, &MissingError{
			Why: fmt.Sprintf("no credentials for Kubernetes context %q: the outputs of component %s %v", named.Context, named.Component, err),
			Remedy: fmt.Sprintf("put a kubeconfig for that cluster into %s on the runner's machine, or have component %s output one; then retry the step",
				path, named.Component),
		}
	}
	return access, nil
}

// Identity asks a cluster who it is: the uid of its kube-system namespace, which
// no other cluster has and which no change of address or certificate changes. It
// is "" where the credentials may not read that.
func Identity(ctx context.Context, access Access) (uid string, err error) {
	client, err := Connect(ctx, access)
	if err != nil {
		return "", err
	}
	defer client.http.CloseIdleConnections()
	var namespace struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err = client.Get(ctx, "/api/v1/namespaces/kube-system", &namespace)
	switch {
	case IsStatus(err, http.StatusForbidden), IsStatus(err, http.StatusNotFound):
		return "", nil
	case IsStatus(err, http.StatusUnauthorized):
		return "", fmt.Errorf("cluster %s does not accept these credentials", access.Server)
	case err != nil:
		return "", fmt.Errorf("cluster %s cannot be reached: %w", access.Server, err)
	}
	return namespace.Metadata.UID, nil
}
