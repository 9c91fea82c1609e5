// Package manual owns the manual pages of the command line: one per command, made
// from what the commands say of themselves.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/berth-dev/berth/pkg/version"
)

// Write writes the pages of root and of every command below it that its help shows
// into a folder, which it makes. When is the date on them.
func Write(root *cobra.Command, dir string, when time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	when = when.UTC()
	root.DisableAutoGenTag = true // the header has the date
	return doc.GenManTree(root, &doc.GenManHeader{
		Section: "1", Date: &when, Source: "berth " + version.Get().Version, Manual: "Berth",
	}, dir)
}

// Command is berth man.
func Command(args cobra.PositionalArgs, now func() time.Time) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages for every command",
		Long: `Writes a manual page for each command into the folder, which it creates if needed:
berth.1, berth-deploy.1, berth-apps-list.1 and so on. man finds pages in the folders of
MANPATH and, without it, in /usr/local/share/man and, on most systems, in
~/.local/share/man.`,
		Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := Write(cmd.Root(), args[0], now()); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "manual pages are in %s; to read one: man -l %s\n", args[0], filepath.Join(args[0], "berth-deploy.1"))
			return err
		},
	}
}
