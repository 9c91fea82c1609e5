package buildkit_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/buildkit"
)

// Each kind of machine, and each choice of platforms, has a cache of its own.
func TestCacheTag(t *testing.T) {
	t.Parallel()
	many := strings.Split(strings.Repeat("linux/amd64,", 20), ",")
	for _, tt := range []struct {
		platforms []string
		want      string
	}{
		{nil, "on-linux-arm64"},
		{[]string{"linux/arm64", "linux/amd64"}, "on-linux-arm64-for-linux-amd64_linux-arm64"},
		{[]string{"linux/arm/v7"}, "on-linux-arm64-for-linux-arm-v7"},
	} {
		k := buildkit.Kept{Docker: &jobspec.Docker{Platforms: tt.platforms}}
		if got := k.Tag("arm64"); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.platforms, got, tt.want)
		}
	}
	if got := (buildkit.Kept{Docker: &jobspec.Docker{Platforms: many}}).Tag("arm64"); len(got) > 128 {
		t.Errorf("no registry takes the tag %s", got)
	}
}

// An agent asks for no cache but one of its org's, whatever an order says, and a
// registry that does not answer is a line in the log.
func TestAttackCacheOfOthers(t *testing.T) {
	t.Parallel()
	s := buildkit.New(buildkit.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	asked := ""
	remote := func(_ context.Context, repository string) (oci.Remote, error) {
		asked = repository
		return oci.Remote{}, errors.New("the registry is away")
	}
	left, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = left.Close() })
	for _, repository := range []string{"org_2/build.cache/app/cmp", "org_1/shop/web", "org_1/../org_2/build.cache/app/cmp", "org_12/build.cache/app/cmp", "build.cache/app/cmp"} {
		k := buildkit.Kept{Org: "org_1", Repository: repository, Docker: &jobspec.Docker{}, Remote: remote}
		dir := filepath.Join(t.TempDir(), "cache")
		for _, line := range []string{s.BringCache(t.Context(), k, dir), s.KeepCache(t.Context(), k, left)} {
			if !strings.Contains(line, "no place for a cache of this org") || asked != "" {
				t.Errorf("%s: %q, asked for %q", repository, line, asked)
			}
		}
	}
	own := buildkit.Kept{Org: "org_1", Repository: "org_1/build.cache/app/cmp", Docker: &jobspec.Docker{}, Remote: remote}
	if line := s.BringCache(t.Context(), own, filepath.Join(t.TempDir(), "cache")); !strings.Contains(line, "building without the cache") || asked != own.Repository {
		t.Errorf("%q, asked for %q", line, asked)
	}
	own.Repository = ""
	if line := s.BringCache(t.Context(), own, t.TempDir()); line != "" {
		t.Errorf("a build without a cache says %q", line)
	}
}
