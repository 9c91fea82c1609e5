package apps

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/scaffold"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func (c apps) initCommand() *cobra.Command {
	var o scaffold.Options
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create an app folder with its first files",
		Long: `Writes a small app that you can sync as it is: a sandbox and one component, for a
runner on this machine. With --from-chart or --from-terraform the component is your own
Helm chart or Terraform module; berth copies it into src unless it is already in the app
folder. Module variables without a default become inputs. Berth never replaces a file:
if one already exists, it writes nothing.`,
		Args: command.Exactly("[DIR]"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return c.initApp(dir, o)
		},
	}
	cmd.Flags().StringVar(&o.Chart, "from-chart", "", "folder of the Helm chart to make the component from")
	cmd.Flags().StringVar(&o.Terraform, "from-terraform", "", "folder of the Terraform module to make the component from")
	cmd.MarkFlagsMutuallyExclusive("from-chart", "from-terraform")
	return cmd
}

func (c apps) initApp(dir string, o scaffold.Options) error {
	// The whole config may stand in one file, whose name says so.
	if whole, _ := filepath.Glob(filepath.Join(dir, "nuon.*.toml")); len(whole) > 0 {
		return fmt.Errorf("%s is already an app folder: %s", dir, whole[0])
	}
	files, err := scaffold.Files(dir, o)
	if err != nil {
		return err
	}
	if err := scaffold.Write(dir, files); err != nil {
		return err
	}
	for _, f := range files {
		output.Println(c.Out, filepath.Join(dir, filepath.FromSlash(f.Path)))
	}
	folder := appfolder.Folder{Written: dir, Root: os.DirFS(dir)}
	if _, found := check.Folder(folder.Root, appconfig.LoadOptions{}); len(found) > 0 {
		for _, d := range folder.Located(found) {
			output.Println(c.Err, d)
		}
		if place.HasErrors(found) {
			return fmt.Errorf("%s has %s, in files that already existed or that berth copied", dir, findings.Errors(found))
		}
	}
	output.Printf(c.Err, "next: berth apps validate %s, then berth sync %s --wait\n", dir, dir)
	return nil
}

func (c apps) fmtCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt [DIR]",
		Short: "Format the TOML files of an app folder",
		Long: `Rewrites the TOML files that belong to the app and prints the names of those it
changed: it aligns equal signs, puts one empty line before each table, and indents lists
that span several lines. Keys, comments and strings keep their text and their order, so
a file means the same as before. If a file is not valid TOML, berth reports it, leaves
it alone and exits with code 1.`,
		Args: command.Exactly("[DIR]"),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			return c.formatFolder(folder, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; exit code 2 when a file is not formatted")
	return cmd
}

func (c apps) formatFolder(folder appfolder.Folder, check bool) error {
	app, found := appconfig.Load(folder.Root, appconfig.LoadOptions{})
	if len(app.Origin.Files) == 0 {
		for _, d := range folder.Located(found) {
			output.Println(c.Err, d)
		}
		return fmt.Errorf("%s is not an app folder", folder.Written)
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
			output.Println(c.Err, *problem)
		case differs:
			changed++
			output.Println(c.Out, folder.Path(file.Path))
		}
	}
	switch {
	case refused > 0:
		return fmt.Errorf("%s cannot be formatted", output.Plural(refused, "file"))
	case check && changed > 0:
		return command.Outcome(command.ExitChanges)
	}
	return nil
}
