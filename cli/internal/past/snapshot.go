package past

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/when"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Snapshot is `berth installs snapshot`.
func Snapshot(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "snapshot INSTALL [FROM] [TO]", Short: "Show what an install was at a time, or what differs between two times", Args: command.Exactly("INSTALL", "[FROM]", "[TO]"),
		Long: `Shows the release, inputs, toggles and settings of an install, what each resource was, the
runner and the customer's switch, and what waited for a decision, all as of --at. --diff FROM
TO shows what differs between two times; without TO, up to now. Sensitive values are shown
as (sealed).

Times are written as 2026-11-26T10:00:00Z, as 2026-11-26 10:00 (your time), or as how long
ago: 2h, 3d.`,
	}
	var at string
	var diff bool
	cmd.Flags().StringVar(&at, "at", "", "the time (default: now)")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what differs between FROM and TO")
	cmd.MarkFlagsMutuallyExclusive("at", "diff")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := sides(args, diff); err != nil {
			return err
		}
		if diff {
			return snapshotDiff(ctx, c, client, args)
		}
		moment, err := when.Past("--at", at, c.Now())
		if err != nil {
			return err
		}
		resp, err := client.GetSnapshotWithResponse(ctx, args[0], &ctlapi.GetSnapshotParams{At: moment})
		if err != nil {
			return err
		}
		found, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		o, err := c.Format()
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return output.Program(c.Out, o, found)
		}
		writeSnapshot(c.Out, found)
		return command.PrintList(c, found.Resources, table.SnapshotResource())
	})
	return cmd
}

func snapshotDiff(ctx context.Context, c *command.CLI, client *api.Client, args []string) error {
	from, err := when.Past("FROM", args[1], c.Now())
	if err != nil {
		return err
	}
	to, err := when.Past("TO", arg(args, 2), c.Now())
	if err != nil {
		return err
	}
	resp, err := client.DiffSnapshotsWithResponse(ctx, args[0], &ctlapi.DiffSnapshotsParams{From: *from, To: to})
	if err != nil {
		return err
	}
	found, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	between := fmt.Sprintf("%s → %s", found.From.UTC().Format(time.RFC3339), found.To.UTC().Format(time.RFC3339))
	return printDiff(c, found, between, found.Changes)
}

// writeSnapshot shows what an install was, but for its resources.
func writeSnapshot(w io.Writer, s *ctlapi.Snapshot) {
	line := func(name, text string) {
		if text != "" {
			output.Printf(w, "%-10s %s\n", name, text)
		}
	}
	line("install", s.Install.Name+", "+s.Install.State)
	line("at", s.At.UTC().Format(time.RFC3339))
	release := "none"
	if s.Release != nil {
		release = fmt.Sprint(s.Release.Number)
		if s.Config != nil {
			release += fmt.Sprintf(" (config %d)", *s.Config)
		}
	}
	line("release", release)
	line("labels", pairs(s.Install.Labels, "%s=%s"))
	line("approvals", fmt.Sprintf("%s, %d h to decide", s.Install.ApprovalOption, s.Install.ApprovalHours))
	line("toggles", pairs(onOff(s.Install.ComponentToggles), "%s %s"))
	if r := s.Runner; r != nil {
		text := "offline"
		if r.Online {
			text = "online"
		}
		text += ", version " + cmp.Or(r.Version, "unknown") + ", switch " + r.Switch
		if r.SwitchReason != nil {
			text += " (" + *r.SwitchReason + ")"
		}
		line("runner", text)
	}
	inputs := "none set"
	if s.Inputs.Version > 0 {
		inputs = fmt.Sprintf("version %d", s.Inputs.Version) + who(s.Inputs.SetBy)
	}
	line("inputs", inputs)
	for _, name := range slices.Sorted(maps.Keys(s.Inputs.Values)) {
		output.Printf(w, "  %s = %s\n", name, s.Inputs.Values[name])
	}
	for _, a := range s.Approvals {
		line("waits", strings.TrimSpace(a.Kind+" of "+api.Value(a.Resource))+", "+a.ChangeID)
	}
	output.Println(w)
}

func onOff(toggles map[string]bool) map[string]string {
	texts := map[string]string{}
	for name, on := range toggles {
		texts[name] = "off"
		if on {
			texts[name] = "on"
		}
	}
	return texts
}

// pairs are names and values, by name.
func pairs(m map[string]string, format string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf(format, name, m[name]))
	}
	return strings.Join(all, ", ")
}
