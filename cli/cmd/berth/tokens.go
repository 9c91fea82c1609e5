package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) tokensCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List tokens", Args: exactly()}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Tokens(ctx, *limit)
		if err != nil {
			return err
		}
		return printList(c, items, table.Token(c.now()))
	})
	var member string
	var days int
	create := &cobra.Command{
		Use: "create NAME", Short: "Make a token; it is shown once", Args: exactly("NAME"),
		Long: "Prints the token on stdout, and nothing else: berth tokens create ci > ci.token",
	}
	create.Flags().StringVar(&member, "member", "", "for another member, by name or id")
	create.Flags().IntVar(&days, "days", 0, "valid for so many days (0: until it is revoked), at most as long as the token that makes it")
	create.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateTokenWithResponse(ctx, &ctlapi.CreateTokenParams{},
			ctlapi.TokenRequest{Name: args[0], Member: optional(member), ExpiresInDays: optional(days)})
		if err != nil {
			return err
		}
		secret, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if c.forPrograms() {
			return printOne(c, *secret, output.View[ctlapi.TokenSecret]{Name: func(s ctlapi.TokenSecret) string { return s.Token.ID }})
		}
		output.Printf(c.err, "token %s of %s; it is not shown again:\n", secret.Token.ID, secret.Token.Account.Name)
		_, err = output.Println(c.out, secret.Secret)
		return err
	})
	revoke := &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke a token by its id (tok_…)", Args: exactly("TOKEN"),
		Long: `Revokes a token. What was made with it stays good, so that a token can make its successor. When it
was in the wrong hands, --made-with-it revokes those tokens too, and what they made, of whichever member.`,
	}
	madeWithIt := revoke.Flags().Bool("made-with-it", false, "also revoke what was made with it, directly or not")
	revoke.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		if _, err := client.RevokeTokenWithResponse(ctx, args[0], &ctlapi.RevokeTokenParams{MadeWithIt: madeWithIt}); err != nil {
			return err
		}
		_, err := output.Printf(c.out, "token %s is revoked\n", args[0])
		return err
	})
	return noun("tokens", "token", "Credentials of people and machines", list, create, revoke)
}
