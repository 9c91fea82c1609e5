package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shared are directories in which every user of a machine may leave files.
var shared = []string{"/tmp", "/var/tmp", "/dev/shm"}

// Private returns the directories that an engine gets empty, and those of the
// given paths that would vanish with them.
func Private(needed ...string) (private, keep []string) {
	for _, dir := range shared {
		path, err := filepath.EvalSymlinks(dir)
		if err == nil && !slices.Contains(private, path) {
			private = append(private, path)
		}
	}
	for _, path := range needed {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		for _, p := range []string{path, resolved} {
			if below(p, private) && !slices.Contains(keep, p) {
				keep = append(keep, p)
			}
		}
	}
	slices.Sort(keep) // a directory comes before what is in it
	return private, keep
}

func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return strings.HasPrefix(path, dir+string(os.PathSeparator))
	})
}
