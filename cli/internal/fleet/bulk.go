// Package fleet is what `berth` shows of, and does in, many installs at once:
// `berth bulk` and `berth resources`; and the graphs, plans and jobs that a
// dashboard shows too.
package fleet

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Bulk is `berth bulk`.
func Bulk(c *command.CLI) *cobra.Command {
	return command.Noun("bulk", "bulks", "Do the same in many installs", bulkDeploy(c), bulkPause(c), bulkResume(c), bulkList(c), bulkShow(c))
}

// filter are the flags that choose installs.
type filter struct {
	app, customer, health, waiting, expiring string
	behind, paused                           bool
	labels, installs                         []string
}

func (f *filter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.app, "app", "", "only installs of this app")
	cmd.Flags().StringVar(&f.customer, "customer", "", "only installs of this customer")
	cmd.Flags().StringSliceVar(&f.installs, "install", nil, "only these installs")
	cmd.Flags().StringSliceVarP(&f.labels, "label", "l", nil, "only with this label, key=value")
	cmd.Flags().Var(usage.OneOf(&f.health, ctlapi.HealthVerdictHealthy, ctlapi.HealthVerdictUnhealthy, ctlapi.HealthVerdictUnknown), "health", "only with this health: healthy, unhealthy, unknown")
	cmd.Flags().BoolVar(&f.behind, "behind", false, "only those behind the newest release of their app; --behind=false: only those at it")
	cmd.Flags().BoolVar(&f.paused, "paused", false, "only those that you paused; --paused=false: only those that are not")
	cmd.Flags().StringVar(&f.waiting, "waiting", "", "only those in which something waits for this, such as decision or runner; any for whatever it is")
	cmd.Flags().StringVar(&f.expiring, "expiring", "", "only those with a proposal that ends within this time, such as 24h")
}

// asked is the filter as the API takes it; an error when it lets all pass.
func (f *filter) asked(cmd *cobra.Command) (ctlapi.BulkFilter, error) {
	labels, err := usage.Pairs[ctlapi.Labels]("--label", f.labels)
	out := ctlapi.BulkFilter{
		App: api.Optional(f.app), Customer: api.Optional(f.customer), Health: api.Optional(ctlapi.HealthVerdict(f.health)),
		Waiting: api.Optional(f.waiting), Expiring: api.Optional(f.expiring), Labels: labels,
	}
	if len(f.installs) > 0 {
		out.Installs = &f.installs
	}
	if cmd.Flags().Changed("behind") {
		out.Behind = &f.behind
	}
	if cmd.Flags().Changed("paused") {
		out.Paused = &f.paused
	}
	if err == nil && out == (ctlapi.BulkFilter{}) {
		err = usage.Errorf("%s needs a filter, such as --app or --label; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return out, err
}

func bulkDeploy(c *command.CLI) *cobra.Command {
	var which filter
	var to, version string
	var components []string
	var planOnly, preview bool
	cmd := &cobra.Command{
		Use: "deploy", Short: "Deploy to all live installs that pass a filter", Args: command.Exactly(),
		Long: `Starts a deploy in each live install that passes all filters, at most 500. An install in
which it cannot start does not stop the others: berth bulk show tells the outcome of each.
Changes wait for their decisions, as always.

--preview shows which installs these are and what would be refused, and changes nothing. It
prints a version; give it back with --only-if, and Berth refuses to deploy when the filter
has come to mean other installs.`,
	}
	which.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id, together with --app (default: the newest)")
	cmd.Flags().StringSliceVar(&components, "component", nil, "deploy only this component")
	cmd.Flags().BoolVar(&planOnly, "plan", false, "only plan in each install; nothing is changed")
	cmd.Flags().BoolVar(&preview, "preview", false, "show what would start, and start nothing")
	cmd.Flags().StringVar(&version, "only-if", "", "only if the preview of this version still holds")
	cmd.MarkFlagsMutuallyExclusive("preview", "only-if")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		chosen, err := which.asked(cmd)
		if err != nil {
			return err
		}
		return start(ctx, c, client, begun{preview, version, ctlapi.BulkRequest{
			Operation: ctlapi.BulkRequestOperationDeploy, Filter: chosen, Release: api.Optional(to), Components: components, PlanOnly: planOnly,
		}})
	})
	return cmd
}

// begun is a bulk operation as it is asked for.
type begun struct {
	preview bool
	version string // only if this preview still holds
	request ctlapi.BulkRequest
}

// start begins it, or previews it, and prints the installs.
func start(ctx context.Context, c *command.CLI, client *api.Client, b begun) error {
	resp, err := client.CreateBulkWithResponse(ctx, &ctlapi.CreateBulkParams{DryRun: &b.preview, IfMatch: api.Optional(b.version)}, b.request)
	if err != nil {
		return err
	}
	made := resp.JSON202
	if b.preview {
		made = resp.JSON200
	}
	if made, err = api.Body(made); err != nil {
		return err
	}
	if err := printBulk(c, *made); err != nil || c.ForPrograms() {
		return err
	}
	if b.preview {
		output.Printf(c.Out, "\n%d would start, %d refused; version %s\n", made.Counts.Started, made.Counts.Refused, made.Version)
		return nil
	}
	output.Printf(c.Out, "\n%s begins in %d installs; berth bulk show %s shows what became of each\n", made.ID, made.Counts.Pending, made.ID)
	return nil
}

func bulkPause(c *command.CLI) *cobra.Command {
	var reason string
	cmd := bulkOf(c, ctlapi.BulkRequestOperationPause, &reason)
	cmd.Short = "Pause all installs that pass a filter"
	cmd.Long = `Pauses each install that passes all filters and is not paused, at most 500: no change of it
is carried out until you resume it. What runs already ends.

--preview shows which installs these are, and changes nothing. It prints a version; give it
back with --only-if, and Berth refuses when the filter has come to mean other installs.`
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who wait")
	_ = cmd.MarkFlagRequired("reason") // it fails only for a flag that there is not
	return cmd
}

func bulkResume(c *command.CLI) *cobra.Command {
	cmd := bulkOf(c, ctlapi.BulkRequestOperationResume, new(string))
	cmd.Short = "Resume all paused installs that pass a filter"
	cmd.Long = `Resumes each paused install that passes all filters, at most 500: what waited moves at once.
--preview and --only-if are as in berth bulk deploy.`
	return cmd
}

// bulkOf is a bulk operation that starts no workflow.
func bulkOf(c *command.CLI, operation ctlapi.BulkRequestOperation, reason *string) *cobra.Command {
	var which filter
	var b begun
	cmd := &cobra.Command{Use: string(operation), Args: command.Exactly()}
	which.flags(cmd)
	cmd.Flags().BoolVar(&b.preview, "preview", false, "show which installs these are, and change nothing")
	cmd.Flags().StringVar(&b.version, "only-if", "", "only if the preview of this version still holds")
	cmd.MarkFlagsMutuallyExclusive("preview", "only-if")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) (err error) {
		b.request = ctlapi.BulkRequest{Operation: operation, Reason: *reason}
		if b.request.Filter, err = which.asked(cmd); err != nil {
			return err
		}
		return start(ctx, c, client, b)
	})
	return cmd
}

func bulkList(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List bulk operations, newest first", Args: command.Exactly()}
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Bulks(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Bulk(c.Now()))
	})
	return cmd
}

func bulkShow(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "show BULK", Short: "Show a bulk operation and what became of each install", Args: command.Exactly("BULK")}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetBulkWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		bulk, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return printBulk(c, *bulk)
	})
	return cmd
}

// printBulk prints its installs; to programs, the whole.
func printBulk(c *command.CLI, b ctlapi.Bulk) error {
	if c.ForPrograms() && c.OutputFlag != string(output.CSV) {
		return command.PrintOne(c, b, table.Bulk(c.Now()))
	}
	return command.PrintList(c, b.Items, table.BulkItem())
}
