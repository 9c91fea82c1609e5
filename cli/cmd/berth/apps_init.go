package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/scaffold"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func (c *cli) appsInitCommand() *cobra.Command {
	var o scaffold.Options
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make the first files of an app folder",
		Long: `Writes a small app that can be synced as it is: a sandbox and one component, for a
runner on this machine. With --from-chart or --from-terraform the component is a
Helm chart or a Terraform module that is there already; it is copied below src
unless it is in the app folder. Variables of a module without a default become
inputs. No file is ever replaced: when one is there already, nothing is written.`,
		Example: "  berth apps init ./app\n  berth apps init ./app --from-chart ./charts/web\n  berth apps init ./app --from-terraform ./modules/bucket",
		Args:    exactly("[DIR]"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return c.initApp(dir, o)
		},
	}
	cmd.Flags().StringVar(&o.Chart, "from-chart", "", "make the component of this Helm chart, a folder")
	cmd.Flags().StringVar(&o.Terraform, "from-terraform", "", "make the component of this Terraform module, a folder")
	cmd.MarkFlagsMutuallyExclusive("from-chart", "from-terraform")
	return cmd
}

func (c *cli) initApp(dir string, o scaffold.Options) error {
	// The whole config may stand in one file, whose name says so.
	if whole, _ := filepath.Glob(filepath.Join(dir, "nuon.*.toml")); len(whole) > 0 {
		return fmt.Errorf("%s is an app folder already: %s", dir, whole[0])
	}
	files, err := scaffold.Files(dir, o)
	if err != nil {
		return err
	}
	if err := scaffold.Write(dir, files); err != nil {
		return err
	}
	for _, f := range files {
		output.Println(c.out, filepath.Join(dir, filepath.FromSlash(f.Path)))
	}
	folder := appfolder.Folder{Written: dir, Root: os.DirFS(dir)}
	if _, found := check.Folder(folder.Root, appconfig.LoadOptions{}); len(found) > 0 {
		for _, d := range folder.Located(found) {
			output.Println(c.err, d)
		}
		if place.HasErrors(found) {
			return fmt.Errorf("%s has %s, in files that were there or were copied", dir, findings.Errors(found))
		}
	}
	output.Printf(c.err, "next: berth apps validate %s, then berth sync %s --wait\n", dir, dir)
	return nil
}
