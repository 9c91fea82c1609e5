// Package registry is `berth registry`: people pull from the org's registry with
// the OCI clients that they have, by a token that does not last.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Doors is what the commands need of the rest of the command line.
type Doors struct {
	// Call runs a command with a client of the chosen context.
	Call func(func(context.Context, *api.Client, []string) error) func(*cobra.Command, []string) error
	Args cobra.PositionalArgs // none
	Out  io.Writer
	Err  io.Writer
	// Getenv reads DOCKER_CONFIG, the folder of Docker's configuration, and HOME.
	Getenv func(string) string
	Now    func() time.Time
	// Print writes a token for programs, if that is asked for.
	Print func(ctlapi.RegistryToken) (printed bool, err error)
}

// secretPrefix begins every token of Berth's registries.
const secretPrefix = "brg_"

// Login is what `berth registry login -o json` prints: where the token is, without
// it.
type Login struct {
	Host         string    `json:"host"`
	PlainHTTP    bool      `json:"plain_http"`
	Username     string    `json:"username"`
	Repositories string    `json:"repositories"`
	ExpiresAt    time.Time `json:"expires_at"`
	Config       string    `json:"config"` // the file
}

// Commands are the verbs of the noun.
func Commands(d Doors, printLogin func(Login) (printed bool, err error)) []*cobra.Command {
	var w wanted
	login := &cobra.Command{
		Use: "login", Short: "Let docker, crane, oras and skopeo pull for an hour", Args: d.Args,
		Long: `Makes a token that only pulls, and stores it where docker login does: in the credential
helper that Docker's configuration names, or in the configuration itself. docker, crane, oras,
skopeo, helm and cosign read it there. It stops working when it expires, when someone revokes the token of
your context, and with berth registry logout.

berth releases show NUMBER -o json lists the repositories and digests of a release.`,
	}
	w.flags(login)
	config := configFlag(login)
	login.RunE = d.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		file, err := configFile(*config, d.Getenv)
		if err != nil {
			return err
		}
		token, err := w.token(ctx, client)
		if err != nil {
			return err
		}
		if err := store(ctx, file, *token); err != nil {
			return err
		}
		said := Login{
			Host: token.Host, PlainHTTP: token.PlainHTTP, Username: token.Username, Repositories: token.Repositories, ExpiresAt: token.ExpiresAt, Config: file,
		}
		if printed, err := printLogin(said); printed || err != nil {
			return err
		}
		_, err = output.Printf(d.Out, "logged in to %s as %s for %s (%s)\npull what is below %s/%s\n",
			said.Host, said.Username, said.ExpiresAt.Sub(d.Now()).Round(time.Minute), file, said.Host, said.Repositories)
		return err
	})

	var t wanted
	token := &cobra.Command{
		Use: "token", Short: "Print a token that pulls from the registry", Args: d.Args,
		Long: `Prints the token on stdout, and nothing else, for clients that keep their credentials
elsewhere: berth registry token | skopeo login --username x --password-stdin HOST`,
	}
	t.flags(token)
	token.RunE = d.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		made, err := t.token(ctx, client)
		if err != nil {
			return err
		}
		if printed, err := d.Print(*made); printed || err != nil {
			return err
		}
		output.Printf(d.Err, "it pulls from %s/%s until %s:\n", made.Host, made.Repositories, made.ExpiresAt.Format(time.RFC3339))
		_, err = output.Println(d.Out, made.Secret)
		return err
	})
	return []*cobra.Command{login, logout(d), token}
}

func logout(d Doors) *cobra.Command {
	cmd := &cobra.Command{
		Use: "logout HOST", Short: "Forget what login has stored", Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("%s needs the host of the registry, as berth registry login has printed it", cmd.CommandPath())
			}
			return nil
		},
		Long: "Removes the registry's entry from Docker's configuration. The token itself ends when it expires.",
	}
	config := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := configFile(*config, d.Getenv)
		if err != nil {
			return err
		}
		kept, err := open(file)
		if err != nil {
			return err
		}
		had, err := kept.Get(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("read the credentials in %s: %w", file, err)
		}
		if had == auth.EmptyCredential {
			return fmt.Errorf("%s has no credentials of %s", file, args[0])
		}
		if err := kept.Delete(cmd.Context(), args[0]); err != nil {
			return fmt.Errorf("remove the credentials of %s from %s: %w", args[0], file, err)
		}
		_, err = output.Printf(d.Out, "removed the credentials of %s from %s\n", args[0], file)
		return err
	}
	return cmd
}

// wanted is the token that a person asks for.
type wanted struct {
	app     string
	minutes int
}

func (w *wanted) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.app, "app", "", "pull only what belongs to this app, by name or id")
	cmd.Flags().IntVar(&w.minutes, "minutes", 60, "minutes until the token expires, at most 720")
}

func (w *wanted) token(ctx context.Context, client *api.Client) (*ctlapi.RegistryToken, error) {
	resp, err := client.CreateRegistryTokenWithResponse(ctx, &ctlapi.CreateRegistryTokenParams{},
		ctlapi.RegistryTokenRequest{App: api.Optional(w.app), Minutes: &w.minutes})
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON201)
}

func configFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("config", "", "file of Docker's configuration (default: config.json in DOCKER_CONFIG or ~/.docker)")
}

// configFile is Docker's configuration, where all clients look.
func configFile(named string, getenv func(string) string) (string, error) {
	if named != "" {
		return named, nil
	}
	if dir := getenv("DOCKER_CONFIG"); dir != "" {
		return filepath.Join(dir, "config.json"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("HOME is not set: name the file with --config")
	}
	return filepath.Join(home, ".docker", "config.json"), nil
}

// Stored opens Docker's configuration, where `berth registry login` and other clients keep
// credentials. named is its file, "" for the usual one.
func Stored(named string, getenv func(string) string) (credentials.Store, error) {
	file, err := configFile(named, getenv)
	if err != nil {
		return nil, err
	}
	return open(file)
}

// open opens Docker's configuration, with the helpers that it names.
func open(file string) (credentials.Store, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	kept, err := credentials.NewStore(file, credentials.StoreOptions{AllowPlaintextPut: true})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return kept, nil
}

func store(ctx context.Context, file string, token ctlapi.RegistryToken) error {
	kept, err := open(file)
	if err != nil {
		return err
	}
	had, err := kept.Get(ctx, token.Host)
	if err != nil {
		return fmt.Errorf("read the credentials in %s: %w", file, err)
	}
	if had != auth.EmptyCredential && !strings.HasPrefix(had.Password, secretPrefix) {
		return fmt.Errorf("%s has credentials of %s that are not Berth's: keep them and name another file with --config, or remove them first (berth registry logout %s)", file, token.Host, token.Host)
	}
	if err := kept.Put(ctx, token.Host, auth.Credential{Username: token.Username, Password: token.Secret}); err != nil {
		return fmt.Errorf("store the token in %s: %w", file, err)
	}
	return nil
}
