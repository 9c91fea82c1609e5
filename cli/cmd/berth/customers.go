package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) customersCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List customers", Args: exactly()}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := collect(*limit, func(limit int, after *string) ([]ctlapi.Customer, string, error) {
			resp, err := client.ListCustomersWithResponse(ctx, &ctlapi.ListCustomersParams{Limit: &limit, After: after})
			if err != nil {
				return nil, "", err
			}
			page, err := api.Body(resp.JSON200)
			if err != nil {
				return nil, "", err
			}
			return page.Items, page.Next, nil
		})
		if err != nil {
			return err
		}
		return printList(c, items, c.customerView())
	})
	show := &cobra.Command{Use: "show CUSTOMER", Short: "Show a customer", Args: exactly("CUSTOMER")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetCustomerWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		customer, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return printOne(c, *customer, c.customerView())
	})
	var labels []string
	create := &cobra.Command{Use: "create NAME", Short: "Add a customer", Args: exactly("NAME")}
	create.Flags().StringSliceVarP(&labels, "label", "l", nil, "a label, key=value")
	create.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("a customer", args[0]); err != nil {
			return err
		}
		marks, err := pairs[ctlapi.Labels]("--label", labels)
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
		return printOne(c, *customer, c.customerView())
	})
	return noun("customers", "customer", "In whose accounts and machines installs run", list, show, create)
}

func (c *cli) customerView() output.View[ctlapi.Customer] {
	return output.View[ctlapi.Customer]{
		Name: func(x ctlapi.Customer) string { return x.Name },
		None: "no customers yet",
		Columns: []output.Column[ctlapi.Customer]{
			{Head: "NAME", Cell: func(x ctlapi.Customer) string { return x.Name }},
			{Head: "LABELS", Cell: func(x ctlapi.Customer) string { return labelText(x.Labels) }},
			{Head: "AGE", Cell: func(x ctlapi.Customer) string { return c.age(x.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(x ctlapi.Customer) string { return x.ID }},
		},
	}
}

func labelText(labels map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, ",")
}
