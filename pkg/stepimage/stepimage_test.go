package stepimage_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/stepimage"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0f", 32)
	for image, good := range map[string]bool{
		"registry.example.com/tools" + digest:                            true,
		"registry.example.com/team/tools:1.2" + digest:                   true, // the tag is for people
		"127.0.0.1:30500/components/tools-res01abc" + digest:             true,
		"[::1]:5000/tools" + digest:                                      true,
		"localhost/tools" + digest:                                       true,
		"registry:5000/tools" + digest:                                   true,
		"registry.example.com/tools:1.2":                                 false,
		"registry.example.com/tools":                                     false,
		"tools" + digest:                                                 false, // whose?
		"team/tools" + digest:                                            false,
		"registry.example.com/tools@sha256:abc":                          false,
		"registry.example.com/tools" + strings.ToUpper(digest):           false,
		"registry.example.com/tools" + digest + "0":                      false,
		"registry.example.com/tools" + digest + "\n":                     false,
		"registry.example.com/tools" + digest + digest:                   false,
		"registry.example.com/to ols" + digest:                           false,
		"registry.example.com/../tools" + digest:                         false,
		"https://registry.example.com/tools" + digest:                    false,
		"user:password@registry.example.com/tools" + digest:              false,
		"{{ .nuon.components.tools.outputs.image.repository }}" + digest: false,
		"r.io/" + strings.Repeat("a", 600) + digest:                      false,
		digest: false,
		"":     false,
	} {
		if err := stepimage.Check(image); (err == nil) != good {
			t.Errorf("%q: %v, want good: %t", image, err, good)
		}
	}
}
