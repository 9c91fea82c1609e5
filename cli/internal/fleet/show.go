package fleet

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/visible"
)

// Resources is `berth resources`.
func Resources(c *command.CLI) *cobra.Command {
	var install, app, kind, kindOf, component, health, state string
	cmd := &cobra.Command{
		Use: "list", Short: "List what is live in all installs", Args: command.Exactly(),
		Long: "Lists the stacks, sandboxes and components of all installs that you may see, by install. What\none gave out is in berth installs resources.",
	}
	limit := command.LimitFlag(cmd)
	cmd.Flags().StringVar(&install, "install", "", "only of this install")
	cmd.Flags().StringVar(&app, "app", "", "only of installs of this app")
	cmd.Flags().Var(usage.OneOf(&kind, ctlapi.ListAllResourcesParamsKindStack, ctlapi.ListAllResourcesParamsKindSandbox, ctlapi.ListAllResourcesParamsKindComponent), "kind", "only stack, sandbox or component")
	cmd.Flags().StringVar(&kindOf, "type", "", "only of this type, such as helm_chart")
	cmd.Flags().StringVar(&component, "component", "", "only the component of this name")
	cmd.Flags().Var(usage.OneOf(&health, ctlapi.HealthVerdictHealthy, ctlapi.HealthVerdictUnhealthy, ctlapi.HealthVerdictUnknown), "health", "only with this health: healthy, unhealthy, unknown")
	cmd.Flags().Var(usage.OneOf(&state, "absent", "live", "rehearsed", "changing", "failed", "unknown", "orphaned"), "state", "only in this state: absent, live, rehearsed, changing, failed, unknown, orphaned")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Resources(ctx, *limit, ctlapi.ListAllResourcesParams{
			Install: api.Optional(install), App: api.Optional(app), Kind: api.Optional(ctlapi.ListAllResourcesParamsKind(kind)), Type: api.Optional(kindOf),
			Component: api.Optional(component), Health: api.Optional(ctlapi.HealthVerdict(health)), State: api.Optional(ctlapi.StateOfResource(state)),
		})
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.ResourceOfInstall(c.Now()))
	})
	return command.Noun("resources", "resource", "What is live, in all installs", cmd)
}

// Jobs is `berth runners jobs`.
func Jobs(c *command.CLI) *cobra.Command {
	var state string
	cmd := &cobra.Command{Use: "jobs RUNNER", Short: "List the jobs of a runner, newest first", Args: command.Exactly("RUNNER")}
	limit := command.LimitFlag(cmd)
	cmd.Flags().Var(usage.OneOf(&state, "queued", "leased", "succeeded", "failed", "refused", "cancelled"), "state", "only in this state: queued, leased, succeeded, failed, refused, cancelled")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.RunnerJobs(ctx, *limit, args[0], ctlapi.JobState(state))
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.RunnerJob(c.Now()))
	})
	return cmd
}

// InstallGraph is `berth installs graph`.
func InstallGraph(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "graph INSTALL", Short: "Show which resources of an install need which, and how they are", Args: command.Exactly("INSTALL"),
		Long: "Lists the sandbox and the components of the release that the install stands on, in the order\nin which a deploy takes them. -o json has the needs with their reasons; --svg draws a picture.",
	}
	svg := cmd.Flags().Bool("svg", false, "write a picture, as SVG")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetInstallGraphWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		graph, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if *svg {
			svg, err := picture(args[0], *graph)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.Out, svg)
			return err
		}
		if o, err := c.Format(); err != nil || o.Format == output.JSON || o.Format == output.YAML {
			if err != nil {
				return err
			}
			return output.Program(c.Out, o, *graph)
		}
		return command.PrintList(c, table.InOrder(*graph), table.GraphNode(*graph))
	})
	return cmd
}

// ConfigGraph is `berth configs graph`.
func ConfigGraph(c *command.CLI) *cobra.Command {
	drawing := string(ctlapi.GetConfigGraphParamsDrawingText)
	cmd := &cobra.Command{
		Use: "graph CONFIG", Short: "Show which components of a config need which, and why", Args: command.Exactly("CONFIG"),
		Long: "Shows the same as berth apps graph, of a config that was synced: by id, or by app and number\nas in hello@3. -o json has the sandbox too.",
	}
	cmd.Flags().Var(usage.OneOf(&drawing, ctlapi.GetConfigGraphParamsDrawingText, ctlapi.GetConfigGraphParamsDrawingDot, ctlapi.GetConfigGraphParamsDrawingMermaid), "drawing", "text, dot for Graphviz, or mermaid")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		params := ctlapi.GetConfigGraphParams{Drawing: api.Optional(ctlapi.GetConfigGraphParamsDrawing(drawing))}
		if c.ForPrograms() {
			params.Drawing = nil
		}
		resp, err := client.GetConfigGraphWithResponse(ctx, args[0], &params)
		if err != nil {
			return err
		}
		graph, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *graph, output.View[ctlapi.Graph]{Name: func(ctlapi.Graph) string { return args[0] }})
		}
		// Indented, as all text that somebody else wrote: no line of it passes for one of ours.
		for line := range strings.SplitSeq(strings.TrimSuffix(graph.Drawing, "\n"), "\n") {
			output.Println(c.Out, " ", visible.Line(line))
		}
		return nil
	})
	return cmd
}

// Plan is `berth changes plan`.
func Plan(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan CHANGE | INSTALL[/COMPONENT]", Short: "Show a change's plan as a tree, the same for every engine", Args: command.Exactly("CHANGE or INSTALL"),
		Long: "Shows modules or groups, in them objects, in them attributes with what they were and become.\nberth changes show has the tool's own words.",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Change(ctx, args[0], false)
		if err != nil {
			return err
		}
		resp, err := client.GetPlanTreeWithResponse(ctx, id)
		if err != nil {
			return err
		}
		tree, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *tree, output.View[ctlapi.PlanTree]{Name: func(t ctlapi.PlanTree) string { return t.ChangeID }})
		}
		if tree.NoChange {
			output.Println(c.Out, "no change")
		}
		printNodes(c.Out, tree.Roots, "")
		if len(tree.Outputs) > 0 {
			output.Println(c.Out, "outputs")
			printNodes(c.Out, tree.Outputs, "  ")
		}
		return nil
	})
	return cmd
}

// marks begin the line of an object.
var marks = map[string]string{"create": "+", "update": "~", "replace": "±", "delete": "-", "run": "▸"}

func printNodes(w io.Writer, nodes []ctlapi.PlanNode, indent string) {
	for _, n := range nodes {
		switch n.Kind {
		case ctlapi.PlanNodeKindModule:
			output.Printf(w, "%s%s\n", indent, visible.Line(n.Name))
		case ctlapi.PlanNodeKindResource:
			mark, known := marks[n.Action]
			if !known {
				mark = visible.Line(n.Action)
			}
			output.Printf(w, "%s%s %s%s\n", indent, mark, visible.Line(strings.TrimSpace(n.Type+" "+n.Name)), inBrackets(n.Reason))
		default:
			output.Printf(w, "%s%s: %s\n", indent, visible.Line(n.Name), valuesOf(n))
		}
		printNodes(w, n.Children, indent+"  ")
	}
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + visible.Line(text) + ")"
}

// valuesOf says what an attribute was and becomes.
func valuesOf(n ctlapi.PlanNode) string {
	if n.Hidden && n.Before == n.After { // without digests; control planes of before have neither
		return cmp.Or(n.Before, jobspec.Sensitive)
	}
	before, after := visible.Line(n.Before), visible.Line(n.After)
	if n.KnownAfterApply {
		after = "(known after apply)"
	}
	switch {
	case before == "":
		return after
	case after == "":
		return before + " → nothing"
	}
	return before + " → " + after
}

// Readme is `berth installs readme`.
func Readme(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "readme INSTALL", Short: "Show the README of an install, rendered with its state", Args: command.Exactly("INSTALL"),
		Long: "Shows the app's README as Markdown, with the values of this install; sensitive ones are shown as\n(sealed). --json html has it as HTML that is safe to show, -o json its widgets too.",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetInstallReadmeWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *page, output.View[ctlapi.Readme]{Name: func(ctlapi.Readme) string { return args[0] }})
		}
		// Indented, as all text that somebody else wrote.
		for line := range strings.SplitSeq(strings.TrimSuffix(page.Markdown, "\n"), "\n") {
			output.Println(c.Out, " ", visible.Line(line))
		}
		return nil
	})
	return cmd
}
