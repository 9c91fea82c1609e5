package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/offer"
)

// revoked is what releases revoke prints for programs.
type revoked struct {
	Revocation offer.Revocation `json:"revocation"`
	Digest     string           `json:"digest"`
}

func (c *cli) revokeReleaseCommand() *cobra.Command {
	var reason, expect string
	var dryRun bool
	cmd := &cobra.Command{
		Use: "revoke RELEASE", Short: "Revoke a release with the vendor's key, for all customers", Args: command.Exactly("RELEASE"),
		Long: "Signs, with the vendor's key, that a release must not be installed any more, and stores that with the release. Runners whose customer pinned the key get it with their settings and keep it for good: " +
			"they plan, apply and run nothing of the release from then on. What it installed keeps running, and can be replaced or removed. It cannot be taken back. " +
			"Runners without a pinned key do not look at it.",
		Example: "  berth releases revoke hello@4 --key vendor.key --reason \"loses data on upgrade\"\n  berth releases revoke hello@4 --ssh-key ~/.ssh/id_ed25519.pub --reason \"CVE-2026-1234\" --dry-run",
	}
	key := c.vendorKeyOf(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for your customers: at most 500 bytes")
	cmd.Flags().StringVar(&expect, "expect", "", "id that the release must have, as berth releases sign showed it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be signed, and sign nothing")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if reason == "" {
			return usage.Errorf("say why: --reason TEXT")
		}
		_, s, err := c.toSign(ctx, client, args[0])
		if err != nil {
			return err
		}
		if expect != "" && expect != s.ReleaseID {
			return fmt.Errorf("%s is release %s, not %s as expected: nothing was signed", args[0], s.ReleaseID, expect)
		}
		r := offer.Revocation{OrgID: s.OrgID, AppID: s.AppID, App: s.App, ReleaseID: s.ReleaseID, Number: s.Number, Reason: reason, Issued: c.Now().UTC().Truncate(time.Second)}
		if !c.ForPrograms() {
			if _, err := output.Printf(c.Out, "revoke release %d of app %s (%s, %s)\norg %s\nbecause: %s\n", r.Number, r.App, r.AppID, r.ReleaseID, r.OrgID, r.Reason); err != nil {
				return err
			}
		}
		if dryRun {
			return nil
		}
		by, end, err := key.signer(ctx)
		if err != nil {
			return err
		}
		defer end()
		env, err := offer.Revoke(by, r)
		if err != nil {
			return err
		}
		body := ctlapi.AddReleaseRevocationJSONRequestBody{PayloadType: env.PayloadType, Payload: env.Payload}
		if err := copyJSON(env.Signatures, &body.Signatures); err != nil {
			return err
		}
		resp, err := client.AddReleaseRevocationWithResponse(ctx, r.ReleaseID, body)
		if err != nil {
			return err
		}
		if _, err := api.Body(resp.JSON201, resp.JSON200); err != nil {
			return err
		}
		if c.ForPrograms() {
			r.Type, r.KeyID = offer.RevocationType, by.Key.ID
			return command.PrintOne(c.CLI, revoked{Revocation: r, Digest: env.PayloadDigest()}, output.View[revoked]{})
		}
		_, err = output.Printf(c.Out, "revoked by %s; runners with this key pinned take nothing of it any more\n", by.Key.ID)
		return err
	})
	return cmd
}

// showRevocations says whether a release is revoked.
func (c *cli) showRevocations(list []ctlapi.ReleaseRevocation) error {
	for _, r := range list {
		_, err := output.Printf(c.Out, "\nREVOKED by %s at %s: %s\n  stored by %s, %s ago\n", r.KeyID, r.IssuedAt.UTC().Format(time.RFC3339), r.Reason, r.AddedBy, c.Age(r.AddedAt))
		if err != nil {
			return err
		}
	}
	return nil
}
