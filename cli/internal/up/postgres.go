package up

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	postgresPart   = "postgres"
	postgresSocket = "postgres/.s.PGSQL.5432" // below Layout.Sockets

	// minPostgres is the oldest major version that the schema is tried with.
	minPostgres = 15

	postgresGrace = 30 * time.Second // for the last checkpoint
)

// FindPostgres returns the folder of the server's binaries: BERTH_PG_BIN, PATH,
// or the folders of distributions, newest first.
func FindPostgres(getenv func(string) string) (string, error) {
	usable := func(dir string) bool {
		return isExecutable(filepath.Join(dir, "postgres")) && isExecutable(filepath.Join(dir, "initdb"))
	}
	if dir := getenv("BERTH_PG_BIN"); dir != "" {
		if !usable(dir) {
			return "", problem(nil, "point it at a folder with postgres and initdb", "BERTH_PG_BIN=%s has no Postgres in it", dir)
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
	if i := slices.IndexFunc(candidates, usable); i >= 0 {
		return candidates[i], nil
	}
	return "", problem(nil, "apt-get install postgresql, or set BERTH_PG_BIN to the folder of its binaries, or DATABASE_URL to a server",
		"no Postgres was found on this machine")
}

func isExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// local is the Postgres of this data folder.
type local struct {
	layout Layout
	bin    string
	user   *syscall.Credential // nil: ours
}

func newLocal(layout Layout, getenv func(string) string) (*local, error) {
	bin, err := FindPostgres(getenv)
	if err != nil {
		return nil, err
	}
	cred, err := postgresUser()
	return &local{layout: layout, bin: bin, user: cred}, err
}

// postgresUser is whom the server runs as when we are root, which it refuses.
// It must have an entry among the users: initdb looks its own name up.
func postgresUser() (*syscall.Credential, error) {
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
	return nil, problem(nil, "add a user postgres, or start Berth as another user than root",
		"Postgres does not run as root, and there is no user postgres or nobody")
}

// prepare makes the cluster unless there is one. A half-made one, of an initdb
// that was killed, is made again: it was never used.
func (l *local) prepare(ctx context.Context) (fresh bool, err error) {
	data := l.layout.postgresDir()
	if err := l.own(l.layout.postgresSocketDir()); err != nil {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return false, l.checkVersion(ctx, data)
	}
	if have, err := l.version(ctx); err != nil || have < minPostgres {
		return false, tooOld(l.bin, have, err)
	}
	making := data + ".new"
	if err := os.RemoveAll(making); err != nil {
		return false, onDisk(l.layout.Dir, err)
	}
	if err := l.own(making); err != nil {
		return false, err
	}
	// Superusers come over the socket, by their user's name; the services by
	// password.
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin, "initdb"), "--pgdata", making, "--username", "postgres",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--auth-local", "peer", "--auth-host", "reject")
	cmd.Env, cmd.Dir = l.env(), making
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: l.user}
	if out, err := cmd.CombinedOutput(); err != nil {
		if spaceErr := EnoughSpace(l.layout.Shared); spaceErr != nil {
			return false, spaceErr
		}
		return false, fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(lastLine(string(out))))
	}
	if err := l.admit(making); err != nil {
		return false, err
	}
	return true, onDisk(l.layout.Dir, os.Rename(making, data))
}

// own makes a folder that only the server's user can enter.
func (l *local) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return onDisk(l.layout.Dir, err)
	}
	if l.user != nil {
		if err := os.Chown(dir, int(l.user.Uid), int(l.user.Gid)); err != nil {
			return onDisk(l.layout.Dir, err)
		}
	}
	return nil
}

// admit writes who may come in.
func (l *local) admit(data string) error {
	me, err := user.Current()
	if err != nil {
		return fmt.Errorf("look up the own user: %w", err)
	}
	for name, text := range map[string]string{
		"pg_hba.conf": "# Written by berth up: its own user is the administrator, all others need a password.\n" +
			"local all postgres peer map=berth\nlocal all all scram-sha-256\n",
		"pg_ident.conf": fmt.Sprintf("# Written by berth up.\nberth %q postgres\n", me.Username),
	} {
		// Written in place: the files keep the owner that initdb gave them.
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			return onDisk(l.layout.Dir, err)
		}
	}
	return nil
}

// checkVersion compares the cluster with the binaries.
func (l *local) checkVersion(ctx context.Context, data string) error {
	cluster, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return onDisk(l.layout.Dir, err)
	}
	have := strings.TrimSpace(string(cluster))
	major, err := l.version(ctx)
	if err != nil {
		return err
	}
	if strconv.Itoa(major) != have {
		return problem(nil, fmt.Sprintf("install Postgres %s, or set BERTH_PG_BIN to it", have),
			"the data in %s is of Postgres %s, but %s is %d", data, have, l.bin, major)
	}
	return nil
}

// version asks the server's binary for its major version.
func (l *local) version(ctx context.Context) (int, error) {
	server := filepath.Join(l.bin, "postgres")
	out, err := exec.CommandContext(ctx, server, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", server, err)
	}
	return majorVersion(string(out)), nil
}

func tooOld(bin string, have int, err error) error {
	if err != nil {
		return err
	}
	return problem(nil, "install a newer one, or set BERTH_PG_BIN to it", "Postgres in %s is version %d, %d or newer is needed", bin, have, minPostgres)
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

// maxConnections of our own server: four times connectionLimit, migrations, and
// what Postgres keeps back for its administrator.
const maxConnections = 200

// part is the server as a part.
func (l *local) part() Part {
	data := l.layout.postgresDir()
	return Part{
		Name: postgresPart,
		Path: filepath.Join(l.bin, "postgres"),
		Args: []string{
			"-D", data,
			"-c", "listen_addresses=", // the socket only
			"-c", "unix_socket_directories=" + l.layout.postgresSocketDir(),
			"-c", "unix_socket_permissions=0700",
			"-c", "port=5432",
			"-c", "fsync=on",
			"-c", fmt.Sprintf("max_connections=%d", maxConnections),
			"-c", "log_line_prefix=%m [%p] %u@%d ",
			"-c", "hba_file=" + filepath.Join(data, "pg_hba.conf"),
			"-c", "ident_file=" + filepath.Join(data, "pg_ident.conf"),
		},
		Env:    l.env(),
		Dir:    data,
		Log:    l.layout.LogFile(postgresPart),
		User:   l.user,
		Polite: syscall.SIGINT, // "fast": ends sessions, then itself
		Grace:  postgresGrace,
		Ready:  func(context.Context) error { return serverReady(data) },
	}
}

func (l *local) env() []string {
	env := []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PATH=" + l.bin + ":/usr/bin:/bin"}
	for _, name := range []string{"LD_LIBRARY_PATH", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// adminURL is the address for the administrator. It holds no secret: the
// server knows us by our user.
func (l *local) adminURL() string {
	q := url.Values{"host": {l.layout.postgresSocketDir()}, "port": {"5432"}}
	return "postgres://postgres@/postgres?" + q.Encode()
}

// serverReady looks where pg_ctl looks: the eighth line of postmaster.pid. A
// server that was killed leaves a file that still says ready.
func serverReady(data string) error {
	_, status, ok := postmaster(data)
	switch {
	case !ok:
		return errors.New("not started")
	case status != "ready":
		return errors.New("starting")
	}
	return nil
}

// leftover finds a server that runs on this cluster although nothing says that
// we started it: the supervisor was killed between the two.
func (l *local) leftover() (Process, bool) {
	p, _, ok := postmaster(l.layout.postgresDir())
	return p, ok
}

// postmaster reads which server runs on a cluster, and how far it is.
func postmaster(data string) (p Process, status string, ok bool) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return p, "", false
	}
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || !runsIn(pid, data) {
		return p, "", false
	}
	const statusLine = 7
	if len(lines) > statusLine {
		status = strings.TrimSpace(lines[statusLine])
	}
	p, err = identify(pid)
	return p, status, err == nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
