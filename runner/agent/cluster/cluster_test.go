package cluster_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/runner/agent/cluster"
)

// whole is a kubeconfig with two contexts, of which the second is current.
const whole = `apiVersion: v1
kind: Config
current-context: here
contexts:
- name: other
  context: {cluster: elsewhere, user: admin}
- name: here
  context: {cluster: local, user: deployer, namespace: shop}
clusters:
- name: elsewhere
  cluster: {server: "https://elsewhere:6443"}
- name: local
  cluster: {server: "https://10.0.0.1:6443", CLUSTER}
users:
- name: admin
  user: {token: token-of-somebody-else}
- name: deployer
  user: {USER}
`

func kubeconfig(cluster, user string) string {
	return strings.NewReplacer("CLUSTER", cluster, "USER", user).Replace(whole)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// Access has all that the current context needs, and nothing else.
func TestFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		cluster, user string
		files         map[string]string
		wantUser      map[string]any
		authority     string
		secrets       []string
	}{
		{
			name:    "a token next to an authority",
			cluster: "certificate-authority-data: " + b64("-CA-"), user: "token: s3cret-token",
			wantUser: map[string]any{"token": "s3cret-token"}, authority: "-CA-", secrets: []string{"s3cret-token"},
		},
		{
			name:    "files are put into it",
			cluster: "certificate-authority: pki/ca.crt", user: "client-certificate: pki/me.crt, client-key: pki/me.key",
			files: map[string]string{"pki/ca.crt": "-CA-", "pki/me.crt": "-CERT-", "pki/me.key": "-KEY-"},
			wantUser: map[string]any{
				"client-certificate-data": b64("-CERT-"), "client-key-data": b64("-KEY-"),
			},
			authority: "-CA-", secrets: []string{"-KEY-"},
		},
		{
			name:    "data counts more than a file that is not even there",
			cluster: "certificate-authority: gone, certificate-authority-data: " + b64("-CA-"), user: "username: me, password: pass-word",
			wantUser: map[string]any{"username": "me", "password": "pass-word"}, authority: "-CA-", secrets: []string{"pass-word"},
		},
		{
			name:    "a token's file counts more than a token",
			cluster: "insecure-skip-tls-verify: true", user: "token: old, tokenFile: token",
			files:    map[string]string{"token": "fresh\n"},
			wantUser: map[string]any{"token": "fresh"}, secrets: []string{"fresh"},
		},
		{
			name:    "a plugin stays, and its command is found from anywhere",
			cluster: "proxy-url: \"http://me:proxy-password@proxy\"",
			user:    "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, env: [{name: REGION, value: eu}, {name: API_TOKEN, value: t0ken}]}",
			wantUser: map[string]any{"exec": map[string]any{
				"apiVersion": "client.authentication.k8s.io/v1", "command": "DIR/bin/login",
				"env": []any{map[string]any{"name": "REGION", "value": "eu"}, map[string]any{"name": "API_TOKEN", "value": "t0ken"}},
			}},
			secrets: []string{"proxy-password", "t0ken"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "config", kubeconfig(tc.cluster, tc.user))
			for name, contents := range tc.files {
				write(t, dir, name, contents)
			}
			access, err := cluster.File(filepath.Join(dir, "config"))(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(access.Kubeconfig), "elsewhere") {
				t.Errorf("it holds another context:\n%s", access.Kubeconfig)
			}
			var got struct {
				Context string `json:"current-context"`
				Users   []struct {
					User map[string]any `json:"user"`
				} `json:"users"`
			}
			text := strings.ReplaceAll(string(access.Kubeconfig), dir, "DIR")
			if err := yaml.Unmarshal([]byte(text), &got); err != nil || got.Context != "here" || len(got.Users) != 1 {
				t.Fatalf("%v, context %q, users %v", err, got.Context, got.Users)
			}
			if diff := cmp.Diff(tc.wantUser, got.Users[0].User); diff != "" {
				t.Errorf("user (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.secrets, access.Secrets); diff != "" {
				t.Errorf("secrets (-want +got):\n%s", diff)
			}
			if access.Server != "https://10.0.0.1:6443" || string(access.Authority) != tc.authority {
				t.Errorf("server %q, authority %q", access.Server, access.Authority)
			}
			// What a job gets needs nothing from around it.
			again, err := cluster.Parse(access.Kubeconfig, "/nowhere")
			if diff := cmp.Diff(access, again); err != nil || diff != "" {
				t.Errorf("read again: %v (-first +again):\n%s", err, diff)
			}
		})
	}
}

func TestKubeconfigsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text, want string
	}{
		{"no YAML", "a: [", "is not a kubeconfig"},
		{"nothing in it", "", "no current-context is set"},
		{"a context that is missing", "current-context: x", `its current-context "x" is not in it`},
		{"a cluster that is missing", "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", `names the cluster "c", which is not in it`},
		{"a user that is missing", "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {}}]", `names the user "u", which is not in it`},
		{"a key that is missing", kubeconfig("a: b", "client-key: gone.key"), "client-key: open"},
		{"an authority that is no base64", kubeconfig("certificate-authority-data: \"*\"", "token: x"), "certificate-authority-data is not base64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "config", tc.text)
			_, err := cluster.File(filepath.Join(dir, "config"))(t.Context(), 0)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want %q and the name of the file", err, tc.want)
			}
		})
	}
}

func write(t *testing.T, dir, name, contents string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
}
