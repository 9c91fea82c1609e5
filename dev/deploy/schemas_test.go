package deploy

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The oldest Kubernetes that the chart takes, and the newest whose schemas
// kubectl-validate has in itself.
var kubernetesVersions = []string{"1.30", "1.35"}

// refusals are what kubectl-validate says about the documents of a file, in their
// order; "" about those that fit.
type refusals []string

// validate checks files, by name, against the schemas of a Kubernetes version and
// of the custom resources in dev/kube/helm/crds.txt. It asks no cluster and
// nothing outside.
func validate(t *testing.T, version string, files map[string]string) map[string]refusals {
	t.Helper()
	validator, err := filepath.Abs(filepath.Join("..", "..", ".bin", "kube", "kubectl-validate"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(validator); err != nil {
		t.Skip("kubernetes: there is no kubectl-validate; make kube builds one")
	}
	dir := t.TempDir()
	for name, text := range files {
		// One that holds nothing but comments is no document to it.
		text = strings.Join(documents(text), "---\n")
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), validator, "--version", version, "--output", "json",
		"--local-crds", filepath.Join(filepath.Dir(validator), "crds"), dir)
	// It would ask a cluster, then GitHub, for schemas that it does not have.
	cmd.Env = []string{"HOME=" + dir, "KUBECONFIG=" + os.DevNull, "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1"}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && len(out) > 0) {
		t.Fatalf("kubectl-validate: %v\n%s", err, out)
	}
	var statuses map[string][]struct{ Status, Message string }
	if err := json.Unmarshal(out, &statuses); err != nil {
		t.Fatalf("kubectl-validate: %v\n%s", err, out)
	}
	all := map[string]refusals{}
	for path, of := range statuses {
		var says refusals
		for _, s := range of {
			if s.Status == "Success" {
				says = append(says, "")
			} else {
				says = append(says, s.Status+": "+s.Message)
			}
		}
		all[strings.TrimSuffix(filepath.Base(path), ".yaml")] = says
	}
	return all
}

// Everything that kustomize and the chart make fits the schemas, strictly: with
// no unknown field. Examples with custom resources are checked by nothing else.
func TestManifestsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	files := map[string]string{"kustomize, builds": render(t, "local-builds")}
	for way, overlay := range ways {
		files["kustomize, "+way] = render(t, overlay)
	}
	for set, flags := range valueSets {
		files["chart, "+set] = renderChart(t, flags...)
	}
	for _, version := range kubernetesVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			found := validate(t, version, files)
			for name, text := range files {
				if got, want := len(found[name]), len(documents(text)); got != want {
					t.Errorf("%s: %d documents were checked, want %d", name, got, want)
				}
				for i, says := range found[name] {
					if says != "" {
						t.Errorf("%s, document %d: %s", name, i+1, says)
					}
				}
			}
		})
	}
}

// The check finds what it is for, in our kinds and in those of others.
func TestSchemasFindFaults(t *testing.T) {
	t.Parallel()
	gateway := render(t, with("production", "gateway", "cloudnative-pg", "external-secrets"))
	http := render(t, with("production", "gateway-http", "cert-manager", "ingress"))
	tests := []struct{ name, in, old, new, want string }{
		{"an unknown field of a pod", gateway, "enableServiceLinks: false", "enableServiceLink: false", "unknown field"},
		{"a number that is text", gateway, "revisionHistoryLimit: 3", `revisionHistoryLimit: "3"`, "revisionHistoryLimit"},
		{"a kind that is no longer there", gateway, "apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n", "policy/v1beta1"},
		{"a policy for a word", gateway, "  policyTypes:\n", "  policyType:\n", "unknown field"},
		{"a path without a type", http, "pathType: Prefix", "pathTypes: Prefix", "pathType"},
		{"an unknown field of a TLSRoute", gateway, "  parentRefs:", "  parentRef:", "parentRef"},
		{"a host that is none", gateway, "  - berth.example.com", "  - berth_example", "hostnames"},
		{"a match that is none", http, "type: PathPrefix", "type: Prefix", "PathPrefix"},
		{"a policy of TLS without authorities", http, "    wellKnownCACertificates: System\n", "", "must specify either"},
		{"a certificate without an issuer", http, "  issuerRef:", "  issuer:", "issuer"},
		{"an algorithm that is none", http, "algorithm: ECDSA", "algorithm: DSA", "algorithm"},
		{"a secret from nowhere", gateway, "  - remoteRef:\n", "  - remote:\n", "remote"},
		{"no instance of Postgres", gateway, "  instances: 3", "  instances: 0", "instances"},
		{"an unknown field of a role", gateway, "      createrole: true", "      createroles: true", "createroles"},
	}
	bad := map[string]string{}
	for _, tt := range tests {
		bad[tt.name] = strings.ReplaceAll(tt.in, tt.old, tt.new)
		if bad[tt.name] == tt.in {
			t.Fatalf("%s: %q is not in the overlay", tt.name, tt.old)
		}
	}
	found := validate(t, kubernetesVersions[0], bad)
	for _, tt := range tests {
		if says := strings.TrimSpace(strings.Join(found[tt.name], "\n")); !strings.Contains(says, tt.want) {
			t.Errorf("%s: says %q, want %q", tt.name, says, tt.want)
		}
	}
}
