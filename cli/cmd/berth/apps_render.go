package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
)

func (c *cli) appsRenderCommand() *cobra.Command {
	var state, component string
	var fetch bool
	cmd := &cobra.Command{
		Use:   "render [DIR]",
		Short: "Show what the sandbox and the components of an app folder would get",
		Long: `Renders values, variables, manifests and environment as a deploy does. With --state
it takes what an install has: the answer of berth api /installs/INSTALL/state, or
only the tree in it. Sealed values are shown as (sealed).

Without a state every value that templates read is its own path in angle brackets:
components.db.outputs.host stands where the host would. Conditions are decided by
these texts, and what needs a number, a list or JSON cannot be shown; that is a
warning.

Contents from elsewhere are empty here; with --fetch they are fetched as sync does.`,
		Example: "  berth apps render ./app --component web\n  berth api /installs/acme/state > acme.json && berth apps render ./app --state acme.json",
		Args:    exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := folderArg(args)
			if err != nil {
				return err
			}
			if fetch {
				if folder.fetched, err = c.fetchElsewhere(cmd.Context(), folder.root, nil); err != nil {
					return err
				}
			}
			return c.render(folder, state, component)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "the state tree of an install: a JSON file, or - for stdin")
	cmd.Flags().StringVar(&component, "component", "", "only this component; sandbox is the sandbox")
	cmd.Flags().BoolVar(&fetch, "fetch", false, "fetch what stands elsewhere, as sync does")
	return cmd
}

// rendered is what one block would get.
type rendered struct {
	Name   string              `json:"name"`
	Type   string              `json:"type"`
	Values []appconfig.Preview `json:"values"`
}

func (c *cli) render(folder appFolder, stateFile, only string) error {
	app, err := c.usable(folder)
	if err != nil {
		return err
	}
	state := appconfig.MadeUpState(app)
	if stateFile != "" {
		if state, err = c.readState(stateFile); err != nil {
			return err
		}
	}
	blocks, err := blocksOf(app, only)
	if err != nil {
		return err
	}
	failed := 0
	for i := range blocks {
		values, found := appconfig.Previews(app, blocks[i].Name, state, c.now())
		for _, d := range folder.located(found) {
			if stateFile == "" { // the state may be at fault
				d.Severity, d.Remedy = appconfig.Warning, "render it with --state"
			} else {
				failed++
			}
			fmt.Fprintln(c.err, d)
		}
		for j := range values {
			values[j].File = folder.path(values[j].File)
			if stateFile == "" {
				values[j].Value = appconfig.WithoutEscapes(values[j].Value)
			}
		}
		blocks[i].Values = append([]appconfig.Preview{}, values...)
	}
	if err := c.showRendered(blocks); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s cannot be rendered with this state", plural(failed, "value"))
	}
	return nil
}

// blocksOf lists the sandbox and the components, or the one that is wanted.
func blocksOf(app *appconfig.App, only string) ([]rendered, error) {
	blocks := []rendered{{Name: appconfig.BlockSandbox, Type: "sandbox"}}
	names := []string{appconfig.BlockSandbox}
	for _, component := range app.Components {
		blocks = append(blocks, rendered{Name: component.Name, Type: string(component.Type)})
		names = append(names, component.Name)
	}
	if only == "" {
		return blocks, nil
	}
	for _, b := range blocks {
		if b.Name == only {
			return []rendered{b}, nil
		}
	}
	return nil, usagef("there is no component %q; there are %s", shortened(only), strings.Join(names, ", "))
}

// maxState is the largest state that is read, in bytes.
const maxState = 64 << 20

// readState reads the tree of an install, alone or as the API gives it.
func (c *cli) readState(name string) (interpolate.State, error) {
	in := c.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage{err}
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	decoder := json.NewDecoder(io.LimitReader(in, maxState))
	decoder.UseNumber() // whole numbers stay whole
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read the state in %s: %w", name, err)
	}
	if inner, ok := tree["tree"].(map[string]any); ok {
		tree = inner
	}
	if _, ok := tree["components"]; !ok {
		return nil, errors.New(name + " is no state of an install: it has no components; make it with berth api /installs/INSTALL/state")
	}
	return interpolate.NewState(tree), nil
}

func (c *cli) showRendered(blocks []rendered) error {
	if c.forPrograms() {
		return printList(c, blocks, output.View[rendered]{Name: func(r rendered) string { return r.Name }})
	}
	color := c.colorOn(c.out)
	var b strings.Builder
	for i, block := range blocks {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s (%s)\n", block.Name, block.Type)
		if len(block.Values) == 0 {
			b.WriteString("  nothing that differs between installs\n")
		}
		for _, v := range block.Values {
			fmt.Fprintf(&b, "  %s  %s\n", v.Key, output.Paint(color, output.Dim, fmt.Sprintf("%s:%d", v.File, v.Line)))
			for line := range strings.Lines(strings.TrimRight(v.Value, "\n")) {
				b.WriteString("    " + printable(strings.TrimRight(line, "\r\n")) + "\n")
			}
		}
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}
