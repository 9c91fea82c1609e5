package dashboard

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
)

// Sessions is `berth sessions`.
func Sessions(c *command.CLI) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List browsers that are logged in", Args: command.Exactly(),
		Long: "Lists your own browsers, or those of the whole org if you are an admin.",
	}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.BrowserSessions(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.BrowserSession(c.Now()))
	})
	revoke := &cobra.Command{
		Use: "revoke SESSION", Short: "Log a browser out for good, by its session's id (bss_…)", Args: command.Exactly("SESSION"),
		Long: `Logs a browser out within seconds, and those that were logged in with a link made there.
Approvals given in it that were not carried out yet no longer count, as with a revoked token.
To just log out, use the menu of the dashboard.`,
	}
	revoke.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if _, err := client.EndBrowserSessionWithResponse(ctx, args[0]); err != nil {
			return err
		}
		_, err := output.Printf(c.Out, "revoked session %s\n", args[0])
		return err
	})
	return command.Noun("sessions", "session", "Browsers that are logged in to the dashboard", list, revoke)
}
