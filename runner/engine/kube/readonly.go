package kube

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// ErrReadOnly is the error of a request that a ReadOnly connection does not send.
var ErrReadOnly = errors.New("this connection to the cluster only reads")

// ReadOnly is another connection to the same cluster that cannot change
// anything: whatever is asked of it, only reads and dry runs of patches leave the
// process.
func (c *Cluster) ReadOnly() (*Cluster, error) {
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return readOnly{inner} })
	r, err := clients(config)
	if err != nil {
		return nil, err
	}
	r.Version = c.Version
	return r, nil
}

// readOnly sends only what changes nothing.
type readOnly struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if !onlyReads(request) {
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, ErrReadOnly)
	}
	return r.inner.RoundTrip(request)
}

// reaching are the ends and parts of paths that reach into a pod, also by GET.
var reaching = []string{"exec", "attach", "portforward", "proxy"}

func onlyReads(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet:
		return request.Header.Get("Upgrade") == "" && !reaches(request.URL.Path)
	case http.MethodPatch:
		return slices.Equal(request.URL.Query()["dryRun"], []string{metav1.DryRunAll})
	}
	return false
}

// reaches tells a path below an object that is not about it: nodes/NAME/proxy/…,
// and below a namespace pods/NAME/exec. An object may have such a name itself.
func reaches(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && !slices.Contains(reaching, parts[2]) {
		parts = parts[2:]
	}
	return len(parts) > 2 && slices.Contains(reaching, parts[2])
}
