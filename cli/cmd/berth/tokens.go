package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/registry"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) tokensCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List tokens", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Tokens(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Token(c.Now()))
	})
	var member string
	var days int
	create := &cobra.Command{
		Use: "create NAME", Short: "Create a token and print it, once", Args: command.Exactly("NAME"),
		Long: "Prints the token on stdout, and nothing else: berth tokens create ci > ci.token",
	}
	create.Flags().StringVar(&member, "member", "", "the member it belongs to, by name or id (default: you)")
	create.Flags().IntVar(&days, "days", 0, "days until it expires (0: never), at most as long as the token that creates it")
	create.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateTokenWithResponse(ctx, &ctlapi.CreateTokenParams{},
			ctlapi.TokenRequest{Name: args[0], Member: api.Optional(member), ExpiresInDays: api.Optional(days)})
		if err != nil {
			return err
		}
		secret, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if done, err := printed(c, *secret, func(s ctlapi.TokenSecret) string { return s.Token.ID }); done {
			return err
		}
		output.Printf(c.Err, "token %s of %s; this is the only time you see it:\n", secret.Token.ID, secret.Token.Account.Name)
		_, err = output.Println(c.Out, secret.Secret)
		return err
	})
	revoke := &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke a token by its id (tok_…)", Args: command.Exactly("TOKEN"),
		Long: `Revokes a token. Tokens created with it stay valid, so a token can create its successor.
If someone stole the token, use --made-with-it to revoke those too, and the tokens they
created in turn, no matter which member they belong to.`,
	}
	madeWithIt := revoke.Flags().Bool("made-with-it", false, "also revoke tokens created with it, directly or indirectly")
	revoke.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if _, err := client.RevokeTokenWithResponse(ctx, args[0], &ctlapi.RevokeTokenParams{MadeWithIt: madeWithIt}); err != nil {
			return err
		}
		_, err := output.Printf(c.Out, "revoked token %s\n", args[0])
		return err
	})
	return command.Noun("tokens", "token", "Credentials for people and machines", list, create, revoke)
}

func (c *cli) registryCommand() *cobra.Command {
	doors := registry.Doors{
		Call: c.Call, Args: command.Exactly(), Out: c.Out, Err: c.Err, Getenv: c.Getenv, Now: c.Now,
		Print: func(t ctlapi.RegistryToken) (bool, error) {
			return printed(c, t, func(t ctlapi.RegistryToken) string { return t.Secret })
		},
	}
	return command.Noun("registry", "registries", "The org's artifacts, for any OCI client", registry.Commands(doors, func(l registry.Login) (bool, error) {
		return printed(c, l, func(l registry.Login) string { return l.Host })
	})...)
}

// printed prints an item for programs, if that is asked for.
func printed[T any](c *cli, item T, name func(T) string) (bool, error) {
	if !c.ForPrograms() {
		return false, nil
	}
	return true, command.PrintOne(c.CLI, item, output.View[T]{Name: name})
}
