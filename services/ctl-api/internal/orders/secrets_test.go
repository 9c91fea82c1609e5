package orders_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

func TestSecretsOfAnApp(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(appconfigtest.Folder(map[string]string{
		"secrets.toml": `[[secret]]
name = "token"
display_name = "Token"
description = "of the API"
required = true
user_configurable = true
[[secret]]
name = "key"
description = "signs"
auto_generate = true
format = "base64"
[[secret]]
name = "mode"
description = "how"
default = "careful one"
[[secret]]
name = "extra"
description = "may be"
`,
	}), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	mode := "careful one"
	want := []customersecret.Declaration{
		{Name: "extra", Description: "may be"},
		{Name: "key", Description: "signs", AutoGenerate: true, Format: "base64"},
		{Name: "mode", Description: "how", Default: &mode},
		{Name: "token", Description: "Token: of the API", Required: true, UserConfigurable: true},
	}
	got := orders.Secrets(app)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
	for i, needed := range []bool{false, true, true, true} {
		if got[i].Needed() != needed {
			t.Errorf("%s is needed: %v", got[i].Name, !needed)
		}
	}
}

func TestSecretCopies(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(appconfigtest.Folder(map[string]string{
		"secrets.toml": `[[secret]]
name = "token"
description = "of the API"
required = true
kubernetes_sync = true
kubernetes_secret_namespace = "{{ .nuon.install.id }}"
kubernetes_secret_name = "api"
[[secret]]
name = "cert"
description = "of the shop"
format = "base64"
[[secret.kubernetes_sync_targets]]
namespaces = ["shop", "jobs"]
name = "tls"
key = "tls.crt"
[[secret.kubernetes_sync_targets]]
namespaces = ["shop"]
name = "copy"
[[secret]]
name = "elsewhere"
description = "in templates only"
kubernetes_secret_namespace = "ignored"
kubernetes_secret_name = "without-kubernetes-sync"
`,
	}), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	want := []jobspec.SecretCopy{
		{Secret: "cert", Format: "base64", Namespace: "shop", Name: "tls", Key: "tls.crt"},
		{Secret: "cert", Format: "base64", Namespace: "jobs", Name: "tls", Key: "tls.crt"},
		{Secret: "cert", Format: "base64", Namespace: "shop", Name: "copy", Key: "value"},
		{Secret: "token", Namespace: "{{ .nuon.install.id }}", Name: "api", Key: "value"},
	}
	if diff := cmp.Diff(want, orders.SecretCopies(app)); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
}
