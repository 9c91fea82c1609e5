// Package clearance is `berth approvals`, `berth freezes` and the pause of installs:
// who has to agree to changes, and when none is carried out.
package clearance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// about are the flags that name an app or an install.
type about struct{ app, install string }

func (a *about) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.app, "app", "", "for all installs of this app")
	cmd.Flags().StringVar(&a.install, "install", "", "for this install")
	cmd.MarkFlagsMutuallyExclusive("app", "install")
	cmd.MarkFlagsOneRequired("app", "install")
}

// name is what they name.
func (a *about) name() string {
	if a.app != "" {
		return "app " + a.app
	}
	return "install " + a.install
}

// Approvals is `berth approvals`.
func Approvals(c *command.CLI) *cobra.Command {
	return command.Noun("approvals", "approval", "Who has to approve the changes of apps and installs", showPolicy(c), setPolicy(c))
}

func showPolicy(c *command.CLI) *cobra.Command {
	var which about
	cmd := &cobra.Command{
		Use: "show --app APP | --install INSTALL", Short: "Show how many people have to approve a change, and which", Args: command.Exactly(),
		Long: `Shows what is set about the app or install, and what holds: where both say something, the
stricter.`,
	}
	which.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		policy, err := readPolicy(ctx, client, which)
		if err != nil {
			return err
		}
		return printPolicy(c, *policy)
	})
	return cmd
}

func readPolicy(ctx context.Context, client *api.Client, which about) (*ctlapi.ApprovalPolicy, error) {
	if which.app != "" {
		resp, err := client.GetAppApprovalPolicyWithResponse(ctx, which.app)
		if err != nil {
			return nil, err
		}
		return api.Body(resp.JSON200)
	}
	resp, err := client.GetInstallApprovalPolicyWithResponse(ctx, which.install)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON200)
}

func printPolicy(c *command.CLI, p ctlapi.ApprovalPolicy) error {
	if c.ForPrograms() {
		return command.PrintOne(c, p, output.View[ctlapi.ApprovalPolicy]{Name: func(ctlapi.ApprovalPolicy) string { return "approval-policy" }})
	}
	if p.Set == nil {
		output.Println(c.Out, "set       nothing")
	} else {
		output.Printf(c.Out, "set       %s, by %s %s ago\n", rules(*p.Set), api.Value(p.UpdatedBy), c.Age(api.Value(p.UpdatedAt)))
	}
	_, err := output.Printf(c.Out, "in force  %s\n", rules(p.InForce))
	return err
}

// rules says a policy in a line.
func rules(r ctlapi.ApprovalRules) string {
	text := fmt.Sprintf("%d approvals", r.Approvals)
	if r.Approvals == 1 {
		text = "1 approval"
	}
	text += " of "
	if len(r.Roles) == 0 {
		text += "anybody who may decide"
	}
	for i, role := range r.Roles {
		if i > 0 {
			text += " or "
		}
		text += string(role)
	}
	if r.NoSelfApproval {
		text += ", not of who asked for it"
	}
	if r.Hours != nil {
		text += fmt.Sprintf(", within %d hours", *r.Hours)
	}
	return text
}

func setPolicy(c *command.CLI) *cobra.Command {
	var which about
	var wish ctlapi.ApprovalPolicyRequest
	var roles []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "set --app APP | --install INSTALL", Short: "Say how many people have to approve a change, and which", Args: command.Exactly(),
		Long: `Replaces what is set about the app or install; what you leave out is as if nothing was
said. It counts at once, also for changes that wait. Only admins may.

With more than one approval, with --role or with --no-self-approval, only people decide:
--all and approve-all approve nothing then, and approvals of service accounts do not count.
An approval counts while its member, role and token are good: Berth looks again before it
carries a change out.

--expires is for an app: how long its changes wait for a decision, in installs that have
no approval-time of their own.`,
	}
	which.flags(cmd)
	cmd.Flags().IntVar(&wish.Approvals, "approvals", 1, "how many people have to approve a change, at most 20")
	cmd.Flags().StringSliceVar(&roles, "role", nil, "only approvals of this role count: admin, operator or customer; give it several times to allow several")
	cmd.Flags().BoolVar(&wish.NoSelfApproval, "no-self-approval", false, "who asked for a workflow may not approve its changes")
	cmd.Flags().DurationVar(&expires, "expires", 0, "deny changes on which nobody decided in this time, in whole hours, such as 48h")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		for _, role := range roles {
			wish.Roles = append(wish.Roles, ctlapi.ApproverRole(role))
		}
		if expires%time.Hour != 0 || expires < 0 {
			return usage.Errorf("--expires is a number of whole hours, such as 48h")
		}
		if expires > 0 {
			wish.Hours = new(int(expires / time.Hour))
		}
		var policy *ctlapi.ApprovalPolicy
		if which.app != "" {
			resp, err := client.PutAppApprovalPolicyWithResponse(ctx, which.app, wish)
			if err != nil {
				return err
			}
			policy = resp.JSON200
		} else {
			resp, err := client.PutInstallApprovalPolicyWithResponse(ctx, which.install, wish)
			if err != nil {
				return err
			}
			policy = resp.JSON200
		}
		set, err := api.Body(policy)
		if err != nil {
			return err
		}
		return printPolicy(c, *set)
	})
	return cmd
}

// Summary is how the vote on a change stands, for people; "" when anybody's single
// answer is enough and nobody gave one.
func Summary(change ctlapi.Change) string {
	a := change.Approvals
	if a == nil || a.Needed <= 1 && len(a.By) == 0 && len(a.Void) == 0 && len(a.Roles) == 0 && a.NotBy == "" {
		return ""
	}
	return strings.TrimSpace(a.Summary)
}
