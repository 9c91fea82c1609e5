package check_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestVariableReads(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"sandbox.toml": "terraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"acme/sandboxes\"\ndirectory = \"aws\"\nbranch = \"main\"\n" +
			"[vars]\nzone = \"{{ .nuon.app.variables.zone }}\"\n",
		"components/api.toml":   appconfigtest.Module("api", "[[var_file]]", `contents = "./api.tfvars"`, "[vars]", `name = "{{ .nuon.app.name }} {{ .nuon.app.status }}"`),
		"components/api.tfvars": "a = 1\nb = \"{{ .berth.app.variables.token }}\"\nc = \"{{ index .nuon.app.variables \"a-b\" }}\"\n",
		"components/web.toml":   appconfigtest.Module("web", "[vars]", `any = "{{ index .nuon.app.variables .nuon.name }}"`, `all = "{{ toJson .nuon.app }}"`),
		"actions/look.toml":     "name = \"look\"\n[[steps]]\nname = \"s\"\ncommand = \"echo {{ with .nuon.app }}{{ .variables.region }}{{ end }}\"\n",
		"README.md":             "# {{ .nuon.app.variables.title }}\n",
		"metadata.toml":         "version = \"v2\"\ndisplay_name = \"X\"\ndescription = \"X.\"\nreadme = \"./README.md\"\n",
	}))
	want := []check.VariableRead{
		{Variable: "title", Reference: ".nuon.app.variables.title", File: "README.md", Line: 1, Column: 6},
		{Kind: "sandbox", Name: "sandbox", Variable: "zone", Reference: ".nuon.app.variables.zone", File: "sandbox.toml", Line: 7, Column: 1},
		{Kind: "component", Name: "api", Variable: "token", Reference: ".nuon.app.variables.token", File: "components/api.tfvars", Line: 2, Column: 9},
		{Kind: "component", Name: "api", Variable: "a-b", Reference: ".nuon.app.variables.a-b", File: "components/api.tfvars", Line: 3, Column: 9},
		{Kind: "component", Name: "web", Reference: ".nuon.app", File: "components/web.toml", Line: 6, Column: 1},
		{Kind: "component", Name: "web", Reference: ".nuon.app.variables.*", File: "components/web.toml", Line: 5, Column: 1},
		{Kind: "action", Name: "look", Reference: ".nuon.app", File: "actions/look.toml", Line: 4, Column: 1}, // with holds all of it
		{Kind: "action", Name: "look", Variable: "region", Reference: ".nuon.app.variables.region", File: "actions/look.toml", Line: 4, Column: 1},
	}
	if diff := cmp.Diff(want, check.VariableReads(app)); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}

	// The same are read by the config as it is stored.
	raw, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	var stored appconfig.App
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	var names, storedNames []string
	for _, r := range want {
		names = append(names, r.Kind+"/"+r.Name+" "+r.Variable)
	}
	for _, r := range check.VariableReads(&stored) {
		storedNames = append(storedNames, r.Kind+"/"+r.Name+" "+r.Variable)
	}
	if diff := cmp.Diff(names, storedNames); diff != "" {
		t.Errorf("reads of the stored config (-want +got):\n%s", diff)
	}
	// Without the control plane nobody knows which there are.
	for _, d := range check.Validate(app) {
		if d.Code == place.CodeReference {
			t.Errorf("validate says something about variables: %s", d)
		}
	}
}
