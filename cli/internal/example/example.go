// Package example owns the examples in the help of each command, the reference
// page and the manual pages.
package example

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed examples.txt
var text string

// Attach gives the commands below root their examples, but for those that bring
// their own.
func Attach(root *cobra.Command) {
	for path, lines := range Of() {
		if cmd, _, err := root.Find(strings.Fields(path)[1:]); err == nil && cmd.CommandPath() == path && cmd.Example == "" {
			cmd.Example = "  " + strings.Join(lines, "\n  ")
		}
	}
}

// Of returns the examples, by the paths of their commands: "berth apps list".
func Of() map[string][]string {
	all := map[string][]string{}
	path := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch typed, indented := strings.CutPrefix(line, "  "); {
		case line == "", strings.HasPrefix(line, "#"):
		case indented:
			all[path] = append(all[path], typed)
		default:
			path = line
		}
	}
	return all
}
