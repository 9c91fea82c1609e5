package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) customersCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List customers", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Customers(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Customer(c.Now()))
	})
	show := &cobra.Command{Use: "show CUSTOMER", Short: "Show a customer", Args: command.Exactly("CUSTOMER")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetCustomerWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		customer, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *customer, table.Customer(c.Now()))
	})
	var labels []string
	create := &cobra.Command{Use: "create NAME", Short: "Add a customer", Args: command.Exactly("NAME")}
	create.Flags().StringSliceVarP(&labels, "label", "l", nil, "a label, key=value")
	create.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("a customer", args[0]); err != nil {
			return err
		}
		marks, err := usage.Pairs[ctlapi.Labels]("--label", labels)
		if err != nil {
			return err
		}
		resp, err := client.CreateCustomerWithResponse(ctx, &ctlapi.CreateCustomerParams{}, ctlapi.CustomerRequest{Name: args[0], Labels: marks})
		if err != nil {
			return err
		}
		customer, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *customer, table.Customer(c.Now()))
	})
	return command.Noun("customers", "customer", "The customers whose accounts and machines installs run in", list, show, create)
}
