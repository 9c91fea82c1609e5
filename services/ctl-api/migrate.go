package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/startup"
	"github.com/berth-dev/berth/services/internal/store"
)

// adminURLEnv may hold the administrator's address, so that its password is in
// no argument list.
const adminURLEnv = "BERTH_ADMIN_URL"

// connectionLimitEnv is --connection-limit where no flags are written.
const connectionLimitEnv = "BERTH_DB_CONNECTION_LIMIT"

// adminURLFileEnv names a file with that address, for where secrets are files.
const adminURLFileEnv = "BERTH_ADMIN_URL_FILE"

// migration is what `migrate` is asked for.
type migration struct {
	adminURL, dsnDir, database string
	connectionLimit            int
	given                      bool
}

func migrateCommand() *cobra.Command {
	var m migration
	cmd := &cobra.Command{
		Use: "migrate", Short: "Make database, roles and schema, or bring them up to date", Args: cobra.NoArgs,
		Long: "Makes the database and one login role per service, writes the address of each into a file (0600) of the DSN directory, " +
			"and applies the migrations. Safe to run again, and by several at once.",
		RunE: func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&m.adminURL, "admin-url", "", "address of a role that may create roles and databases; better in "+adminURLEnv+", or in the file that "+adminURLFileEnv+" names")
	cmd.Flags().StringVar(&m.dsnDir, "dsn-dir", "", "directory for one DSN file per service")
	cmd.Flags().BoolVar(&m.given, "given-dsns", false, "the DSN files are there already, such as mounted secrets: give the roles the passwords in them, and write nothing")
	cmd.Flags().StringVar(&m.database, "database", "", "name of the database (default berth)")
	cmd.Flags().IntVar(&m.connectionLimit, "connection-limit", 0, "most connections of each service's role, on the whole server; 0 leaves the limits alone (or "+connectionLimitEnv+")")
	return cmd
}

func (m migration) run(ctx context.Context, out io.Writer) error {
	adminURL, err := m.readAdminURL()
	if err != nil {
		return err
	}
	if adminURL == "" || m.dsnDir == "" {
		return errors.New("migrate needs --admin-url (or " + adminURLEnv + ", or " + adminURLFileEnv + ") and --dsn-dir")
	}
	limit, err := readConnectionLimit(m.connectionLimit)
	if err != nil {
		return err
	}
	if !m.given {
		if err := os.MkdirAll(m.dsnDir, 0o700); err != nil {
			return fmt.Errorf("make DSN directory: %w", err)
		}
	}
	dsns, err := store.EnsureRoles(ctx, adminURL, store.RoleOptions{Database: m.database, Dir: m.dsnDir, Given: m.given, ConnectionLimit: limit})
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
		fmt.Fprintf(out, "schema is at version %d, by a newer release; it serves this one, which has %d, and was left as it is\n", done.To, latest)
	case done.From == done.To:
		fmt.Fprintf(out, "schema is up to date at version %d\n", done.To)
	default:
		fmt.Fprintf(out, "schema brought from version %d to %d\n", done.From, done.To)
	}
	return nil
}

func (m migration) readAdminURL() (string, error) {
	file := os.Getenv(adminURLFileEnv)
	if m.adminURL != "" || os.Getenv(adminURLEnv) != "" || file == "" {
		return cmp.Or(m.adminURL, os.Getenv(adminURLEnv)), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", adminURLFileEnv, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func awaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "await-schema", Short: "Wait until the database has the schema of this version", Args: cobra.NoArgs,
		Long: "Waits until the database answers and `migrate` of this version has run, so that what starts afterwards finds what it needs. " +
			"Reads BERTH_DSN_FILE, of any service. It ends at once where a newer release has migrated the database so far that this one no longer works with it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return awaitSchema(cmd.Context(), os.Getenv("BERTH_DSN_FILE"), timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait at most")
	return cmd
}

// awaitPause is between two looks: a migration takes seconds.
const awaitPause = time.Second

// awaitSchema looks until the schema fits. Whatever else is wrong may get better:
// a server that starts, a role that is not there yet.
func awaitSchema(ctx context.Context, dsnFile string, timeout time.Duration) error {
	if err := setting.DSNFile("BERTH_DSN_FILE", dsnFile); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	said := ""
	for {
		st, err := startup.OpenStore(ctx, dsnFile, store.Options{Name: name + " await-schema", MaxConns: 2, Log: slog.Default()})
		if err == nil {
			st.Close()
			return nil
		}
		if fault.From(err).Code == "schema_newer" {
			return err
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			slog.InfoContext(ctx, "waiting for the schema", "err", err)
			said = text
		}
		select {
		case <-time.After(awaitPause):
		case <-ctx.Done():
			return fmt.Errorf("the schema is not there after %s: %w", timeout, err)
		}
	}
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
