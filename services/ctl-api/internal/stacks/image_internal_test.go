package stacks

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/internal/fault"
)

// No code names an image that a tag decides.
func TestImageOfCodes(t *testing.T) {
	t.Parallel()
	for image, good := range map[string]bool{
		"": true, // each customer names one
		"registry.example.com/berth/runner@sha256:" + strings.Repeat("0f", 32): true,
		"registry.example.com/berth/runner:1.0":                                false,
	} {
		err := (&Service{RunnerImage: image}).checkImage()
		if (err == nil) != good || err != nil && (!errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "BERTH_RUNNER_IMAGE")) {
			t.Errorf("%q: %v, want good: %t", image, err, good)
		}
	}
}
