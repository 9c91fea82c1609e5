package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	build := func(main, revision string) *debug.BuildInfo {
		b := &debug.BuildInfo{GoVersion: "go1.26.8"}
		b.Main.Version = main
		if revision != "" {
			b.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: revision}}
		}
		return b
	}
	for _, tc := range []struct {
		name            string
		version, commit string
		build           *debug.BuildInfo
		want            Info
		wantString      string
	}{
		{
			name:    "the linker's values win",
			version: "1.4.0", commit: "abcdef0123456789", build: build("v9.9.9", "ffff"),
			want:       Info{Version: "1.4.0", Commit: "abcdef0123456789", Go: "go1.26.8"},
			wantString: "1.4.0 (abcdef012345)",
		},
		{
			name: "plain go build in a clone", build: build("(devel)", "abc"),
			want:       Info{Version: "devel", Commit: "abc", Go: "go1.26.8"},
			wantString: "devel (abc)",
		},
		{
			name: "go install of a version", build: build("v1.2.3", ""),
			want:       Info{Version: "v1.2.3", Go: "go1.26.8"},
			wantString: "v1.2.3",
		},
		{name: "nothing known", want: Info{Version: "devel"}, wantString: "devel"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := describe(tc.version, tc.commit, tc.build)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("describe (-want +got):\n%s", diff)
			}
			if got.String() != tc.wantString {
				t.Errorf("String() = %q, want %q", got.String(), tc.wantString)
			}
		})
	}
}
