package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/kubesecret"
	"github.com/berth-dev/berth/runner/agent/secretstore"
)

// secretsCommand is where the customer gives the install's secrets their values.
func (s *settings) secretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "secrets", Short: "Set the secrets of this install",
		Long: `The values of the secrets that the app asks for. They are kept on this machine, sealed with the
runner's key, and are read by the jobs whose templates name them. The vendor learns names, versions and
salted digests, never a value.

A value is never an argument, where other users of this machine could read it: it comes from standard
input, from a file, or from a prompt. Everything works while the vendor is down.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.secretsListCommand(), s.secretsSetCommand(), s.secretsGenerateCommand("generate"), s.secretsGenerateCommand("rotate"), s.secretsUnsetCommand(), s.secretsShowVersionCommand())
	return cmd
}

// secretStore opens the store of an enrolled runner of an install.
func (s *settings) secretStore() (secretstore.Store, error) {
	dir, err := s.dir()
	if err != nil {
		return secretstore.Store{}, err
	}
	runner, found, err := dir.LoadRunner()
	switch {
	case err != nil:
		return secretstore.Store{}, err
	case !found:
		return secretstore.Store{}, fmt.Errorf("the runner in %s is not enrolled yet, so it is not known for which install a secret would be: start it first", dir.Path())
	case runner.InstallID == "":
		return secretstore.Store{}, errors.New("this is a runner for builds; secrets are kept by the runner of an install")
	}
	keys, err := dir.Keys()
	return secretstore.Store{Dir: dir.CustomerSecrets(), Runner: runner, Keys: keys, Now: time.Now}, err
}

func oneSecret(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("the name of one secret is needed, and nothing else: a value is never an argument; see %s --help", cmd.CommandPath())}
	}
	if !customersecret.ValidName(args[0]) {
		return usageError{errors.New("this cannot be the name of a secret") /* it may be a value */}
	}
	return nil
}

// listed is a line of the list.
type listed struct {
	customersecret.Version
	Description string `json:"description,omitempty"`
	Declared    bool   `json:"declared"`
	Needed      bool   `json:"needed"`
}

func (s *settings) secretsListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the secrets that the app asks for, and those that are set", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := s.secretStore()
			if err != nil {
				return err
			}
			list, err := listSecrets(store)
			if err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), list))
			}
			return printSecrets(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listSecrets(store secretstore.Store) ([]listed, error) {
	kept, err := store.List()
	if err != nil {
		return nil, err
	}
	declared, err := store.Declared()
	if err != nil {
		return nil, err
	}
	list := []listed{}
	for _, d := range declared {
		line := listed{Version: customersecret.Version{Name: d.Name}, Description: d.Description, Declared: true, Needed: d.Needed()}
		if i := slices.IndexFunc(kept, func(v customersecret.Version) bool { return v.Name == d.Name }); i >= 0 {
			line.Version = kept[i]
		}
		list = append(list, line)
	}
	for _, v := range kept {
		if !slices.ContainsFunc(list, func(l listed) bool { return l.Name == v.Name }) {
			list = append(list, listed{Version: v})
		}
	}
	return list, nil
}

func printSecrets(to io.Writer, list []listed) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(to, "the app has asked for no secrets yet, and none is set")
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVALUE\tVERSION\tBY\tAT\tDESCRIPTION")
	for _, l := range list {
		value, at := "not set", "-"
		switch {
		case l.Set:
			value = "set"
		case l.Needed:
			value = "MISSING"
		}
		if !l.SetAt.IsZero() {
			at = l.SetAt.Format(time.RFC3339)
		}
		description := visible.Line(l.Description)
		if !l.Declared {
			description = "(the app does not ask for it)"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", visible.Line(l.Name), value, l.Version.Version, or(visible.Line(l.SetBy), "-"), at, description)
	}
	return w.Flush()
}

func (s *settings) secretsSetCommand() *cobra.Command {
	var file, from, kubeconfig string
	var force, keep bool
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Set a secret, from standard input, a file, a prompt or a Secret of Kubernetes", Args: oneSecret,
		Long: `Sets a secret. Without --file the value is read from standard input, or asked for without showing
it on a terminal. One line end at the end is not part of the value; --keep-newline keeps it.

A value has at least ` + strconv.Itoa(customersecret.MinBytes) + ` bytes: a shorter one could not be kept out of logs. What the app wants as base64 is
given as base64. The same value again is no new version.

--from-kubernetes reads one key of one Secret, once, with the account of --kubeconfig, of KUBECONFIG
or of the pod that the command runs in, which needs the right to get that Secret and no other. The
bytes are taken as they are, as base64 where the app wants that. Run it again after the Secret has
changed: the runner does not watch it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.secretStore()
			if err != nil {
				return err
			}
			d, found, err := store.Declaration(args[0])
			if err != nil {
				return err
			}
			if found && d.AutoGenerate && !d.UserConfigurable && !force {
				return fmt.Errorf("the app has the runner make %s: `berth-runner secrets rotate %s` makes another one; with --force your own is taken", args[0], args[0])
			}
			var value string
			if from != "" {
				value, err = fromKubernetes(cmd.Context(), from, kubeconfig, d.Format)
			} else {
				value, err = readValue(cmd, file, args[0])
			}
			if err != nil {
				return err
			}
			if !keep && from == "" {
				value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
			}
			v, err := store.Set(args[0], value, customersecret.ByCustomer)
			if err != nil {
				return err
			}
			return saySet(cmd.OutOrStdout(), store, v, found)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the value from this file")
	cmd.Flags().StringVar(&from, "from-kubernetes", "", "NAMESPACE/NAME:KEY: read the value from this key of a Secret")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "with --from-kubernetes: the kubeconfig of its cluster (default: KUBECONFIG, else the pod's own account)")
	cmd.MarkFlagsMutuallyExclusive("from-kubernetes", "file")
	cmd.Flags().BoolVar(&keep, "keep-newline", false, "a line end at the end is part of the value")
	cmd.Flags().BoolVar(&force, "force", false, "also a secret that the app has the runner make")
	return cmd
}

// fromKubernetes reads a value from a key of a Secret.
func fromKubernetes(ctx context.Context, place, kubeconfig, format string) (string, error) {
	p, err := kubesecret.Parse(place)
	if err != nil {
		return "", usageError{err}
	}
	c, err := kubesecret.Connect(ctx, kubeconfig, os.Getenv)
	if err != nil {
		return "", err
	}
	return kubesecret.Read(ctx, c, p, format)
}

// readValue reads a value from the file, from a prompt, or from standard input. It is
// bounded: what is longer is refused when it is checked.
func readValue(cmd *cobra.Command, file, name string) (string, error) {
	in := cmd.InOrStdin()
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	} else if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(cmd.ErrOrStderr(), "value of %s (it is not shown): ", name)
		raw, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
		return string(raw), err
	}
	const most = customersecret.MaxBytes + 2 // with its line end
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	return string(raw), err
}

func saySet(to io.Writer, store secretstore.Store, v customersecret.Version, declared bool) error {
	fmt.Fprintf(to, "secret %s is set, version %d\n", v.Name, v.Version)
	if list, err := store.Declared(); err == nil && !declared && len(list) > 0 {
		fmt.Fprintln(to, "note: the app does not ask for a secret of this name; `berth-runner secrets list` shows those that it asks for")
	}
	if v.Version > 1 {
		fmt.Fprintln(to, "what uses it keeps the earlier value until it is deployed again, and a copy in the cluster until the next sync of secrets")
	}
	return nil
}

// secretsGenerateCommand has the runner make a value: the first one, or in the place of
// one that is set.
func (s *settings) secretsGenerateCommand(verb string) *cobra.Command {
	short, long := "Have the runner make a value for a secret that has none", "Makes a value of "+strconv.Itoa(customersecret.GeneratedLength)+" letters and digits for a secret that has none, and shows it to nobody."
	if verb == "rotate" {
		short, long = "Have the runner make a new value for a secret", "Makes another value of "+strconv.Itoa(customersecret.GeneratedLength)+` letters and digits for a secret. What uses it keeps the earlier
one until it is deployed again: `+"`berth why INSTALL`"+` names it.`
	}
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Args: oneSecret,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.secretStore()
			if err != nil {
				return err
			}
			k, err := store.Get(args[0])
			switch {
			case errors.Is(err, secretstore.ErrNotThere):
			case err != nil:
				return err
			case k.Set && verb == "generate":
				return fmt.Errorf("%s has a value already: `berth-runner secrets rotate %s` makes another one", args[0], args[0])
			}
			d, found, err := store.Declaration(args[0])
			if err != nil {
				return err
			}
			v, err := store.Set(args[0], customersecret.Generate(d.Format), customersecret.ByRunner)
			if err != nil {
				return err
			}
			return saySet(cmd.OutOrStdout(), store, v, found)
		},
	}
}

func (s *settings) secretsUnsetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unset NAME", Short: "Take the value of a secret away", Args: oneSecret,
		Long: `Takes the value of a secret away from this machine. What uses it keeps the value until it is deployed
again, and nothing that needs it is deployed before it has another one.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.secretStore()
			if err != nil {
				return err
			}
			if err := store.Unset(args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "secret %s has no value any more\n", args[0])
			return err
		},
	}
}

func (s *settings) secretsShowVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show-version NAME", Short: "Show version, digest and age of a secret, never its value", Args: oneSecret,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.secretStore()
			if err != nil {
				return err
			}
			k, err := store.Get(args[0])
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), k.Version)
		},
	}
}
