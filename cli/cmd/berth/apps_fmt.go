package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
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
			folder, err := folderArg(args)
			if err != nil {
				return err
			}
			return c.formatFolder(folder, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; exit code 2 when a file has another form")
	return cmd
}

func (c *cli) formatFolder(folder appFolder, check bool) error {
	app, found := appconfig.Load(folder.root, appconfig.LoadOptions{})
	if len(app.Origin.Files) == 0 {
		for _, d := range folder.located(found) {
			output.Println(c.err, d)
		}
		return fmt.Errorf("%s is no app folder", folder.written)
	}
	changed, refused := 0, 0
	for _, file := range app.Origin.Files {
		if path.Ext(file.Path) != ".toml" {
			continue
		}
		differs, problem, err := formatFile(folder, file.Path, !check)
		switch {
		case err != nil:
			return err
		case problem != nil:
			refused++
			output.Println(c.err, *problem)
		case differs:
			changed++
			output.Println(c.out, folder.path(file.Path))
		}
	}
	switch {
	case refused > 0:
		return fmt.Errorf("%s cannot be formatted", plural(refused, "file"))
	case check && changed > 0:
		return outcome(exitChanges)
	}
	return nil
}

// formatFile tells whether a file has another form than it should, and gives it
// that when asked to.
func formatFile(folder appFolder, name string, write bool) (differs bool, problem *place.Diagnostic, err error) {
	data, err := fs.ReadFile(folder.root, name)
	if err != nil {
		return false, nil, err
	}
	formatted, problem := syntax.Format(folder.path(name), data)
	if problem != nil || bytes.Equal(data, formatted) {
		return false, problem, nil
	}
	if write {
		err = replaceFile(folder.path(name), formatted)
	}
	return true, nil, err
}

// replaceFile changes a file's contents all at once: an interruption leaves the
// old ones. A link stays a link.
func replaceFile(name string, data []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone when all went well
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
