package main

import (
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig"
)

func (c *cli) appsFmtCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt [DIR]",
		Short: "Give the TOML files of an app folder their one form",
		Long: `Rewrites the TOML files that belong to the app and prints the names of those that
changed: equal signs stand below each other, one empty line stands before each
table, lists of several lines are indented. Keys, comments and strings stay as they
are, in their order; a file means the same as before. A file that is not TOML is
told and left alone, and the exit code is 1.`,
		Example: "  berth apps fmt\n  berth apps fmt ./app --check",
		Args:    exactly("[DIR]"),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			return c.formatFolder(folder, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; exit code 2 when a file has another form")
	return cmd
}

func (c *cli) formatFolder(folder appfolder.Folder, check bool) error {
	app, found := appconfig.Load(folder.Root, appconfig.LoadOptions{})
	if len(app.Origin.Files) == 0 {
		for _, d := range folder.Located(found) {
			output.Println(c.err, d)
		}
		return fmt.Errorf("%s is no app folder", folder.Written)
	}
	changed, refused := 0, 0
	for _, file := range app.Origin.Files {
		if path.Ext(file.Path) != ".toml" {
			continue
		}
		differs, problem, err := folder.Format(file.Path, !check)
		switch {
		case err != nil:
			return err
		case problem != nil:
			refused++
			output.Println(c.err, *problem)
		case differs:
			changed++
			output.Println(c.out, folder.Path(file.Path))
		}
	}
	switch {
	case refused > 0:
		return fmt.Errorf("%s cannot be formatted", output.Plural(refused, "file"))
	case check && changed > 0:
		return outcome(exitChanges)
	}
	return nil
}
