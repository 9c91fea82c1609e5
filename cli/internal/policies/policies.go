// Package policies has the commands about policies: those that the control plane knows of an
// app, what they and the customer's guardrails say of changes, and overrides; and, without a
// control plane, checks and tests by the policy engine.
package policies

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Command is `berth policies`.
func Command(c *command.CLI) *cobra.Command {
	return command.Noun("policies", "policy", "Rules that changes are held against, and what they say",
		list(c), report(c), override(c), checkCommand(c), testCommand(c))
}

func list(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list APP", Short: "List the policies of an app", Args: command.Exactly("APP"),
		Long: `Lists the policies of the app's newest config. The runner holds each plan against those that look
at it. The customer's guardrails are not among them: they stand with the runner, see berth policies report.`,
		Example: "  berth policies list shop",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ListAppPoliciesWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintList(c, page.Items, table.AppPolicy())
	})
	return cmd
}

// which are the flags that narrow a list of reports.
type which struct {
	install, app, change, side, policy, answer string
}

func report(c *command.CLI) *cobra.Command {
	var w which
	cmd := &cobra.Command{
		Use: "report [--install INSTALL] [--change CHANGE]", Short: "Show what policies and guardrails say of changes", Args: command.Exactly(),
		Long: `Shows one report for each policy and change, those of the newest changes first: how many verdicts it
gave, what follows, and with -o wide the findings.

SIDE is whose rules they are. A vendor's policy that denies ends the change (berth policies override).
A customer's guardrail that denies makes the runner refuse it; one that asks has it wait for the customer.`,
		Example: "  berth policies report --install acme --answer deny\n  berth policies report --change acme/web -o wide",
	}
	f := cmd.Flags()
	f.StringVar(&w.install, "install", "", "only those of this install")
	f.StringVar(&w.app, "app", "", "only those of installs of this app")
	f.StringVar(&w.change, "change", "", "only those of this change, by id or as INSTALL/COMPONENT")
	f.StringVar(&w.side, "side", "", "only those of the vendor or the customer")
	f.StringVar(&w.policy, "policy", "", "only those of this policy")
	f.StringVar(&w.answer, "answer", "", "only those with this answer: allow, warn, ask, deny")
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		params, err := w.params(ctx, client)
		if err != nil {
			return err
		}
		items, err := client.PolicyReports(ctx, *limit, *params)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.PolicyReport(c.Now()))
	})
	return cmd
}

func (w which) params(ctx context.Context, client *api.Client) (*ctlapi.ListPolicyReportsParams, error) {
	p := &ctlapi.ListPolicyReportsParams{}
	set := func(to **string, value string) {
		if value != "" {
			*to = &value
		}
	}
	set(&p.Install, w.install)
	set(&p.App, w.app)
	set(&p.Policy, w.policy)
	if w.change != "" {
		id, err := names.Book{Client: client}.Change(ctx, w.change, false)
		if err != nil {
			return nil, err
		}
		p.Change = &id
	}
	switch side := ctlapi.PolicySide(w.side); side {
	case "":
	case ctlapi.PolicySideVendor, ctlapi.PolicySideCustomer:
		p.Side = &side
	default:
		return nil, usage.Errorf("--side is vendor or customer, not %q", w.side)
	}
	switch answer := ctlapi.PolicyAnswer(w.answer); answer {
	case "":
	case ctlapi.PolicyAnswerAllow, ctlapi.PolicyAnswerWarn, ctlapi.PolicyAnswerAsk, ctlapi.PolicyAnswerDeny:
		p.Answer = &answer
	default:
		return nil, usage.Errorf("--answer is allow, warn, ask or deny, not %q", w.answer)
	}
	return p, nil
}

func override(c *command.CLI) *cobra.Command {
	var reason, digest string
	cmd := &cobra.Command{
		Use: "override CHANGE --reason TEXT", Short: "Let a change pass that policies of the vendor deny", Args: command.Exactly("CHANGE"),
		Long: `Lets the effect of a denied change pass in its install, for 30 days, and has the step planned again: a plan
with the same effect is proposed like any other. Only admins may; the org's chain keeps who did it and why.

The customer's guardrails are not touched by it: only the customer loosens them.`,
		Example: `  berth policies override acme/agent --reason "reads the node's log, seen by security"`,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why it may pass")
	cmd.Flags().StringVar(&digest, "effect", "", "the digest of the effect that was looked at (default: that of the change now)")
	_ = cmd.MarkFlagRequired("reason") // it fails only for a flag that there is not
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Change(ctx, args[0], false)
		if err != nil {
			return err
		}
		if digest == "" {
			if digest, err = effectOf(ctx, client, id); err != nil {
				return err
			}
		}
		resp, err := client.OverridePoliciesWithResponse(ctx, id, &ctlapi.OverridePoliciesParams{}, ctlapi.PolicyOverrideRequest{EffectDigest: digest, Reason: reason})
		if err != nil {
			return err
		}
		change, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *change, output.View[ctlapi.Change]{Name: func(x ctlapi.Change) string { return x.ID }})
		}
		until := ""
		if change.PolicyOverride != nil {
			until = " until " + change.PolicyOverride.Until.UTC().Format(time.RFC3339)
		}
		_, err = output.Printf(c.Out, "the effect of %s passes policies%s; its step is planned again: berth workflows watch %s\n", visible.Line(change.ID), until, visible.Line(change.WorkflowID))
		return err
	})
	return cmd
}

// effectOf is the digest of a change that is looked at now.
func effectOf(ctx context.Context, client *api.Client, id string) (string, error) {
	resp, err := client.GetChangeWithResponse(ctx, id)
	if err != nil {
		return "", err
	}
	change, err := api.Body(resp.JSON200)
	if err != nil {
		return "", err
	}
	if change.EffectDigest == nil {
		return "", fmt.Errorf("change %s has no plan, so nothing of it can pass", strings.TrimSpace(id))
	}
	return *change.EffectDigest, nil
}
