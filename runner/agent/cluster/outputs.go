package cluster

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ErrNoCredentials says that outputs tell where a cluster is, and not how to get in.
var ErrNoCredentials = errors.New("give the address of a cluster, but no credentials for it: neither a token, nor a client certificate with its key, nor the name of a cluster of EKS, GKE or AKS")

var errNoEndpoint = errors.New("have no kubeconfig, and no cluster with an endpoint")

// FromOutputs makes the access to a cluster out of the outputs of the component
// that makes it, which are the first of these that is there:
//
//   - kubeconfig, or cluster.kubeconfig: a kubeconfig as text or as an object
//   - cluster, an object, or else the outputs themselves: endpoint;
//     certificate_authority_data (PEM, or base64 of PEM), unless the system's
//     authorities know the server; and token, or client_certificate_data with
//     client_key_data (as the authority)
//
// Outputs come from code of the vendor's, and the agent reads files that the
// vendor must not have. So nothing is taken that names a file, runs a command,
// or leaves the server unproven.
//
// Errors: ErrNoCredentials.
func FromOutputs(outputs map[string]any) (Access, error) {
	cluster := object(outputs, "cluster")
	for _, given := range []any{outputs["kubeconfig"], cluster["kubeconfig"]} {
		if given != nil && given != "" {
			return fromKubeconfig(given)
		}
	}
	if cluster == nil {
		cluster = outputs
	}
	endpoint := text(cluster, "endpoint")
	if endpoint == "" {
		return Access{}, errNoEndpoint
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	reach, user := map[string]any{"server": endpoint}, map[string]any{}
	for _, part := range []struct {
		into    map[string]any
		to      string
		outputs string
	}{
		{reach, "certificate-authority-data", "certificate_authority_data"},
		{user, "client-certificate-data", "client_certificate_data"},
		{user, "client-key-data", "client_key_data"},
	} {
		if given := text(cluster, part.outputs); given != "" {
			encoded, err := certificateData(given)
			if err != nil {
				return Access{}, fmt.Errorf("%s %w", part.outputs, err)
			}
			part.into[part.to] = encoded
		}
	}
	if token := text(cluster, "token"); token != "" {
		user["token"] = token
	}
	return vetted(document{
		APIVersion: "v1", Kind: "Config", CurrentContext: "install",
		Contexts: []namedContext{{Name: "install", Context: map[string]any{"cluster": "install", "user": "install"}}},
		Clusters: []namedCluster{{Name: "install", Cluster: reach}}, Users: []namedUser{{Name: "install", User: user}},
	})
}

func fromKubeconfig(given any) (Access, error) {
	raw, isText := given.(string)
	if !isText {
		encoded, err := yaml.Marshal(given)
		if err != nil {
			return Access{}, errors.New("have a kubeconfig that is neither text nor an object")
		}
		raw = string(encoded)
	}
	var d document
	if err := yaml.Unmarshal([]byte(raw), &d); err != nil {
		return Access{}, errors.New("have a kubeconfig that is none") // the cause could quote a secret
	}
	return vetted(d)
}

// What is taken of a kubeconfig that a component gives.
var (
	givenContext = []string{"cluster", "user", "namespace"}
	givenCluster = []string{"server", "certificate-authority-data", "tls-server-name"}
	givenUser    = []string{"token", "client-certificate-data", "client-key-data", "username", "password"}
)

// vetted is the access that d gives, when d has nothing but what may be given.
func vetted(d document) (Access, error) {
	context, cluster, user, err := d.current()
	if err != nil {
		return Access{}, fmt.Errorf("have a kubeconfig that cannot be used: %w", err)
	}
	for _, part := range []struct {
		of    string
		in    map[string]any
		taken []string
	}{{"context", context.Context, givenContext}, {"cluster", cluster.Cluster, givenCluster}, {"user", user.User, givenUser}} {
		for key, value := range part.in {
			if _, isText := value.(string); !slices.Contains(part.taken, key) || !isText {
				return Access{}, fmt.Errorf("have a kubeconfig with %q in its %s, which is only taken from the customer's own files", key, part.of)
			}
		}
	}
	server, err := url.Parse(text(cluster.Cluster, "server"))
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
		return Access{}, errors.New("name a server that is not an https address")
	}
	if text(user.User, "token") == "" && text(user.User, "password") == "" &&
		(text(user.User, "client-certificate-data") == "" || text(user.User, "client-key-data") == "") {
		return Access{}, ErrNoCredentials
	}
	d.Contexts, d.Clusters, d.Users = []namedContext{context}, []namedCluster{cluster}, []namedUser{user}
	raw, err := yaml.Marshal(d)
	if err != nil {
		return Access{}, err
	}
	return Parse(raw, "")
}

// certificateData is PEM in base64, as a kubeconfig has it.
func certificateData(given string) (string, error) {
	raw := []byte(given)
	if !strings.Contains(given, "-----BEGIN") {
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(given))
		if err != nil {
			return "", errors.New("is neither PEM nor base64 of PEM")
		}
		raw = decoded
	}
	if block, _ := pem.Decode(raw); block == nil {
		return "", errors.New("is neither PEM nor base64 of PEM")
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
