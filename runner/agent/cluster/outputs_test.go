package cluster_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/cluster"
)

const pemText = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

func TestFromOutputs(t *testing.T) {
	t.Parallel()
	config := kubeconfig("certificate-authority-data: "+b64("-CA-"), "token: s3cret-token")
	for _, tc := range []struct {
		name      string
		outputs   map[string]any
		server    string
		authority string
		secrets   string
	}{
		{"a kubeconfig as text", map[string]any{"kubeconfig": config, "cluster": map[string]any{"endpoint": "elsewhere"}}, "https://10.0.0.1:6443", "-CA-", "s3cret-token"},
		{"a kubeconfig inside of cluster", map[string]any{"cluster": map[string]any{"kubeconfig": config}}, "https://10.0.0.1:6443", "-CA-", "s3cret-token"},
		{"a kubeconfig as an object", map[string]any{"kubeconfig": map[string]any{
			"current-context": "x", "contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "c", "user": "u"}}},
			"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "https://k"}}},
			"users":    []any{map[string]any{"name": "u", "user": map[string]any{"username": "me", "password": "pass-word"}}},
		}}, "https://k", "", "pass-word"},
		{"an endpoint, an authority in base64 and a token", map[string]any{"cluster": map[string]any{
			"name": "west", "endpoint": "https://k:6443", "certificate_authority_data": b64(pemText), "token": "s3cret-token",
		}}, "https://k:6443", pemText, "s3cret-token"},
		{"an endpoint that is a host, PEM as it is, a client certificate, without cluster", map[string]any{
			"endpoint": "k", "certificate_authority_data": pemText, "client_certificate_data": pemText, "client_key_data": b64(pemText),
		}, "https://k", pemText, pemText},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			access, err := cluster.FromOutputs(tc.outputs)
			if err != nil {
				t.Fatal(err)
			}
			if access.Server != tc.server || string(access.Authority) != tc.authority || strings.Join(access.Secrets, " ") != tc.secrets {
				t.Errorf("server %q, authority %q, secrets %q", access.Server, access.Authority, access.Secrets)
			}
			if strings.Contains(string(access.Kubeconfig), "elsewhere") {
				t.Errorf("it holds another context:\n%s", access.Kubeconfig)
			}
		})
	}
}

// Outputs are the vendor's: they cannot have the agent read a file, run a command,
// trust anybody, or speak in the clear. No error quotes a secret.
func TestOutputsThatAreRefused(t *testing.T) {
	t.Parallel()
	given := func(cluster, user string) map[string]any {
		return map[string]any{"kubeconfig": kubeconfig(cluster, user)}
	}
	of := func(more map[string]any) map[string]any {
		c := map[string]any{"endpoint": "https://k", "token": "s3cret-token"}
		for k, v := range more {
			c[k] = v
		}
		return map[string]any{"cluster": c}
	}
	for _, tc := range []struct {
		name    string
		outputs map[string]any
		want    string
	}{
		{"nothing", nil, "no kubeconfig"},
		{"an address alone", map[string]any{"cluster": map[string]any{"endpoint": "https://k"}}, "no credentials"},
		{"a certificate without its key", of(map[string]any{"token": "", "client_certificate_data": pemText}), "no credentials"},
		{"a token's file", given("tls-server-name: x", "tokenFile: /etc/passwd"), "tokenFile"},
		{"a key's file", given("tls-server-name: x", "token: s3cret-token, client-key: /etc/passwd"), "client-key"},
		{"an authority's file", given("certificate-authority: /etc/passwd", "token: s3cret-token"), "certificate-authority"},
		{"a command", given("tls-server-name: x", "exec: {command: /bin/sh}"), "exec"},
		{"a command of an older form", given("tls-server-name: x", "auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}"), "auth-provider"},
		{"a server that proves nothing", given("insecure-skip-tls-verify: true", "token: s3cret-token"), "insecure-skip-tls-verify"},
		{"a proxy", given("proxy-url: http://proxy", "token: s3cret-token"), "proxy-url"},
		{"somebody else's name", given("tls-server-name: x", "token: s3cret-token, as: system:admin"), "as"},
		{"a token that is no text", given("tls-server-name: x", "token: [s3cret-token]"), "token"},
		{"an address in the clear", of(map[string]any{"endpoint": "http://k"}), "https"},
		{"a password in the address", of(map[string]any{"endpoint": "https://me:s3cret-token@k"}), "https"},
		{"an authority that is none", of(map[string]any{"certificate_authority_data": base64.StdEncoding.EncodeToString([]byte("s3cret-token"))}), "PEM"},
		{"no YAML", map[string]any{"kubeconfig": "a: [s3cret-token"}, "that is none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			access, err := cluster.FromOutputs(tc.outputs)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret-token") {
				t.Errorf("%v, want an error with %q; access:\n%s", err, tc.want, access.Kubeconfig)
			}
		})
	}
}
