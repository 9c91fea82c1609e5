package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// What `berth-runner manifest` makes in the runner's namespace; its template
// names the same.
const (
	LeaseName     = "berth-runner"
	SwitchName    = "berth-runner-switch"
	EngineAccount = "berth-engine"
)

const (
	// podSecrets is where Kubernetes puts a pod's token and the authority of
	// the API server.
	podSecrets = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path

	// The life of an engine's token: that of its job, within these bounds. The
	// API server makes none shorter than the first.
	minTokenLife = 10 * time.Minute
	maxTokenLife = 24 * time.Hour
)

// Pod is the pod that the agent runs in.
type Pod struct {
	*Client
	Namespace, Name, UID, Node string

	authority []byte
}

// InPod finds out where the agent runs, from what the manifest put into its
// environment, and reads the pod's own credentials, which renew themselves.
func InPod(getenv func(string) string) (*Pod, error) { return inPod(getenv, podSecrets) }

func inPod(getenv func(string) string, secrets string) (*Pod, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	p := &Pod{
		Namespace: getenv("BERTH_POD_NAMESPACE"), Name: getenv("BERTH_POD_NAME"),
		UID: getenv("BERTH_POD_UID"), Node: getenv("BERTH_NODE_NAME"),
	}
	if host == "" || port == "" || p.Namespace == "" || p.Name == "" || p.UID == "" {
		return nil, errors.New("this is not a pod of `berth-runner manifest`: KUBERNETES_SERVICE_HOST, BERTH_POD_NAMESPACE, " +
			"BERTH_POD_NAME or BERTH_POD_UID is not set; leave --in-cluster out elsewhere")
	}
	var err error
	if p.authority, err = readFile(filepath.Join(secrets, "ca.crt")); err != nil {
		return nil, fmt.Errorf("authority of the API server: %w", err)
	}
	// Never through a proxy: the API server is inside.
	p.Client, err = newClient("https://"+net.JoinHostPort(host, port), &tls.Config{MinVersion: tls.VersionTLS12}, p.authority, nil)
	if err != nil {
		return nil, err
	}
	p.authorize = func(req *http.Request) error {
		token, err := readFile(filepath.Join(secrets, "token")) // each time: the kubelet replaces it
		if err != nil {
			return fmt.Errorf("token of the pod: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		return nil
	}
	return p, nil
}

// Source gives each job a token of its own for the engine's service account,
// good for about as long as the job may take. The agent's token stays here.
func (p *Pod) Source() Source {
	return func(ctx context.Context, lifetime time.Duration) (Access, error) {
		token, err := p.engineToken(ctx, min(max(lifetime, minTokenLife), maxTokenLife))
		if err != nil {
			return Access{}, err
		}
		access := Access{Server: p.server, Authority: p.authority, Secrets: []string{token}}
		access.Kubeconfig, err = yaml.Marshal(document{
			APIVersion: "v1", Kind: "Config", CurrentContext: "install",
			Contexts: []namedContext{{Name: "install", Context: map[string]any{"cluster": "install", "user": EngineAccount, "namespace": p.Namespace}}},
			Clusters: []namedCluster{{Name: "install", Cluster: map[string]any{"server": p.server, "certificate-authority-data": p.authority}}},
			Users:    []namedUser{{Name: EngineAccount, User: map[string]any{"token": token}}},
		})
		return access, err
	}
}

func (p *Pod) engineToken(ctx context.Context, life time.Duration) (string, error) {
	type request struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Spec       map[string]any `json:"spec"`
	}
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	err := p.Post(ctx, "/api/v1/namespaces/"+url.PathEscape(p.Namespace)+"/serviceaccounts/"+EngineAccount+"/token",
		request{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest", Spec: map[string]any{"expirationSeconds": int64(life / time.Second)}}, &answer)
	switch {
	case err != nil:
		return "", fmt.Errorf("token for the service account %s: %w", EngineAccount, err)
	case answer.Status.Token == "":
		return "", fmt.Errorf("token for the service account %s: the API server gave none", EngineAccount)
	}
	return answer.Status.Token, nil
}

// Outputs are what a stack in this cluster reports of itself.
func (p *Pod) Outputs(ctx context.Context) (map[string]any, error) {
	v, err := p.Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("version of the cluster: %w", err)
	}
	return map[string]any{
		"namespace": p.Namespace, "node": p.Node, "cluster_version": v.GitVersion, "engine_service_account": EngineAccount,
	}, nil
}
