package clusterneeds

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/permissions"
)

// What a folder applies goes to the engine rendered, and what cannot be known of
// it is named with its place.
func TestGather(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{}
	for name, text := range map[string]string{
		"metadata.toml":          "",
		"runner.toml":            "runner_type = \"local\"\nhelm_driver = \"configmap\"\n",
		"sandbox.toml":           "terraform_version = \"1.5.0\"\n[berth]\nlocal_source = \"src/base\"\n",
		"src/base/main.tf":       "locals {}\n\nprovider \"kubernetes\" {}\n",
		"components/web.toml":    "name = \"web\"\ntype = \"helm_chart\"\nchart_name = \"shop\"\nnamespace = \"{{ .nuon.sandbox.outputs.namespace }}\"\n[berth]\nlocal_source = \"src/chart\"\n[values]\n\"a.b\" = \"{{ .nuon.install.name }}\"\n",
		"src/chart/Chart.yaml":   "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"components/far.toml":    "name = \"far\"\ntype = \"helm_chart\"\nchart_name = \"far\"\n[public_repo]\nrepo = \"acme/charts\"\ndirectory = \"far\"\n",
		"components/extras.toml": "name = \"extras\"\ntype = \"kubernetes_manifest\"\nnamespace = \"fixed\"\nmanifest = \"./extras.yaml\"\n",
		"components/extras.yaml": "kind: Service\n",
		"secrets.toml":           "[[secret]]\nname = \"token\"\ndescription = \"d\"\n[[secret.kubernetes_sync_targets]]\nnamespaces = [\"jobs\", \"{{ .nuon.sandbox.outputs.namespace }}\"]\nname = \"api\"\n",
		"actions/look.toml":      "name = \"look\"\n[[steps]]\nname = \"a\"\ncommand = \"kubectl get pods\"\n[[triggers]]\ntype = \"manual\"\n",
		"actions/quiet.toml":     "name = \"quiet\"\n[[steps]]\nname = \"a\"\ncommand = \"true\"\n[[triggers]]\ntype = \"manual\"\n",
	} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	app, _ := appconfig.Load(root, appconfig.LoadOptions{})
	state := check.MadeUpState(app)
	if err := Set(state, map[string]string{"sandbox.outputs.namespace": "shop-acme", "install.name": "acme"}); err != nil {
		t.Fatal(err)
	}
	g := gathering{folder: appfolder.Folder{Written: "app", Root: root}, app: app, state: state, now: time.Now(), storage: map[string]string{}}
	g.all()
	want := []permissions.Source{
		{Component: "extras", Namespace: "fixed", Manifest: "kind: Service\n", File: "components/extras.yaml"},
		{Component: "web", Namespace: "shop-acme", Chart: "app/src/chart", File: "src/chart", Release: "shop", Values: map[string]string{"a.b": "acme"}},
	}
	if diff := cmp.Diff(want, g.sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if g.copies == nil || len(g.copies.Secrets) != 2 || g.copies.Secrets[1] != (permissions.Copy{Namespace: "shop-acme", Name: "api"}) {
		t.Errorf("copies of secrets: %+v", g.copies)
	}
	if g.storage["web"] != "configmaps" {
		t.Errorf("releases are kept in %q", g.storage["web"])
	}
	var from []string
	for _, n := range g.unknown {
		from = append(from, n.From)
	}
	if diff := cmp.Diff([]string{"sandbox (src/base/main.tf:3)", "far (components/far.toml)", "action look (actions/look.toml:1)"}, from); diff != "" {
		t.Errorf("unknown (-want +got):\n%s\n%v", diff, g.unknown)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	app, err := Asked{
		Grants: []string{"get,list:services/proxy", "patch:deployments.apps/scale"}, Kinds: []string{"example.com/Boat=boats", "example.com/Fleet=fleets:cluster"}, Allow: []string{"bind"},
	}.parse()
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, r := range app.Grants {
		rules = append(rules, r.String())
	}
	if diff := cmp.Diff([]string{"services/proxy: get, list", "deployments/scale.apps: patch"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	kinds := []permissions.Kind{{Group: "example.com", Kind: "Boat", Resource: "boats", Namespaced: true}, {Group: "example.com", Kind: "Fleet", Resource: "fleets"}}
	if diff := cmp.Diff(kinds, app.Kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	for _, bad := range []Asked{{Grants: []string{"get"}}, {Grants: []string{":pods"}}, {Kinds: []string{"Boat=boats"}}, {Kinds: []string{"a/Boat=boats:x"}}, {Allow: []string{"get"}}} {
		if _, err := bad.parse(); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestSetNamesWrongPaths(t *testing.T) {
	t.Parallel()
	if err := Set(check.MadeUpState(&appconfig.App{}), map[string]string{"a..b": "c"}); err == nil || !strings.Contains(err.Error(), "a..b") {
		t.Errorf("got %v", err)
	}
}
