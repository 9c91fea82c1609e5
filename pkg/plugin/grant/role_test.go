package grant_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/plugin/grant"
)

func TestParseRoles(t *testing.T) {
	t.Parallel()
	got, err := grant.ParseRoles([]string{"deploy", "{{.berth.install.id}}-repair"})
	if diff := cmp.Diff([]string{"deploy", "{{ .nuon.id }}-repair"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, list := range [][]string{{""}, {" deploy"}, {"a\nb"}, {strings.Repeat("x", 300)}, {"deploy", "deploy"}, {"{{.nuon.id}}-a", "{{ .nuon.id }}-a"}, strings.Split("a b c d e f g h i j k", " ")} {
		if got, err := grant.ParseRoles(list); err == nil {
			t.Errorf("%q reads as %q", list, got)
		}
	}
}
