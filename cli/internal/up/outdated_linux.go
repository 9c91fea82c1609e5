package up

import (
	"fmt"
	"os"
	"strings"
)

// isOutdated tells whether a process runs an executable that has been replaced
// by another file since.
func isOutdated(pid int) bool {
	link := fmt.Sprintf("/proc/%d/exe", pid)
	path, err := os.Readlink(link)
	if err != nil {
		return false
	}
	runs, err := os.Stat(link) // also of a file that is gone
	if err != nil {
		return false
	}
	there, err := os.Stat(strings.TrimSuffix(path, " (deleted)"))
	return err == nil && !os.SameFile(runs, there)
}
