package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/schema"
)

func (c *cli) appsSchemaCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Write the JSON Schemas of app files, for editors",
		Long: `Without arguments it lists the kinds of files. With a kind it prints the JSON
Schema of it. With -o DIR it writes DIR/KIND.json, for all kinds when none is named;
what is there from an earlier version is replaced.

An editor checks a file and completes its keys when the file begins with a line
such as #:schema ../schemas/helm.json (a path, or an address).`,
		Example: "  berth apps schema\n  berth apps schema helm\n  berth apps schema -o schemas",
		Args:    exactly("[KIND]"),
		RunE: func(_ *cobra.Command, args []string) error {
			if slices.Contains(output.Formats, output.Format(dir)) {
				return usagef("-o of berth apps schema is a folder; write ./%s to mean one of that name", dir)
			}
			switch {
			case dir != "":
				return c.writeSchemas(dir, args)
			case len(args) == 0:
				return printList(c, schemaKinds(), schemaKindView())
			}
			text, err := schema.Of(args[0])
			if err != nil {
				return usage.Error{Err: err}
			}
			_, err = output.Printf(c.out, "%s\n", text)
			return err
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "the folder to write to")
	return cmd
}

func (c *cli) writeSchemas(dir string, kinds []string) error {
	if len(kinds) == 0 {
		for _, k := range schema.Kinds() {
			kinds = append(kinds, k.Name)
		}
	}
	schemas := map[string][]byte{}
	for _, kind := range kinds {
		text, err := schema.Of(kind)
		if err != nil {
			return usage.Error{Err: err}
		}
		schemas[kind] = append(text, '\n')
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, kind := range kinds {
		name := filepath.Join(dir, kind+".json")
		if err := os.WriteFile(name, schemas[kind], 0o644); err != nil {
			return err
		}
		output.Println(c.out, name)
	}
	return nil
}

// schemaKind is a line of the list.
type schemaKind struct {
	Name  string `json:"name"`
	Files string `json:"files"`
}

func schemaKinds() []schemaKind {
	var kinds []schemaKind
	for _, k := range schema.Kinds() {
		kinds = append(kinds, schemaKind{Name: k.Name, Files: k.Files})
	}
	return kinds
}

func schemaKindView() output.View[schemaKind] {
	return output.View[schemaKind]{
		Name: func(k schemaKind) string { return k.Name },
		Columns: []output.Column[schemaKind]{
			{Head: "KIND", Cell: func(k schemaKind) string { return k.Name }},
			{Head: "FILES", Cell: func(k schemaKind) string { return k.Files }},
		},
	}
}
