package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// build builds executables as `make build` does, and returns what it says.
func build(ctx context.Context, root string, names []string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "dev", "scripts", "build.sh"), names...)
	cmd.Dir = root
	cmd.WaitDelay = 5 * time.Second // for the compilers that it leaves when it is killed
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mistakes remember what a build said, so that the same is not said twice.
type mistakes struct{ said string }

// tell returns the lines to show for a build that failed.
func (m *mistakes) tell(out string, err error) []string {
	lines := compileErrors(out)
	if len(lines) == 0 {
		lines = []string{err.Error()}
	}
	said := strings.Join(lines, "\n")
	if said == m.said {
		return []string{"✗ still " + lines[0]}
	}
	m.said = said
	return append(lines, "✗ nothing was restarted: it does not compile")
}

// place is how an error of the compiler begins.
var place = regexp.MustCompile(`^[^\s:]+\.\w+:\d+(:\d+)?: `)

// compileErrors are the lines of a failed build that matter: first those with a
// file and a line, each with what is indented below it, then all others.
func compileErrors(out string) []string {
	var placed, others []string
	into := &others
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "", strings.HasPrefix(line, "# "): // names the package
			continue
		case place.MatchString(line):
			into = &placed
		case !strings.HasPrefix(line, "\t"):
			into = &others
		}
		*into = append(*into, line)
	}
	return append(placed, others...)
}
