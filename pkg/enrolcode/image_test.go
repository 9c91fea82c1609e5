package enrolcode_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/enrolcode"
)

func TestCheckImage(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0f", 32)
	for image, good := range map[string]bool{
		"registry.example.com/berth/runner" + digest:          true,
		"registry.example.com:5000/berth/runner:1.0" + digest: true, // the tag is for people
		"registry.example.com/berth/runner:1.0":               false,
		"registry.example.com/berth/runner":                   false,
		"berth/runner@sha256:abc":                             false,
		digest:                                                false,
		"berth/ru nner" + digest:                              false,
		"":                                                    false,
	} {
		if err := enrolcode.CheckImage(image); (err == nil) != good {
			t.Errorf("%q: %v, want good: %t", image, err, good)
		}
	}
}
