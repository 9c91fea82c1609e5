package check_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// TestTwoExactVersionsOfTerraform holds that what no runner can have is listed among
// what cannot be deployed, once for each further version.
func TestTwoExactVersionsOfTerraform(t *testing.T) {
	t.Parallel()
	version := func(name, v string) string { return strings.Replace(appconfigtest.Module(name), "1.11.4", v, 1) }
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"one version", map[string]string{"components/a.toml": version("a", "1.11.4")}, ""},
		{"a range", map[string]string{"components/a.toml": version("a", ">= 1.5")}, ""},
		{"two versions", map[string]string{"components/a.toml": version("a", "1.14.3"), "components/b.toml": version("b", "1.14.3")},
			"components/a.toml:3:1 warning a runner has one version of Terraform, and terraform_version is 1.14.3 here and 1.11.4 at sandbox.toml:1; it waits for runners with several: " +
				"write ranges that agree, such as \">= 1.11.4\"\n"},
	}
	for _, tt := range tests {
		app, diags := check.Format(appconfigtest.Folder(tt.files), appconfig.LoadOptions{})
		appconfigtest.Right(t, diags)
		if got := appconfigtest.Render(check.Unsupported(app)); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}
