package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/startup"
	"github.com/berth-dev/berth/services/internal/store"
)

func bootstrapCommand() *cobra.Command {
	var org, tokenFile string
	cmd := &cobra.Command{
		Use: "bootstrap", Short: "Make the first org and a token of its admin", Args: cobra.NoArgs,
		Long: "Makes the org when there is none of this name, and writes a token of its admin into the file (0600) unless a good one is there. " +
			"Reads BERTH_DSN_FILE and BERTH_MASTER_KEY_FILE.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if org == "" || tokenFile == "" {
				return errors.New("bootstrap needs --org and --token-file")
			}
			if tokenFile == "-" {
				return bootstrapTo(cmd.Context(), cmd.OutOrStdout(), org)
			}
			config, err := loadConfig()
			if err != nil {
				return err
			}
			done, err := bootstrap(cmd.Context(), config, org, tokenFile)
			if err != nil {
				return err
			}
			switch {
			case done.Created:
				fmt.Fprintf(cmd.OutOrStdout(), "made org %s (%s); token of its admin in %s\n", org, done.OrgID, tokenFile)
			case done.Token:
				fmt.Fprintf(cmd.OutOrStdout(), "org %s is there; new token of its admin in %s\n", org, tokenFile)
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "org %s is there, and so is a token of its admin\n", org)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&org, "org", "", "name of the org")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "where the token goes; - prints a new one, and nothing else")
	return cmd
}

// bootstrapTo prints a new token of the org's admin: for a container, whose files
// nobody can get at.
func bootstrapTo(ctx context.Context, out io.Writer, org string) error {
	config, err := loadConfig()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bootstrap")
	if err != nil {
		return fmt.Errorf("make a folder for the token: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "token")
	if _, err := bootstrap(ctx, config, org, file); err != nil {
		return err
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	_, err = out.Write(token)
	return err
}

func bootstrap(ctx context.Context, config Config, org, tokenFile string) (access.Bootstrapped, error) {
	st, ring, err := open(ctx, config, slog.Default())
	if err != nil {
		return access.Bootstrapped{}, err
	}
	defer st.Close()
	if err := os.MkdirAll(filepath.Dir(tokenFile), 0o700); err != nil {
		return access.Bootstrapped{}, fmt.Errorf("make directory of token file: %w", err)
	}
	return access.Bootstrap(ctx, st, ring, org, tokenFile)
}

// open connects to a database whose schema fits, reads the master key, and sees
// to it that all that is sealed with it names its purpose.
func open(ctx context.Context, config Config, log *slog.Logger) (*database.Store, *keys.Ring, error) {
	master, err := seal.LoadOrCreateMasterKey(config.MasterKeyFile)
	if err != nil {
		return nil, nil, err
	}
	st, err := startup.OpenStore(ctx, config.DSNFile, store.Options{Name: name, MaxConns: int32(config.MaxConns), Log: log})
	if err != nil {
		return nil, nil, err
	}
	ring, own := keys.New(master), database.New(st)
	if err := ring.Reseal(ctx, own); err != nil {
		st.Close()
		return nil, nil, err
	}
	return own, ring, nil
}
