package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// A DataError is a failure to read or write the data folder or the folder of
// the socket.
type DataError struct{ Err error }

// Error implements error.
func (e *DataError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DataError) Unwrap() error { return e.Err }

func onDisk(err error) error {
	if err == nil {
		return nil
	}
	return &DataError{err}
}

// Init makes the folder of the socket, and the data folder unless there is one;
// fresh tells that it did. A half-made one, of an initdb that was killed, is
// made again: it was never used. It must not run twice at the same time.
//
// Errors are a *Problem where the binaries do not fit, a *DataError where the
// disk fails, or what initdb said.
func (c Cluster) Init(ctx context.Context) (fresh bool, err error) {
	if err := c.own(c.Socket); err != nil {
		return false, err
	}
	cluster, err := os.ReadFile(filepath.Join(c.Data, "PG_VERSION"))
	if err == nil {
		return false, c.checkVersion(ctx, strings.TrimSpace(string(cluster)))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, onDisk(err)
	}
	switch have, err := c.version(ctx); {
	case err != nil:
		return false, err
	case have < minMajor:
		return false, &Problem{
			fmt.Sprintf("Postgres in %s is version %d, %d or newer is needed", c.Bin, have, minMajor),
			"install a newer one, or set BERTH_PG_BIN to it",
		}
	}
	making := c
	making.Data += ".new"
	if err := os.RemoveAll(making.Data); err != nil {
		return false, onDisk(err)
	}
	if err := making.fill(ctx); err != nil {
		return false, err
	}
	return true, onDisk(os.Rename(making.Data, c.Data))
}

// checkVersion compares what the data folder was made with to the binaries.
func (c Cluster) checkVersion(ctx context.Context, made string) error {
	have, err := c.version(ctx)
	if err != nil {
		return err
	}
	if strconv.Itoa(have) != made {
		return &Problem{
			fmt.Sprintf("the data in %s is of Postgres %s, but %s is %d", c.Data, made, c.Bin, have),
			fmt.Sprintf("install Postgres %s, or set BERTH_PG_BIN to it", made),
		}
	}
	return nil
}

// fill makes the data folder.
func (c Cluster) fill(ctx context.Context) error {
	if err := c.own(c.Data); err != nil {
		return err
	}
	args := []string{
		"--pgdata", c.Data, "--username", "postgres", "--encoding", "UTF8", "--locale", "C.UTF-8",
		"--auth-local", "peer", "--auth-host", "reject",
	}
	if c.Scratch {
		args = append(args, "--no-sync")
	}
	if out, err := c.program(ctx, "initdb", args).CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("initdb: %w: %s", err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	return c.admit()
}

// own makes a folder that only the server's user can enter.
func (c Cluster) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return onDisk(err)
	}
	if c.User == nil {
		return nil
	}
	return onDisk(os.Chown(dir, int(c.User.Uid), int(c.User.Gid)))
}

// admit writes who may come in.
func (c Cluster) admit() error {
	me, err := user.Current()
	if err != nil {
		return fmt.Errorf("look up the own user: %w", err)
	}
	for name, text := range map[string]string{
		"pg_hba.conf": "# Written by Berth: its own user is the administrator, all others need a password.\n" +
			"local all postgres peer map=berth\nlocal all all scram-sha-256\n",
		"pg_ident.conf": fmt.Sprintf("# Written by Berth.\nberth %q postgres\n", me.Username),
	} {
		// Written in place: the files keep the owner that initdb gave them.
		if err := os.WriteFile(filepath.Join(c.Data, name), []byte(text), 0o600); err != nil {
			return onDisk(err)
		}
	}
	return nil
}
