package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
)

func (c *cli) contextCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List contexts", Args: command.Exactly()}
	list.RunE = func(*cobra.Command, []string) error {
		file, err := c.ContextFile()
		if err != nil {
			return err
		}
		var rows []table.NamedContext
		for _, name := range file.Names() {
			rows = append(rows, table.NamedContext{Name: name, Context: file.Contexts[name], Current: name == file.Current})
		}
		return command.PrintList(c.CLI, rows, table.Context())
	}
	use := &cobra.Command{Use: "use NAME", Short: "Make a context the current one", Args: command.Exactly("NAME")}
	use.RunE = func(_ *cobra.Command, args []string) error {
		file, err := c.ContextFile()
		if err != nil {
			return err
		}
		if err := file.Use(args[0]); err != nil {
			return err
		}
		return file.Save()
	}
	show := &cobra.Command{Use: "show", Short: "Show which Berth commands talk to, and as whom", Args: command.Exactly()}
	show.RunE = func(cmd *cobra.Command, _ []string) error { return c.contextShow(cmd.Context()) }
	remove := &cobra.Command{Use: "remove NAME", Short: "Remove a context; its token stays valid", Args: command.Exactly("NAME")}
	remove.RunE = func(_ *cobra.Command, args []string) error {
		file, err := c.ContextFile()
		if err != nil {
			return err
		}
		if err := file.Remove(args[0]); err != nil {
			return err
		}
		return file.Save()
	}
	return command.Noun("context", "contexts", "Choose the Berth that commands talk to", list, show, use, c.contextAdd(), remove)
}

func (c *cli) contextAdd() *cobra.Command {
	var url, tokenFile, org string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a context and make it the current one", Args: command.Exactly("NAME"),
		Long: "Berth reads the token from --token-file or from stdin, never from an argument, and keeps\nit in a separate file that only you can read.",
	}
	cmd.Flags().StringVar(&url, "url", "", "address of the control plane")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "use the token in this file, and leave it there")
	cmd.Flags().StringVar(&org, "in-org", "", "the org to work in, if you belong to several")
	_ = cmd.MarkFlagRequired("url")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name := args[0]
		if strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, ".") {
			return usage.Errorf("%q is not a valid context name", name)
		}
		if err := contexts.CheckURL(url); err != nil {
			return usage.Error{Err: err}
		}
		file, err := c.ContextFile()
		if err != nil {
			return err
		}
		if tokenFile == "" {
			if command.IsTerminal(c.In) {
				output.Println(c.Err, "paste the token, then press Enter and Ctrl-D:")
			}
			token, err := io.ReadAll(io.LimitReader(c.In, 4096))
			if err != nil {
				return err
			}
			if len(strings.TrimSpace(string(token))) == 0 {
				return usage.Errorf("no token: pass it on stdin or with --token-file")
			}
			if tokenFile, err = file.StoreToken(name, string(token)); err != nil {
				return err
			}
		} else if _, err := os.Stat(tokenFile); err != nil {
			return err
		}
		file.Contexts[name] = contexts.Context{URL: url, TokenFile: tokenFile, Org: org}
		file.Current = name
		return file.Save()
	}
	return cmd
}

func (c *cli) contextShow(ctx context.Context) error {
	target, err := c.Target()
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	resp, err := client.GetMeWithResponse(ctx)
	if err != nil {
		return err
	}
	me, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		o, err := c.Format()
		if err != nil {
			return err
		}
		return output.Program(c.Out, o, me)
	}
	var roles []string
	for _, grant := range me.Grants {
		roles = append(roles, string(grant.Role))
	}
	_, err = output.Printf(c.Out, "%s  %s in org %s (%s), context %s\n", target.URL, me.Account.Name, me.Org.Name,
		strings.Join(roles, ", "), cmp.Or(target.Name, "none: from BERTH_URL"))
	return err
}
