package version_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/version"
)

func TestNewer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"1.4.1", "1.4.0", true},
		{"1.4.0", "1.4.0", false},
		{"1.10.0", "1.9.9", true},
		{"1.4.0", "1.4.0-rc.1", true},
		{"1.4.0", "c88e3489", true}, // a build between releases
		{"c88e3489", "1.4.0", false},
		{"devel", "devel", false},
	} {
		if got := version.Newer(tc.a, tc.b); got != tc.want {
			t.Errorf("Newer(%q, %q) = %t", tc.a, tc.b, got)
		}
	}
}

func TestSkew(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, controlPlane, runner, want string
	}{
		{"the same", "1.4.0", "1.4.0", ""},
		{"another patch, newer", "1.4.0", "1.4.9", ""},
		{"one behind", "1.4.0", "1.3.7", ""},
		{"two behind", "1.4.0", "1.2.0", ""},
		{"three behind", "1.4.0", "1.1.9", "more than 2 minor versions behind"},
		{"one ahead", "1.4.0", "1.5.0", "update the control plane first"},
		{"another major version", "2.0.0", "1.9.0", "different major versions"},
		{"a control plane between releases", "c88e3489", "1.4.0", ""},
		{"a runner between releases", "1.4.0", "devel", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := version.Skew(tc.controlPlane, tc.runner)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
