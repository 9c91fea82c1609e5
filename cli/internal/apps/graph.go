package apps

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func (c apps) graphCommand() *cobra.Command {
	format := "tree"
	cmd := &cobra.Command{
		Use:   "graph [DIR]",
		Short: "Show which components of an app folder need which, and why",
		Long: `Shows the order in which Berth deploys the components and the reason for it: an entry
in dependencies, a template that reads an output (also in values files, manifests and
variable files), or a kubernetes_context. Each reason has its file and line. If
components depend on each other in a cycle, berth shows the cycle and exits with code 1.`,
		Args: command.Exactly("[DIR]"),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			if c.JSONFlag != "" {
				format = "json"
			}
			return c.graph(folder, format)
		},
	}
	// Of its own, since a drawing has other formats than a list.
	cmd.Flags().VarP(usage.OneOf(&format, "tree", "svg", "dot", "mermaid", "json"), "output", "o", "tree, svg, dot, mermaid or json")
	return cmd
}

// graphForPrograms is what -o json prints.
type graphForPrograms struct {
	Components []graphComponent `json:"components"`
	Edges      []graph.Edge     `json:"edges"`
	Layers     [][]string       `json:"layers"` // each needs only earlier ones
	Order      []string         `json:"order"`
	Cycles     [][]graph.Edge   `json:"cycles"`
}

type graphComponent struct {
	Name  string                  `json:"name"`
	Type  appconfig.ComponentType `json:"type"`
	File  string                  `json:"file"`
	Needs []string                `json:"needs,omitempty"`
}

func (c apps) graph(folder appfolder.Folder, format string) error {
	app, found := appconfig.Load(folder.Root, appconfig.LoadOptions{})
	for _, d := range folder.Located(found) {
		if d.Severity == place.Error {
			output.Println(c.Err, d)
		}
	}
	if len(app.Origin.Files) == 0 {
		return fmt.Errorf("%s is not an app folder", folder.Written)
	}
	g, cycles := graph.New(app)
	var err error
	switch format {
	case "json":
		err = c.graphJSON(app, g)
	case "dot":
		_, err = fmt.Fprint(c.Out, g.DOT())
	case "svg":
		_, err = fmt.Fprint(c.Out, g.SVG("Components of "+folder.Written))
	case "mermaid":
		_, err = fmt.Fprint(c.Out, g.Mermaid())
	default:
		text := g.Tree()
		if len(g.Nodes) == 0 {
			text = "the app has no components\n"
		}
		_, err = fmt.Fprint(c.Out, text)
	}
	switch {
	case err != nil:
		return err
	case place.HasErrors(found):
		return fmt.Errorf("%s has %s, so edges may be missing", folder.Written, findings.Errors(found))
	case len(cycles) > 0:
		return fmt.Errorf("%s", cycles[0].Message)
	}
	return nil
}

func (c apps) graphJSON(app *appconfig.App, g *graph.Graph) error {
	o, err := c.Format()
	if err != nil {
		return err
	}
	out := graphForPrograms{
		Components: []graphComponent{}, Edges: append([]graph.Edge{}, g.Edges...), Layers: append([][]string{}, g.Layers()...),
		Order: append([]string{}, g.Order()...), Cycles: append([][]graph.Edge{}, g.Cycles()...),
	}
	for _, name := range g.Nodes {
		component := app.Component(name)
		out.Components = append(out.Components, graphComponent{Name: name, Type: component.Type, File: component.At.File, Needs: g.Needs(name)})
	}
	return output.Program(c.Out, o, out)
}
