package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/durable"
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
		s, err = fileSigner(f.key)
		return s, end, err
	case f.sshKey != "":
		return agentSigner(ctx, f.sshKey, os.Getenv("SSH_AUTH_SOCK"))
	}
	return s, end, usageError{errors.New("say which key signs: --key FILE, or --ssh-key PUBFILE for one that ssh-agent has")}
}

func fileSigner(file string) (consent.Signer, error) {
	info, err := os.Stat(file)
	if err != nil {
		return consent.Signer{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return consent.Signer{}, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it, and think about who may have read it", file, info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return consent.Signer{}, err
	}
	if block, _ := pem.Decode(text); block != nil && block.Type == "OPENSSH PRIVATE KEY" {
		key, err := ssh.ParsePrivateKey(text)
		if errors.As(err, new(*ssh.PassphraseMissingError)) {
			return consent.Signer{}, fmt.Errorf("%s has a passphrase: add it to ssh-agent (ssh-add %s), and use --ssh-key %s.pub", file, file, file)
		}
		if err != nil {
			return consent.Signer{}, fmt.Errorf("%s: not an SSH key that can be read", file)
		}
		return consent.SSHSigner(key)
	}
	key, err := capsule.ParsePrivateKey(text)
	if err != nil {
		return consent.Signer{}, fmt.Errorf("%s: %w", file, err)
	}
	return consent.Ed25519Signer(key), nil
}

// agentSigner signs by ssh-agent, which may have to ask for a touch.
func agentSigner(ctx context.Context, file, socket string) (s consent.Signer, end func(), err error) {
	end = func() {}
	text, err := os.ReadFile(file)
	if err != nil {
		return s, end, err
	}
	want, err := consent.ParseKey(string(text))
	if err != nil {
		return s, end, fmt.Errorf("%s: %w", file, err)
	}
	if socket == "" {
		return s, end, errors.New("no ssh-agent: SSH_AUTH_SOCK is not set; start one (eval $(ssh-agent)) and add the key (ssh-add), or sign elsewhere: approve --print")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return s, end, fmt.Errorf("ssh-agent at %s does not answer: %w", socket, err)
	}
	end = func() { _ = conn.Close() }
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return s, end, fmt.Errorf("ssh-agent at %s: %w", socket, err)
	}
	for _, candidate := range signers {
		if found, err := consent.SSHSigner(candidate); err == nil && found.Key.ID == want.ID {
			return found, end, nil
		}
	}
	return s, end, fmt.Errorf("ssh-agent does not have the key %s: ssh-add it", want.ID)
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
			public, private, err := capsule.GenerateKey()
			if err != nil {
				return err
			}
			text, err := capsule.MarshalPrivateKey(private)
			if err != nil {
				return err
			}
			if err := writeNew(args[0], text); err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(args[0]), ".key")
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %s is in %s\nadd its public half to consent.holders in trust.json:\n  {\"name\": %q, \"keys\": [%q]}\n",
				capsule.KeyID(public), args[0], name, capsule.EncodePublicKey(public))
			return err
		},
	}
	cmd := &cobra.Command{Use: "consent-key", Short: "Keys that sign your consent", Args: noArgs}
	cmd.AddCommand(made)
	return cmd
}

// writeNew makes a file that only its owner can read, where there is none.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(file))
}
