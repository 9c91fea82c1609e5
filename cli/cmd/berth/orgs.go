package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) orgsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the orgs that the credential opens", Args: exactly()}
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		resp, err := client.ListOrgsWithResponse(ctx)
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return printList(c, page.Items, c.orgView())
	})
	var admin string
	create := &cobra.Command{
		Use: "create NAME", Short: "Make an org and its first admin", Args: exactly("NAME"),
		Long: "Prints the admin's token on stdout, once. Needs the role platform.",
	}
	create.Flags().StringVar(&admin, "admin", "admin", "name of the first admin")
	create.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := nameable("an org", args[0]); err != nil {
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
		if c.forPrograms() {
			return printOne(c, *org, output.View[ctlapi.NewOrg]{Name: func(o ctlapi.NewOrg) string { return o.Org.Name }})
		}
		output.Printf(c.err, "org %s with the admin %s; the token is not shown again:\n", org.Org.Name, org.Admin.Name)
		_, err = output.Println(c.out, org.Token.Secret)
		return err
	})
	return noun("orgs", "org", "Vendors on this Berth", list, create)
}

func (c *cli) orgView() output.View[ctlapi.Org] {
	return output.View[ctlapi.Org]{
		Name: func(o ctlapi.Org) string { return o.Name },
		Columns: []output.Column[ctlapi.Org]{
			{Head: "NAME", Cell: func(o ctlapi.Org) string { return o.Name }},
			{Head: "AGE", Cell: func(o ctlapi.Org) string { return c.age(o.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(o ctlapi.Org) string { return o.ID }},
		},
	}
}
