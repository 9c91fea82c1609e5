// Package kubesecret reads one key of a Secret of Kubernetes, for a customer who keeps the
// values of an install's secrets there. It asks for exactly that object, so a right to get
// this one Secret is enough, and it writes nothing.
package kubesecret

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/runner/agent/cluster"
)

// Place is a key of a Secret.
type Place struct{ Namespace, Name, Key string }

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	secretName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	keyName       = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
)

// Parse reads NAMESPACE/NAME:KEY.
func Parse(text string) (Place, error) {
	namespace, rest, hasName := strings.Cut(text, "/")
	name, key, hasKey := strings.Cut(rest, ":")
	if !hasName || !hasKey || !namespaceName.MatchString(namespace) || !secretName.MatchString(name) || !keyName.MatchString(key) {
		return Place{}, fmt.Errorf("%q is not NAMESPACE/NAME:KEY, such as vault/shop:api-token", text)
	}
	return Place{namespace, name, key}, nil
}

func (p Place) String() string { return p.Namespace + "/" + p.Name + ":" + p.Key }

// Connect reaches the cluster by the kubeconfig at path; without one by that of KUBECONFIG,
// else with the credentials of the pod that the command runs in.
func Connect(ctx context.Context, path string, getenv func(string) string) (*cluster.Client, error) {
	if path == "" {
		path = getenv("KUBECONFIG")
	}
	if path == "" && getenv("KUBERNETES_SERVICE_HOST") != "" {
		pod, err := cluster.InPod(getenv)
		if err != nil {
			return nil, err
		}
		return pod.Client, nil
	}
	if path == "" {
		return nil, errors.New("name the cluster of the Secret with --kubeconfig FILE, or KUBECONFIG")
	}
	if strings.ContainsRune(path, os.PathListSeparator) {
		return nil, errors.New("KUBECONFIG names several files: give one with --kubeconfig")
	}
	const life = time.Minute // of the credentials: one request
	access, err := cluster.File(path)(ctx, life)
	if err != nil {
		return nil, err
	}
	return cluster.Connect(ctx, access)
}

// Read gives the value at a place as a secret of that format takes it: base64 of what is
// there for customersecret.FormatBase64, else the text. Its errors never quote a value.
func Read(ctx context.Context, c *cluster.Client, p Place, format string) (string, error) {
	var found struct {
		Data map[string][]byte `json:"data"`
	}
	err := c.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(p.Namespace)+"/secrets/"+url.PathEscape(p.Name), &found)
	switch {
	case cluster.IsStatus(err, http.StatusForbidden):
		return "", fmt.Errorf("%w: this account needs the right to get Secret %s in namespace %s", err, p.Name, p.Namespace)
	case err != nil:
		return "", fmt.Errorf("read Secret %s: %w", p, err)
	}
	value, there := found.Data[p.Key]
	if !there {
		return "", fmt.Errorf("Secret %s/%s has no key %s; it has: %s", p.Namespace, p.Name, p.Key, strings.Join(slices.Sorted(maps.Keys(found.Data)), ", "))
	}
	if format == customersecret.FormatBase64 {
		return base64.StdEncoding.EncodeToString(value), nil
	}
	return string(value), nil
}
