package toolchain

import (
	"errors"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// have reads programs such as "path:1.9.8".
func have(t *testing.T, list string) []program {
	t.Helper()
	origins := map[string]origin{"named": named, "mirror": mirror, "path": onPath, "kept": kept}
	var all []program
	for _, text := range strings.Fields(list) {
		from, version, _ := strings.Cut(text, ":")
		all = append(all, program{version: semver.MustParse(version), from: origins[from], path: text})
	}
	return all
}

// of is the rules, of a tool by its name.
func (r rules) of(tool string) rules {
	r.vendor = tfprogram.Terraform
	if tool == tfprogram.OpenTofu.Tool {
		r.vendor = tfprogram.OpenTofu
	}
	return r
}

func TestChoose(t *testing.T) {
	t.Parallel()
	open, closed := rules{downloads: true}, rules{}
	for _, tc := range []struct {
		name, want, have string
		rules            rules
		tool             string // "" for Terraform
		program, fetch   string
		err              string
	}{
		{name: "an exact version that is on PATH", want: "1.9.8", have: "path:1.11.4 path:1.9.8", rules: open, program: "path:1.9.8"},
		{name: "the order of sources", want: "1.9.8", have: "kept:1.9.8 path:1.9.8 mirror:1.9.8 named:1.11.4", rules: open, program: "mirror:1.9.8"},
		{name: "the operator's own is no other version", want: "1.9.8", have: "named:1.11.4 kept:1.9.8", rules: closed, program: "kept:1.9.8"},
		{name: "an exact version is fetched", want: "1.9.8", have: "named:1.11.4 path:1.9.7", rules: open, fetch: "1.9.8"},
		{name: "written otherwise", want: " = v1.9.8", have: "path:1.9.7", rules: open, fetch: "1.9.8"},
		{name: "downloads are forbidden", want: "1.9.8", have: "named:1.11.4 path:1.9.7", rules: closed, err: "no terraform 1.9.8 is on this runner, which has 1.11.4, 1.9.7; downloads are forbidden"},
		{name: "same minor", want: "1.9.8", have: "named:1.11.4 path:1.9.2 path:1.9.7 kept:1.9.3", rules: rules{sameMinor: true, downloads: true}, program: "path:1.9.7"},
		{name: "same minor prefers the exact one", want: "1.9.2", have: "path:1.9.7 kept:1.9.2", rules: rules{sameMinor: true}, program: "kept:1.9.2"},
		{name: "same minor takes no other minor", want: "1.9.8", have: "path:1.10.0", rules: rules{sameMinor: true}, err: "no terraform 1.9.8"},
		{name: "same minor takes no prerelease", want: "1.9.8", have: "path:1.9.9-beta1", rules: rules{sameMinor: true}, err: "no terraform 1.9.8"},
		{name: "same minor is opt-in", want: "1.9.8", have: "path:1.9.7", rules: closed, err: "no terraform 1.9.8"},
		{name: "a range takes the newest that fits", want: ">= 1.9, < 1.12", have: "mirror:1.9.8 path:1.11.4 mirror:1.12.2", rules: open, program: "path:1.11.4"},
		{name: "a range takes the operator's own where it fits", want: ">= 1.9", have: "named:1.10.0 path:1.11.4", rules: open, program: "named:1.10.0"},
		{name: "a range that the operator's own does not fit", want: ">= 1.11", have: "named:1.10.0 path:1.11.4", rules: open, program: "path:1.11.4"},
		{name: "what another module wanted decides nothing", want: "", have: "path:1.11.4 kept:1.14.0", rules: open, program: "path:1.11.4"},
		{name: "nor where there is nothing else", want: "", have: "kept:1.14.0", rules: open, fetch: "1.11.4"},
		{name: "it is there already", want: "", have: "kept:1.14.0 kept:1.11.4", rules: open, program: "kept:1.11.4"},
		{name: "better than nothing", want: "", have: "kept:1.14.0", rules: closed, program: "kept:1.14.0"},
		{name: "a range that ours does not fit", want: "~> 1.5.0", have: "kept:1.5.7", rules: open, program: "kept:1.5.7"},
		{name: "a range is not looked up", want: "~> 1.5.0", have: "path:1.11.4", rules: open, err: "no terraform ~> 1.5.0 is on this runner, which has 1.11.4"},
		{name: "nothing at all", want: "", rules: closed, err: "no terraform is on this runner, and no other; downloads are forbidden"},
		{name: "any OpenTofu", tool: "opentofu", have: "kept:1.9.0", rules: open, fetch: "1.12.6"},
		{name: "an OpenTofu that is nowhere", tool: "opentofu", want: "1.9.8", have: "path:1.12.6", rules: closed, err: "no opentofu 1.9.8 is on this runner, which has 1.12.6; downloads are forbidden"},
		{name: "nonsense", want: "one", rules: open, err: "neither a version nor a range"},
		{name: "a build of somebody's", want: "1.9.8+mine", rules: open, err: "no release is called so"},
		{name: "a prerelease by name", want: "1.15.0-beta1", have: "path:1.15.0-beta1", rules: closed, program: "path:1.15.0-beta1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(tc.want, have(t, tc.have), tc.rules.of(tc.tool))
			if tc.err != "" {
				if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %+v, %v; want an error with %q", got, err, tc.err)
				}
				return
			}
			path := ""
			if got.program != nil {
				path = got.program.path
			}
			if err != nil || path != tc.program || got.fetch != tc.fetch {
				t.Errorf("got %q, to fetch %q, %v; want %q, %q", path, got.fetch, err, tc.program, tc.fetch)
			}
		})
	}
}
