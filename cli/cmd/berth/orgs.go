package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) orgsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the orgs that your credential has access to", Args: command.Exactly()}
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		resp, err := client.ListOrgsWithResponse(ctx)
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, page.Items, table.Org(c.Now()))
	})
	var admin string
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an org and its first admin", Args: command.Exactly("NAME"),
		Long: "Prints the admin's token on stdout, once. You need the platform role.",
	}
	create.Flags().StringVar(&admin, "admin", "admin", "name of the first admin")
	create.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("an org", args[0]); err != nil {
			return err
		}
		resp, err := client.CreateOrgWithResponse(ctx, &ctlapi.CreateOrgParams{}, ctlapi.OrgRequest{Name: args[0], Admin: admin})
		if err != nil {
			return err
		}
		org, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *org, output.View[ctlapi.NewOrg]{Name: func(o ctlapi.NewOrg) string { return o.Org.Name }})
		}
		output.Printf(c.Err, "created org %s with the admin %s; this is the only time you see the token:\n", org.Org.Name, org.Admin.Name)
		_, err = output.Println(c.Out, org.Token.Secret)
		return err
	})
	return command.Noun("orgs", "org", "The vendors on this Berth", list, create, c.orgsChain())
}

// orgsChain writes a file, never to stdout: a chain is checked byte for byte, and
// what a terminal gets is not.
func (c *cli) orgsChain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "chain FILE", Short: "Save the org's chain, the record of everything done through the API, to a file", Args: command.Exactly("FILE"),
		Long: `Writes the records of the org's chain to a new file, exactly as stored, one per line.
They include the heads of the installs' chains, which berth-verify --head compares with a
runner's chain. The file must not exist yet.`,
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		seq, err := client.SaveChain(ctx, "org", file)
		if err := errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(args[0]) // half a chain is none
			return err
		}
		_, err = output.Printf(c.Out, "saved %d records to %s\n", seq, args[0])
		return err
	})
	return cmd
}

func (c *cli) membersCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List members and their roles", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Members(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Member(c.Now()))
	})
	remove := &cobra.Command{Use: "remove MEMBER", Short: "Disable a member's account and revoke its tokens", Args: command.Exactly("MEMBER")}
	remove.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if _, err := client.RemoveMemberWithResponse(ctx, args[0]); err != nil {
			return err
		}
		_, err := output.Printf(c.Out, "removed member %s\n", args[0])
		return err
	})
	return command.Noun("members", "member", "People and machines with an account in the org", list, c.membersCreate(), remove)
}

func (c *cli) membersCreate() *cobra.Command {
	request := ctlapi.MemberRequest{Kind: ctlapi.MemberRequestKindUser}
	var email, customer, app, install string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Add a member with one role", Args: command.Exactly("NAME"),
		Long: "The role counts in the whole org, or only within one customer, app or install. berth tokens\ncreate makes the member's first token.",
	}
	cmd.Flags().Var(usage.OneOf((*string)(&request.Role), ctlapi.MemberRequestRoleAdmin, ctlapi.MemberRequestRoleOperator, ctlapi.MemberRequestRoleViewer,
		ctlapi.MemberRequestRoleCustomer), "role", "admin, operator, viewer or customer")
	cmd.Flags().Var(usage.OneOf((*string)(&request.Kind), ctlapi.MemberRequestKindUser, ctlapi.MemberRequestKindService), "kind", "user or service")
	cmd.Flags().StringVar(&email, "email", "", "email address")
	cmd.Flags().StringVar(&customer, "customer", "", "only within this customer")
	cmd.Flags().StringVar(&app, "app", "", "only within this app")
	cmd.Flags().StringVar(&install, "install", "", "only within this install")
	_ = cmd.MarkFlagRequired("role")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		request.Name = args[0]
		request.Email, request.Customer, request.App, request.Install = api.Optional(email), api.Optional(customer), api.Optional(app), api.Optional(install)
		resp, err := client.CreateMemberWithResponse(ctx, &ctlapi.CreateMemberParams{}, request)
		if err != nil {
			return err
		}
		member, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *member, table.Member(c.Now()))
	})
	return cmd
}
