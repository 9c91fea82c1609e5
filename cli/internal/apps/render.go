package apps

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/preview"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// rendering is what berth apps render was asked for.
type rendering struct {
	preview.Wanted
	state, install string
	inputs         []string
}

func (c apps) renderCommand() *cobra.Command {
	var r rendering
	var fetch bool
	cmd := &cobra.Command{
		Use:   "render [DIR]",
		Short: "Render the templates of an app folder",
		Long: `Shows what an install would get: the sandbox and the components, the stack, the
runner's variables, the roles with their permissions, operation roles, policies, the
steps of actions, runbooks, and the README. --component and --action show one of them,
--only one kind.

With --install, berth uses the recorded state of that install; with --state, a file: the
answer of berth api /installs/INSTALL/state, or just the tree in it. It shows sealed
values as (sealed) and marks everything that reads one.

Without a state, every value that a template reads becomes its own path in angle
brackets: you see components.db.outputs.host where the host would be. Conditions use
these placeholders too, and a template that needs a number, a list or JSON cannot be
rendered; berth warns about it. It also only warns about mistakes in a README, because
people can still read it.

--input sets an input of an action; an input you leave out becomes its path, too.

A mistake in the folder does not stop the rest: berth reports it, renders everything
else, and exits with 1.

Content from elsewhere is empty unless you fetch it with --fetch, as sync does.`,
		Args: command.Exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			if fetch {
				if folder.Fetched, err = sync.Elsewhere(cmd.Context(), folder.Root, nil, c.Err); err != nil {
					return err
				}
			}
			return c.render(cmd.Context(), folder, r)
		},
	}
	cmd.Flags().StringVar(&r.install, "install", "", "use the state of this install, from the control plane")
	cmd.Flags().StringVar(&r.state, "state", "", "the state tree of an install: a JSON file, or - for stdin")
	cmd.Flags().StringVar(&r.Component, "component", "", "only this component, or sandbox")
	cmd.Flags().StringVar(&r.Action, "action", "", "only this action")
	cmd.Flags().StringVar(&r.Only, "only", "", "only this kind: "+strings.Join(preview.Kinds, ", "))
	cmd.Flags().StringArrayVar(&r.inputs, "input", nil, "NAME=VALUE: an input of actions; may be repeated")
	cmd.Flags().BoolVar(&fetch, "fetch", false, "fetch content from elsewhere, as sync does")
	cmd.MarkFlagsMutuallyExclusive("state", "install")
	cmd.MarkFlagsMutuallyExclusive("component", "action", "only")
	return cmd
}

func (c apps) render(ctx context.Context, folder appfolder.Folder, r rendering) error {
	inputs, err := usage.Pairs[map[string]string]("--input", r.inputs)
	if err != nil {
		return err
	}
	app, wrong, err := folder.Read(c.Err)
	if err != nil {
		return err
	}
	blocks, err := preview.Blocks(app, r.Wanted)
	if err != nil {
		return err
	}
	state, recorded, err := c.stateFor(ctx, app, r)
	if err != nil {
		return err
	}
	opts := preview.Options{Now: c.Now(), Inputs: api.Value(inputs), Recorded: recorded, Defaults: check.CompletePlugins(folder.Root, appconfig.LoadOptions{}, app)}
	shown, found, failed := preview.Render(app, blocks, state, opts)
	for _, d := range folder.Located(found) {
		if !findings.Said(wrong, d) {
			output.Println(c.Err, d)
		}
	}
	for _, block := range shown {
		for i := range block.Values {
			block.Values[i].File = folder.Path(block.Values[i].File)
		}
	}
	if err := c.showRendered(shown); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s cannot be rendered with this state", output.Plural(failed, "value"))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s has %s", folder.Written, findings.Errors(wrong))
	}
	return nil
}

// stateFor finds the state to render with; recorded is false for one that is
// made up.
func (c apps) stateFor(ctx context.Context, app *appconfig.App, r rendering) (state interpolate.State, recorded bool, err error) {
	switch {
	case r.install != "":
		state, err = c.installState(ctx, r.install)
	case r.state != "":
		state, err = preview.ReadTree(r.state, c.In)
	default:
		return check.MadeUpState(app), false, nil
	}
	return state, true, err
}

// installState asks the control plane for the newest tree of an install.
func (c apps) installState(ctx context.Context, install string) (interpolate.State, error) {
	client, err := c.Client()
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
	return preview.Tree(bytes.NewReader(state.Tree), "the state of "+install)
}

func (c apps) showRendered(blocks []preview.Rendered) error {
	if c.ForPrograms() {
		return command.PrintList(c.CLI, blocks, output.View[preview.Rendered]{Name: func(r preview.Rendered) string { return r.Name }})
	}
	_, err := io.WriteString(c.Out, preview.Text(blocks, c.ColorOn(c.Out)))
	return err
}
