package up

import (
	"fmt"
	"os"
	"strings"
)

// isOutdated tells whether a process runs an executable that has been replaced by
// another file since. path is what was started, which may be a link; "" takes the
// file that it was then.
func isOutdated(pid int, path string) bool {
	link := fmt.Sprintf("/proc/%d/exe", pid)
	if path == "" {
		file, err := os.Readlink(link)
		if err != nil {
			return false
		}
		path = strings.TrimSuffix(file, " (deleted)")
	}
	runs, err := os.Stat(link) // also of a file that is gone
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && !os.SameFile(runs, there)
}
