package localpg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// minMajor is the oldest major version that the schema is tried with.
const minMajor = 15

// A Problem is an error that people can do something about.
type Problem struct {
	What   string // one line, lower case
	Advice string // what to do, one line
}

// Error implements error.
func (p *Problem) Error() string { return p.What }

// Remedy says what to do.
func (p *Problem) Remedy() string { return p.Advice }

// ErrNone is the error of Find on a machine without Postgres.
var ErrNone = &Problem{
	What:   "no Postgres was found on this machine",
	Advice: "apt-get install postgresql, or set BERTH_PG_BIN to the folder of its binaries",
}

// Find returns the folder of the server's binaries: BERTH_PG_BIN, PATH, or the
// folders of distributions, newest first. Its errors are a *Problem.
func Find(getenv func(string) string) (string, error) {
	if dir := getenv("BERTH_PG_BIN"); dir != "" {
		if !hasServer(dir) {
			return "", &Problem{"BERTH_PG_BIN=" + dir + " has no Postgres in it", "point it at a folder with postgres and initdb"}
		}
		return dir, nil
	}
	var candidates []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		// A link on PATH leads to where the server's other files are.
		if server, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
			candidates = append(candidates, filepath.Dir(server))
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		slices.Reverse(found)
		candidates = append(candidates, found...)
	}
	if i := slices.IndexFunc(candidates, hasServer); i >= 0 {
		return candidates[i], nil
	}
	return "", ErrNone
}

func hasServer(dir string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// ServerUser is whom the server runs as: nil, the caller's own user, unless that
// is root, as which Postgres does not run. The user must have an entry among the
// machine's users: initdb looks its own name up.
func ServerUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, &Problem{
		"Postgres does not run as root, and there is no user postgres or nobody",
		"add a user postgres, or start Berth as another user than root",
	}
}

// version asks the server's binary for its major version.
func (c Cluster) version(ctx context.Context) (int, error) {
	server := filepath.Join(c.Bin, "postgres")
	out, err := exec.CommandContext(ctx, server, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", server, err)
	}
	return majorVersion(string(out)), nil
}

// majorVersion finds 15 in "postgres (PostgreSQL) 15.18 (Debian …)" and in the
// like of pre-releases, 18beta1; 0 when there is none.
func majorVersion(line string) int {
	for field := range strings.FieldsSeq(line) {
		digits := len(field) - len(strings.TrimLeft(field, "0123456789"))
		if major, err := strconv.Atoi(field[:digits]); err == nil {
			return major
		}
	}
	return 0
}
