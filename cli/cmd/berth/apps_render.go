package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cli/internal/sync"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/pkg/visible"
)

// rendering is what berth apps render was asked for.
type rendering struct {
	state, install    string
	component, action string
	only              string
	inputs            []string
}

func (c *cli) appsRenderCommand() *cobra.Command {
	var r rendering
	var fetch bool
	cmd := &cobra.Command{
		Use:   "render [DIR]",
		Short: "Show what each part of an app folder would get",
		Long: `Renders what an install gets: the sandbox and the components, the stack, the roles
and their policies, the steps of actions, runbooks, and the README. --component and
--action show one of them, --only one kind.

With --install it takes the recorded state of that install; with --state a file: the
answer of berth api /installs/INSTALL/state, or only the tree in it. Sealed values are
shown as (sealed), and what reads one is marked.

Without a state every value that templates read is its own path in angle brackets:
components.db.outputs.host stands where the host would. Conditions are decided by
these texts, and what needs a number, a list or JSON cannot be shown; that is a
warning. So is everything that is wrong in a README, which people read all the same.

What an action is asked for when it runs is given by --input, else it is its path, too.

Contents from elsewhere are empty here; with --fetch they are fetched as sync does.`,
		Example: "  berth apps render ./app --component web\n  berth apps render ./app --install acme\n" +
			"  berth apps render ./app --action restart --input version=2\n  berth api /installs/acme/state > acme.json && berth apps render ./app --state acme.json",
		Args: exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := folderArg(args)
			if err != nil {
				return err
			}
			if fetch {
				if folder.fetched, err = sync.Elsewhere(cmd.Context(), folder.root, nil, c.err); err != nil {
					return err
				}
			}
			return c.render(cmd.Context(), folder, r)
		},
	}
	cmd.Flags().StringVar(&r.install, "install", "", "render with the state of this install, asked of the control plane")
	cmd.Flags().StringVar(&r.state, "state", "", "the state tree of an install: a JSON file, or - for stdin")
	cmd.Flags().StringVar(&r.component, "component", "", "only this component; sandbox is the sandbox")
	cmd.Flags().StringVar(&r.action, "action", "", "only this action")
	cmd.Flags().StringVar(&r.only, "only", "", "only this kind: "+strings.Join(renderedKinds, ", "))
	cmd.Flags().StringArrayVar(&r.inputs, "input", nil, "NAME=VALUE: what actions are asked for; may be repeated")
	cmd.Flags().BoolVar(&fetch, "fetch", false, "fetch what stands elsewhere, as sync does")
	cmd.MarkFlagsMutuallyExclusive("state", "install")
	cmd.MarkFlagsMutuallyExclusive("component", "action", "only")
	return cmd
}

// renderedKinds are the kinds of blocks, in the order in which they are shown.
var renderedKinds = []string{
	appconfig.BlockSandbox, appconfig.BlockComponent, appconfig.BlockStack, appconfig.BlockRole, appconfig.BlockAction,
	appconfig.BlockRunbook, appconfig.BlockMetadata,
}

// rendered is what one block would get.
type rendered struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Type   string          `json:"type"`
	Values []check.Preview `json:"values"`
}

func (c *cli) render(ctx context.Context, folder appFolder, r rendering) error {
	inputs, err := actionInputs(r.inputs)
	if err != nil {
		return err
	}
	app, err := c.usable(folder)
	if err != nil {
		return err
	}
	blocks, err := blocksOf(app, r)
	if err != nil {
		return err
	}
	state, recorded, err := c.stateFor(ctx, app, r)
	if err != nil {
		return err
	}
	opts := check.PreviewOptions{Now: c.now(), Inputs: inputs}
	if recorded {
		opts.Sealed = seal.Redacted
	}
	failed := 0
	shown := []rendered{}
	for _, b := range blocks {
		values, found := check.Previews(app, b, state, opts)
		for _, d := range folder.located(found) {
			switch {
			case !recorded: // the state may be at fault
				d.Severity, d.Remedy = place.Warning, "render it with --install or --state"
			case d.Severity == place.Error:
				failed++
			}
			output.Println(c.err, d)
		}
		for i := range values {
			values[i].File = folder.path(values[i].File)
			if !recorded {
				values[i].Value = check.WithoutEscapes(values[i].Value)
			}
		}
		shown = append(shown, rendered{
			Kind: b.Kind, Name: cmp.Or(b.Name, b.Kind), Type: cmp.Or(b.Type, b.Kind), Values: append([]check.Preview{}, values...),
		})
	}
	if err := c.showRendered(shown); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s cannot be rendered with this state", plural(failed, "value"))
	}
	return nil
}

// stateFor finds the state to render with; recorded is false for one that is
// made up.
func (c *cli) stateFor(ctx context.Context, app *appconfig.App, r rendering) (state interpolate.State, recorded bool, err error) {
	switch {
	case r.install != "":
		state, err = c.installState(ctx, r.install)
	case r.state != "":
		state, err = c.readState(r.state)
	default:
		return check.MadeUpState(app), false, nil
	}
	return state, true, err
}

// blocksOf lists what is rendered: everything, or what is wanted of it.
func blocksOf(app *appconfig.App, r rendering) ([]check.Block, error) {
	all := check.Blocks(app)
	switch {
	case r.only != "":
		if !slices.Contains(renderedKinds, r.only) {
			return nil, usagef("there is no kind %q; there are %s", shortened(r.only), strings.Join(renderedKinds, ", "))
		}
		return slices.DeleteFunc(all, func(b check.Block) bool { return b.Kind != r.only }), nil
	case r.component != "":
		return oneBlock(all, r.component, appconfig.BlockSandbox, appconfig.BlockComponent)
	case r.action != "":
		return oneBlock(all, r.action, appconfig.BlockAction)
	}
	return all, nil
}

// oneBlock finds a block of some kinds by its name.
func oneBlock(all []check.Block, name string, kinds ...string) ([]check.Block, error) {
	kind := kinds[len(kinds)-1]
	var names []string
	for _, b := range all {
		if !slices.Contains(kinds, b.Kind) {
			continue
		}
		if cmp.Or(b.Name, b.Kind) == name {
			return []check.Block{b}, nil
		}
		names = append(names, cmp.Or(b.Name, b.Kind))
	}
	if len(names) == 0 {
		return nil, usagef("there is no %s %q; the app has none", kind, shortened(name))
	}
	return nil, usagef("there is no %s %q; there are %s", kind, shortened(name), strings.Join(names, ", "))
}

// actionInputs reads NAME=VALUE.
func actionInputs(given []string) (map[string]string, error) {
	inputs := map[string]string{}
	for _, entry := range given {
		name, text, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, usagef("%q is no input: write NAME=VALUE", entry)
		}
		inputs[name] = text
	}
	return inputs, nil
}

// installState asks the control plane for the newest tree of an install.
func (c *cli) installState(ctx context.Context, install string) (interpolate.State, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	resp, err := client.GetStateWithResponse(ctx, install, &ctlapi.GetStateParams{})
	if err != nil {
		return nil, err
	}
	state, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	return treeOf(bytes.NewReader(state.Tree), "the state of "+install)
}

// maxState is the largest state that is read, in bytes.
const maxState = 64 << 20

// readState reads the tree of an install, alone or as the API gives it.
func (c *cli) readState(name string) (interpolate.State, error) {
	in := c.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage.Error{Err: err}
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	return treeOf(in, name)
}

// treeOf reads a tree, alone or as the API gives it.
func treeOf(in io.Reader, name string) (interpolate.State, error) {
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
		what := block.Type
		if block.Kind == appconfig.BlockRole {
			what += " role"
		}
		fmt.Fprintf(&b, "%s (%s)\n", visible.Row(block.Name), visible.Row(what))
		if len(block.Values) == 0 {
			b.WriteString("  nothing that differs between installs\n")
		}
		for _, v := range block.Values {
			where := fmt.Sprintf("%s:%d", v.File, v.Line)
			if v.Sealed {
				where += "  made of sealed values"
			}
			fmt.Fprintf(&b, "  %s  %s\n", visible.Row(v.Key), output.Paint(color, output.Dim, where))
			for line := range strings.Lines(strings.TrimRight(v.Value, "\n")) {
				b.WriteString("    " + visible.Text(strings.TrimRight(line, "\r\n")) + "\n")
			}
		}
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}
