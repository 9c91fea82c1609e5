package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/keyfile"
)

// signing says with which key somebody signs.
type signing struct{ key, sshKey string }

func (f *signing) flags(set *pflag.FlagSet) {
	set.StringVar(&f.key, "key", "", "file of the private key that signs: of consent-key new, or an SSH key without a passphrase")
	set.StringVar(&f.sshKey, "ssh-key", "", "file of the public half of an SSH key that ssh-agent has (SSH_AUTH_SOCK); a security key has to be touched")
}

func (f *signing) given() bool { return f.key != "" || f.sshKey != "" }

// signer is the key; close it after use.
func (f *signing) signer(ctx context.Context) (s consent.Signer, end func(), err error) {
	end = func() {}
	switch {
	case f.key != "" && f.sshKey != "":
		return s, end, usageError{errors.New("give --key or --ssh-key, not both")}
	case f.key != "":
		s, err = keyfile.Read(f.key)
		return s, end, err
	case f.sshKey != "":
		s, end, err = keyfile.InAgent(ctx, f.sshKey, os.Getenv("SSH_AUTH_SOCK"))
		if errors.Is(err, keyfile.ErrNoAgent) {
			err = fmt.Errorf("%w, or sign elsewhere: approve --print", err)
		}
		return s, end, err
	}
	return s, end, usageError{errors.New("say which key signs: --key FILE, or --ssh-key PUBFILE for one that ssh-agent has")}
}

// osUser is who works on the command line, as far as the machine knows.
func osUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func (s *settings) consentKeyCommand() *cobra.Command {
	made := &cobra.Command{
		Use: "new FILE", Short: "Make a key that signs your consent", Args: oneArg("a file for the private key"),
		Long: "Makes an Ed25519 key: the private half goes into FILE (0600), which must not exist; the public half is printed, as trust.json takes it. " +
			"Keep the file apart from the runner. An SSH key that you have already does as well.",
		Example: "  berth-runner consent-key new ada.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, public, err := keyfile.New(args[0])
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(args[0]), ".key")
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %s is in %s\nadd its public half to consent.holders in trust.json:\n  {\"name\": %q, \"keys\": [%q]}\n",
				id, args[0], name, public)
			return err
		},
	}
	cmd := &cobra.Command{Use: "consent-key", Short: "Keys that sign your consent", Args: noArgs}
	cmd.AddCommand(made)
	return cmd
}
