package check_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// TestTwoExactVersionsOfTerraform holds that a runner has as many versions as the
// modules of an app ask for: none of them is a reason not to deploy.
func TestTwoExactVersionsOfTerraform(t *testing.T) {
	t.Parallel()
	version := func(name, v string) string { return strings.Replace(appconfigtest.Module(name), "1.11.4", v, 1) }
	tests := []struct {
		name  string
		files map[string]string
	}{
		{"one version", map[string]string{"components/a.toml": version("a", "1.11.4")}},
		{"a range", map[string]string{"components/a.toml": version("a", ">= 1.5")}},
		{"two versions", map[string]string{"components/a.toml": version("a", "1.14.3"), "components/b.toml": version("b", "1.9.8")}},
	}
	for _, tt := range tests {
		app, diags := check.Format(appconfigtest.Folder(tt.files), appconfig.LoadOptions{})
		appconfigtest.Right(t, diags)
		if got := appconfigtest.Render(check.Unsupported(app)); got != "" {
			t.Errorf("%s: got\n%s", tt.name, got)
		}
	}
}
