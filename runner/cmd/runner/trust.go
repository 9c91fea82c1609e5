package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
)

// trustCommand is whose releases the customer trusts: of the runner, and of the app.
func (s *settings) trustCommand() *cobra.Command {
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the release keys that this runner trusts", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			keys, err := dir.LoadReleaseKeys()
			if err != nil {
				return err
			}
			ids := slices.Sorted(maps.Keys(keys))
			if asJSON {
				return printJSON(cmd.OutOrStdout(), append([]string{}, ids...))
			}
			for _, id := range ids {
				fmt.Fprintln(cmd.OutOrStdout(), id)
			}
			if len(ids) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "none: this runner refuses every update of itself")
			}
			return nil
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	add := &cobra.Command{
		Use: "add FILE", Short: "Trust the releases that a key signs", Args: oneArg("the file of a public key"),
		Long: "Pins the public key of a release (PEM), which you got from elsewhere than the releases. From then on, an update of this runner that somebody " +
			"approves may bring a version that the key signed, and no other. It takes effect at once.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			key, err := capsule.ParsePublicKey(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			id, err := dir.TrustRelease(key)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "releases signed by key %s may update this runner\n", id)
			return nil
		},
	}
	remove := &cobra.Command{
		Use: "remove KEY", Short: "Trust a release key no more", Args: oneArg("the id of a key"),
		Long: "Takes a pinned release key away, by its id. The version that runs keeps running; to go back, start the runner of the package with an empty versions folder.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			if err := dir.DistrustRelease(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "releases signed by key %s do not update this runner any more\n", args[0])
			return nil
		},
	}
	keys := &cobra.Command{Use: "release-key", Short: "Whose releases of the runner may run here", Args: noArgs}
	keys.AddCommand(list, add, remove)
	cmd := &cobra.Command{Use: "trust", Short: "What this runner trusts", Args: noArgs}
	cmd.AddCommand(keys, s.vendorKeyCommand())
	return cmd
}

// oneArg takes exactly one argument and says what it is.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("%s is needed; see %s --help", what, cmd.CommandPath())}
		}
		return nil
	}
}
