// Package schemas is `berth apps schema`: the JSON Schemas of app files, with the keys
// of an app's own plugins.
package schemas

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/schema"
)

// Doors is what the command needs of the rest of the command line.
type Doors struct {
	Args   cobra.PositionalArgs // [KIND]
	Out    io.Writer
	Err    io.Writer
	Format func() (output.Options, error)
}

// Command is `berth apps schema`.
func Command(d Doors) *cobra.Command {
	var dir, app string
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schemas of app files, for editors",
		Long: `Without arguments it lists the kinds of files. With a kind it prints that kind's JSON
Schema. With -o DIR it writes DIR/KIND.json for that kind, or for all kinds if you name
none, and replaces files from an earlier version.

With --app DIR, the plugins in that app folder are kinds as well (plugin-TYPE), with the
keys that their plugin.json describes.

An editor checks a file and completes its keys if the file begins with a line such as
#:schema ../schemas/helm.json (a path or a URL).`,
		Args: d.Args,
		RunE: func(_ *cobra.Command, args []string) error {
			if slices.Contains(output.Formats, output.Format(dir)) {
				return usage.Errorf("-o of berth apps schema names a folder; write ./%s for a folder with that name", dir)
			}
			plugins, err := d.plugins(app)
			if err != nil {
				return err
			}
			switch {
			case dir != "":
				return d.write(dir, args, plugins)
			case len(args) == 0:
				format, err := d.Format()
				if err != nil {
					return err
				}
				return output.List(d.Out, format, kinds(plugins), view())
			}
			text, err := schema.Of(args[0], plugins...)
			if err != nil {
				return usage.Error{Err: err}
			}
			_, err = output.Printf(d.Out, "%s\n", text)
			return err
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "the folder to write to")
	cmd.Flags().StringVar(&app, "app", "", "an app folder, whose plugins are included")
	return cmd
}

// plugins are those of an app folder, each type once. dir is "" for none.
func (d Doors) plugins(dir string) ([]schema.Plugin, error) {
	if dir == "" {
		return nil, nil
	}
	folder, err := appfolder.Open([]string{dir})
	if err != nil {
		return nil, err
	}
	app, _ := appconfig.Load(folder.Root, appconfig.LoadOptions{})
	if len(app.Origin.Files) == 0 {
		return nil, usage.Errorf("%s is not an app folder", dir)
	}
	var all []schema.Plugin
	for i := range app.Components {
		c := &app.Components[i]
		if c.Plugin == nil || slices.ContainsFunc(all, func(p schema.Plugin) bool { return p.Type == string(c.Type) }) {
			continue
		}
		m, _, found, err := check.PluginOf(folder.Root, appconfig.LoadOptions{}, c)
		switch {
		case err != nil:
			return nil, fmt.Errorf("plugin of component %q: %w", c.Name, err)
		case !found:
			output.Printf(d.Err, "left out: the plugin of component %q is not in this folder\n", c.Name)
			continue
		}
		config, err := json.Marshal(m.Config)
		if err != nil {
			return nil, err
		}
		all = append(all, schema.Plugin{Type: string(c.Type), Config: config})
	}
	return all, nil
}

// write writes the schemas of some kinds, of all without any.
func (d Doors) write(dir string, names []string, plugins []schema.Plugin) error {
	if len(names) == 0 {
		for _, k := range schema.Kinds(plugins...) {
			names = append(names, k.Name)
		}
	}
	schemas := map[string][]byte{}
	for _, name := range names {
		text, err := schema.Of(name, plugins...)
		if err != nil {
			return usage.Error{Err: err}
		}
		schemas[name] = append(text, '\n')
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, schemas[name], 0o644); err != nil {
			return err
		}
		output.Println(d.Out, path)
	}
	return nil
}

// kind is a line of the list.
type kind struct {
	Name  string `json:"name"`
	Files string `json:"files"`
}

func kinds(plugins []schema.Plugin) []kind {
	var all []kind
	for _, k := range schema.Kinds(plugins...) {
		all = append(all, kind{Name: k.Name, Files: k.Files})
	}
	return all
}

func view() output.View[kind] {
	return output.View[kind]{
		Name: func(k kind) string { return k.Name },
		Columns: []output.Column[kind]{
			{Head: "KIND", Cell: func(k kind) string { return k.Name }},
			{Head: "FILES", Cell: func(k kind) string { return k.Files }},
		},
	}
}
