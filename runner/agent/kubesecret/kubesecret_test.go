package kubesecret_test

import (
	"testing"

	"github.com/berth-dev/berth/runner/agent/kubesecret"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, taken := range map[string]bool{
		"vault/shop:api-token": true, "vault/shop.v2:TLS.crt_1": true,
		"": false, "shop:key": false, "vault/shop": false, "vault/:key": false, "/shop:key": false, "vault/shop:": false,
		"Vault/shop:key": false, "vault/../other/secrets/x:key": false, "vault/shop?watch=1:key": false, "vault/shop:a/b": false, "-v/shop:key": false,
	} {
		p, err := kubesecret.Parse(text)
		if (err == nil) != taken || taken && p.String() != text {
			t.Errorf("Parse(%q) = %v, %v", text, p, err)
		}
	}
}

func TestConnectNamesNoCluster(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{{}, {"KUBECONFIG": "/a:/b"}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}} {
		if _, err := kubesecret.Connect(t.Context(), "", func(name string) string { return env[name] }); err == nil {
			t.Errorf("with %v it found a cluster", env)
		}
	}
}
