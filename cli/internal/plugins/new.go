package plugins

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/scaffold"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// templates has a plugin per language, and in "all" what each of them gets. A file's name
// may end in .tmpl, which it loses: go.mod would make a module of the folder.
//
//go:embed templates
var templates embed.FS

// languages in which a plugin can be begun.
var languages = []string{"go", "python", "sh"}

// typePlace stands in the templates for the component type.
const typePlace = "@TYPE@"

var typeForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// create is `berth plugins new`.
func create(d Doors) *cobra.Command {
	var language string
	cmd := &cobra.Command{
		Use: "new DIR", Short: "Begin a plugin that works", Args: d.Args,
		Long: `Writes a small plugin to DIR, whose last element becomes the component type: manifest,
program, tests and a README. It keeps a record in the state that a runner holds for it, has no
network and sees nothing of the customer's machine, and passes berth plugins test as it is.
No file that is there already is replaced.

--language is go, python or sh. One in Go is built at once where Go is installed.`,
		Example: `berth plugins new plugins/record
berth plugins new plugins/record --language go && berth plugins test plugins/record`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(languages, language) {
				return usage.Errorf("--language %s is none of %s", language, strings.Join(languages, ", "))
			}
			at, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			name := filepath.Base(at)
			if !typeForm.MatchString(name) {
				return usage.Errorf("%q becomes the component type, and is none: lower-case letters, digits, - and _", name)
			}
			files, err := filesOf(language, name)
			if err != nil {
				return err
			}
			if err := scaffold.Write(args[0], files); err != nil {
				return err
			}
			built, err := build(cmd, args[0])
			if err != nil {
				return err
			}
			for _, f := range files {
				if _, err := output.Println(d.Out, path.Join(filepath.ToSlash(args[0]), f.Path)); err != nil {
					return err
				}
			}
			if !built {
				output.Printf(d.Err, "next: %s (it needs Go), then berth plugins test %s\n", filepath.Join(args[0], "build.sh"), args[0])
				return nil
			}
			output.Printf(d.Err, "next: berth plugins test %s\n", args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&language, "language", "sh", "go, python or sh")
	return cmd
}

// filesOf are the files of a new plugin.
func filesOf(language, name string) ([]scaffold.File, error) {
	var files []scaffold.File
	for _, dir := range []string{"all", language} {
		root := path.Join("templates", dir)
		err := fs.WalkDir(templates, root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			raw, err := templates.ReadFile(file)
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(string(raw), typePlace, name)
			mode := fs.FileMode(0o644)
			if strings.HasPrefix(text, "#!") {
				mode = 0o755
			}
			at := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
			files = append(files, scaffold.File{Path: at, Data: []byte(text), Mode: mode})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// build runs build.sh of a new plugin, if it has one; it says whether the plugin can be
// started now.
func build(cmd *cobra.Command, dir string) (bool, error) {
	script, err := filepath.Abs(filepath.Join(dir, "build.sh"))
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(script); err != nil {
		return true, nil //nolint:nilerr // nothing to build
	}
	if _, err := exec.LookPath("go"); err != nil {
		return false, nil //nolint:nilerr // built later
	}
	out, err := exec.CommandContext(cmd.Context(), script).CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("%s: %w: %s", script, err, strings.TrimSpace(string(out)))
	}
	return true, nil
}
