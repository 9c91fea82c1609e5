package mirrors

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamedIn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, config string
		want         terraformNames
	}{
		{name: "nothing", config: "disable_checkpoint = true\n"},
		{
			name:   "mirrors and a cache",
			config: "plugin_cache_dir = \"/var/cache/tf/\"\nprovider_installation {\n  filesystem_mirror {\n    path    = \"/srv/mirror\"\n    include = [\"*/*\"]\n  }\n  filesystem_mirror { path = \"/srv/other\" }\n  network_mirror { url = \"https://mirror.example.com/\" }\n}\n",
			want:   terraformNames{mirrors: []string{"/srv/mirror", "/srv/other"}, cache: "/var/cache/tf"},
		},
		{name: "what is commented out", config: "# plugin_cache_dir = \"/a\"\n// filesystem_mirror { path = \"/b\" }\n"},
		{name: "what is not absolute, or has a variable", config: "plugin_cache_dir = \"$HOME/tf\"\nprovider_installation { filesystem_mirror { path = \"mirror\" } }\n"},
	} {
		if diff := cmp.Diff(tc.want, namedIn(tc.config), cmp.AllowUnexported(terraformNames{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
