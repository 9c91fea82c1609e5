package clearance

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/when"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Freezes is `berth freezes`.
func Freezes(c *command.CLI) *cobra.Command {
	return command.Noun("freezes", "freeze", "Times in which no change is carried out", listFreezes(c), addFreeze(c), removeFreeze(c), override(c))
}

func listFreezes(c *command.CLI) *cobra.Command {
	var which about
	cmd := &cobra.Command{Use: "list --app APP | --install INSTALL", Short: "List freezes that are in force or to come", Args: command.Exactly()}
	which.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		list, err := freezesOf(ctx, client, which)
		if err != nil {
			return err
		}
		if err := command.PrintList(c, list.Items, table.Freeze(c.Now())); err != nil || c.ForPrograms() || list.FrozenUntil == nil {
			return err
		}
		_, err = output.Printf(c.Out, "\n%s is frozen until %s\n", which.name(), list.FrozenUntil.Format(time.RFC3339))
		return err
	})
	return cmd
}

func freezesOf(ctx context.Context, client *api.Client, which about) (*ctlapi.FreezeList, error) {
	if which.app != "" {
		resp, err := client.ListAppFreezesWithResponse(ctx, which.app)
		if err != nil {
			return nil, err
		}
		return api.Body(resp.JSON200)
	}
	resp, err := client.ListInstallFreezesWithResponse(ctx, which.install)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON200)
}

// window are the flags that say when.
type window struct {
	reason, from, until string
	length              time.Duration
	days                []string
	between, zone       string
}

func addFreeze(c *command.CLI) *cobra.Command {
	var which about
	var w window
	cmd := &cobra.Command{
		Use: "add --app APP | --install INSTALL --reason TEXT", Short: "Add a freeze", Args: command.Exactly(),
		Long: `Adds a time in which no change is carried out. What runs already ends; plans, checks and
drift go on, and changes may be approved: they move by themselves when the freeze ends.

Once, with --from and --until or --for; without --from it begins now. Or every
week, with --days, --between and --zone; 22:00-06:00 ends on the next day.`,
	}
	which.flags(cmd)
	cmd.Flags().StringVar(&w.reason, "reason", "", "why, for those who wait")
	_ = cmd.MarkFlagRequired("reason") // it fails only for a flag that there is not
	cmd.Flags().StringVar(&w.from, "from", "", "when it begins, such as 2026-11-26T00:00:00Z (default: now)")
	cmd.Flags().StringVar(&w.until, "until", "", "when it ends")
	cmd.Flags().DurationVar(&w.length, "for", 0, "how long it lasts, such as 4h")
	cmd.Flags().StringSliceVar(&w.days, "days", nil, "the days of the week on which it begins: mon, tue, wed, thu, fri, sat, sun")
	cmd.Flags().StringVar(&w.between, "between", "", "from and to which time of day, such as 22:00-06:00")
	cmd.Flags().StringVar(&w.zone, "zone", "", "the time zone of --between, such as Europe/Berlin or UTC")
	cmd.MarkFlagsMutuallyExclusive("until", "for")
	cmd.MarkFlagsMutuallyExclusive("days", "until")
	cmd.MarkFlagsMutuallyExclusive("days", "for")
	cmd.MarkFlagsMutuallyExclusive("days", "from")
	cmd.MarkFlagsRequiredTogether("days", "between", "zone")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		wish, err := w.asked(c.Now())
		if err != nil {
			return err
		}
		var made *ctlapi.Freeze
		if which.app != "" {
			resp, err := client.AddAppFreezeWithResponse(ctx, which.app, &ctlapi.AddAppFreezeParams{}, wish)
			if err != nil {
				return err
			}
			made = resp.JSON201
		} else {
			resp, err := client.AddInstallFreezeWithResponse(ctx, which.install, &ctlapi.AddInstallFreezeParams{}, wish)
			if err != nil {
				return err
			}
			made = resp.JSON201
		}
		freeze, err := api.Body(made)
		if err != nil {
			return err
		}
		return command.PrintOne(c, *freeze, table.Freeze(c.Now()))
	})
	return cmd
}

// asked is the window as the API takes it.
func (w window) asked(now time.Time) (ctlapi.FreezeRequest, error) {
	out := ctlapi.FreezeRequest{Reason: w.reason}
	if len(w.days) > 0 {
		from, to, ok := strings.Cut(w.between, "-")
		if !ok {
			return out, usage.Errorf("--between is two times of day, such as 22:00-06:00, not %q", usage.Shortened(w.between))
		}
		out.Weekly = &ctlapi.WeeklyFreeze{From: from, To: to, Zone: w.zone}
		for _, day := range w.days {
			out.Weekly.Days = append(out.Weekly.Days, ctlapi.WeeklyFreezeDays(day))
		}
		return out, nil
	}
	starts, err := when.Point("--from", w.from, now)
	if err != nil {
		return out, err
	}
	if starts == nil {
		starts = new(now.Truncate(time.Second))
	}
	ends, err := when.Point("--until", w.until, now)
	if err != nil {
		return out, err
	}
	switch {
	case ends == nil && w.length <= 0:
		return out, usage.Errorf("say when the freeze ends: --until, --for, or --days with --between and --zone")
	case ends == nil:
		ends = new(starts.Add(w.length))
	}
	out.StartsAt, out.EndsAt = new(starts.UTC()), new(ends.UTC())
	return out, nil
}

func removeFreeze(c *command.CLI) *cobra.Command {
	var which about
	cmd := &cobra.Command{
		Use: "remove FREEZE --app APP | --install INSTALL", Short: "Remove a freeze", Args: command.Exactly("FREEZE"),
		Long: "Removes a freeze, by its id. What waited for its end moves at once. Only admins may.",
	}
	which.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		var err error
		if which.app != "" {
			_, err = client.RemoveAppFreezeWithResponse(ctx, which.app, args[0])
		} else {
			_, err = client.RemoveInstallFreezeWithResponse(ctx, which.install, args[0])
		}
		if err != nil {
			return err
		}
		_, err = output.Printf(c.Out, "removed freeze %s of %s\n", args[0], which.name())
		return err
	})
	return cmd
}

func override(c *command.CLI) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "override WORKFLOW | INSTALL --reason TEXT", Short: "Let a workflow through the freezes that hold it", Args: command.Exactly("WORKFLOW or INSTALL"),
		Long: `Lets one workflow through the freezes that are in force now, each until it ends. Other
workflows wait as before, and so does this one for other freezes. Only admins may; the
org's chain keeps who did it and why. With an install, it is its open workflow.`,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why it cannot wait")
	_ = cmd.MarkFlagRequired("reason") // it fails only for a flag that there is not
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Workflow(ctx, args[0])
		if err != nil {
			return err
		}
		resp, err := client.OverrideFreezeWithResponse(ctx, id, &ctlapi.OverrideFreezeParams{}, ctlapi.FreezeOverrideRequest{Reason: reason})
		if err != nil {
			return err
		}
		w, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *w, table.Workflow(c.Now()))
		}
		for _, o := range w.FreezeOverrides {
			output.Printf(c.Out, "%s passes freeze %s until %s\n", w.ID, o.FreezeID, o.Until.Format(time.RFC3339))
		}
		return nil
	})
	return cmd
}
