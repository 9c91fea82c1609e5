// Package version says which Berth this executable is.
package version

import (
	"runtime/debug"
	"sync"
)

// Set by the linker in `make build` and in releases; read them through Get.
var (
	Version string // 1.4.0, or 1.4.0-3-gabcdef0 between releases
	Commit  string // the full commit, empty outside of a clone
)

// Info is what `berth version` and the services' start-up lines show.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

// Get returns what is known about the executable. Without the linker's values
// it takes what `go build` recorded; Version is then "devel".
var Get = sync.OnceValue(func() Info {
	build, _ := debug.ReadBuildInfo()
	return describe(Version, Commit, build)
})

func describe(version, commit string, build *debug.BuildInfo) Info {
	info := Info{Version: version, Commit: commit}
	if build != nil {
		info.Go = build.GoVersion
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" && info.Commit == "" {
				info.Commit = s.Value
			}
		}
		if v := build.Main.Version; info.Version == "" && v != "(devel)" {
			info.Version = v
		}
	}
	if info.Version == "" {
		info.Version = "devel"
	}
	return info
}

// String is the version for a person: "1.4.0 (abcdef012345)".
func (i Info) String() string {
	if i.Commit == "" {
		return i.Version
	}
	return i.Version + " (" + i.Commit[:min(len(i.Commit), 12)] + ")"
}
