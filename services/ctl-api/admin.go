package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/startup"
	"github.com/berth-dev/berth/services/internal/store"
)

// adminURLEnv may hold the administrator's address, so that its password is in
// no argument list.
const adminURLEnv = "BERTH_ADMIN_URL"

// connectionLimitEnv is --connection-limit where no flags are written.
const connectionLimitEnv = "BERTH_DB_CONNECTION_LIMIT"

func migrateCommand() *cobra.Command {
	var adminURL, dsnDir, database string
	var connectionLimit int
	cmd := &cobra.Command{
		Use: "migrate", Short: "Make database, roles and schema, or bring them up to date", Args: cobra.NoArgs,
		Long: "Makes the database and one login role per service, writes the address of each into a file (0600) of the DSN directory, " +
			"and applies the migrations. Safe to run again, and by several at once.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if adminURL == "" {
				adminURL = os.Getenv(adminURLEnv)
			}
			if adminURL == "" || dsnDir == "" {
				return errors.New("migrate needs --admin-url (or " + adminURLEnv + ") and --dsn-dir")
			}
			limit, err := readConnectionLimit(connectionLimit)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dsnDir, 0o700); err != nil {
				return fmt.Errorf("make DSN directory: %w", err)
			}
			ctx := cmd.Context()
			dsns, err := store.EnsureRoles(ctx, adminURL, store.RoleOptions{Database: database, Dir: dsnDir, ConnectionLimit: limit})
			if err != nil {
				return err
			}
			done, err := store.Migrate(ctx, dsns[store.RoleMigrate], slog.Default())
			if err != nil {
				return err
			}
			latest, err := store.LatestVersion()
			if err != nil {
				return err
			}
			switch {
			case done.To > latest:
				fmt.Fprintf(cmd.OutOrStdout(), "schema is at version %d, by a newer release; it serves this one, which has %d, and was left as it is\n", done.To, latest)
			case done.From == done.To:
				fmt.Fprintf(cmd.OutOrStdout(), "schema is up to date at version %d\n", done.To)
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "schema brought from version %d to %d\n", done.From, done.To)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&adminURL, "admin-url", "", "address of a role that may create roles and databases; better in "+adminURLEnv)
	cmd.Flags().StringVar(&dsnDir, "dsn-dir", "", "directory for one DSN file per service")
	cmd.Flags().StringVar(&database, "database", "", "name of the database (default berth)")
	cmd.Flags().IntVar(&connectionLimit, "connection-limit", 0, "most connections of each service's role, on the whole server; 0 leaves the limits alone (or "+connectionLimitEnv+")")
	return cmd
}

// minConnectionLimit lets the smallest pool of each service start, twice: an old
// process ends while its successor begins.
const minConnectionLimit = 20

// readConnectionLimit is the flag, or the environment where there is none.
func readConnectionLimit(flag int) (int, error) {
	text := os.Getenv(connectionLimitEnv)
	if flag == 0 && text != "" {
		var err error
		if flag, err = strconv.Atoi(text); err != nil {
			return 0, fmt.Errorf("%s is %q, want a number", connectionLimitEnv, text)
		}
	}
	if flag != 0 && flag < minConnectionLimit {
		return 0, fmt.Errorf("the connection limit is %d, want at least %d, or 0 to leave the limits alone", flag, minConnectionLimit)
	}
	return flag, nil
}

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
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "where the token goes")
	return cmd
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
