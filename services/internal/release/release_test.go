package release_test

import (
	"testing"

	"github.com/berth-dev/berth/services/internal/release"
)

// Digests are stored: the same release must have the same one in all versions
// of Berth, and whichever service makes it.
func TestDigestStaysTheSame(t *testing.T) {
	t.Parallel()
	one := release.Item{ComponentID: "cmp_1", ArtifactDigest: "sha256:a1", BuildID: "bld_1"}
	two := release.Item{ComponentID: "cmp_2", ArtifactDigest: "sha256:a2", BuildID: "bld_2"}
	rebuilt := two
	rebuilt.BuildID = "bld_3"
	moved := two
	moved.ArtifactDigest = "sha256:a3"
	// sha256sum of ["berth/release/v1","sha256:c0",{"cmp_1":"sha256:a1","cmp_2":"sha256:a2"}]
	const known = "sha256:60fd5ac0fe03dfdeb587257e6c9c117d74a4135f9340979b4c69d4b21972fe69"
	tests := []struct {
		name   string
		config string
		items  []release.Item
		same   bool
	}{
		{name: "a config and its artifacts", config: "sha256:c0", items: []release.Item{one, two}, same: true},
		{name: "in another order", config: "sha256:c0", items: []release.Item{two, one}, same: true},
		{name: "another build of the same artifact", config: "sha256:c0", items: []release.Item{one, rebuilt}, same: true},
		{name: "another artifact", config: "sha256:c0", items: []release.Item{one, moved}},
		{name: "another config", config: "sha256:c1", items: []release.Item{one, two}},
		{name: "a component less", config: "sha256:c0", items: []release.Item{one}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := release.Digest(tt.config, tt.items); (got == known) != tt.same {
				t.Errorf("digest %s; the same as %s: want %v", got, known, tt.same)
			}
		})
	}
}
