package pgtest

import (
	"context"
	"crypto/sha256"
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

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 90 * time.Second // initdb on a busy machine
	pollInterval = 20 * time.Millisecond

	// A unix socket's path has at most 107 bytes; its name takes 20 of them.
	maxSocketDir = 85
)

// inUse keeps the lock file of this process open, and so its lock held, until
// the process ends, however it ends.
var inUse *os.File //nolint:unused // that it is referred to keeps it open

// privateServer returns the administrator's DSN of the private server, which
// it starts if no other test process has.
func privateServer(ctx context.Context) (string, error) {
	bin, err := findPostgres()
	if err != nil {
		return "", err
	}
	home, err := openHome(bin)
	if err != nil {
		return "", err
	}
	starting, err := lockFile(home.file("start.lock"), syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer starting.Close()
	if inUse, err = lockFile(home.file("users.lock"), syscall.LOCK_SH); err != nil {
		return "", err
	}
	supervised, err := lockedByOther(home.file("supervisor.lock"))
	if err != nil {
		return "", err
	}
	if !supervised || home.answers(ctx) != nil {
		if err := home.start(ctx); err != nil {
			return "", err
		}
	}
	return home.dsn()
}

// findPostgres looks where Postgres usually is: BERTH_PG_BIN, PATH, and the
// folders of distributions, newest version first.
func findPostgres() (string, error) {
	var candidates []string
	if dir := os.Getenv("BERTH_PG_BIN"); dir != "" {
		candidates = append(candidates, dir)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		slices.Reverse(found)
		candidates = append(candidates, found...)
	}
	for _, dir := range candidates {
		if executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) {
			return dir, nil
		}
	}
	return "", errors.New("no Postgres found: install it (Debian: apt-get install postgresql), or set BERTH_PG_BIN to its bin folder or BERTH_TEST_DATABASE_URL to a superuser's postgres:// address")
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// home is the folder that all test processes of one user share for one set of
// binaries: locks, data and socket.
type home struct {
	dir, bin string
}

func openHome(bin string) (home, error) {
	// Other binaries (an upgrade of Postgres) must not meet old data.
	info, err := os.Stat(filepath.Join(bin, "postgres"))
	if err != nil {
		return home{}, err
	}
	which := sha256.Sum256(fmt.Appendf(nil, "%s %d", bin, info.ModTime().Unix()))
	name := fmt.Sprintf("berth-pgtest-%d-%x", os.Getuid(), which[:4])
	dir := filepath.Join(os.TempDir(), name)
	if len(dir) > maxSocketDir || os.Getuid() == 0 { // root's own TMPDIR may be closed to the server's user
		dir = filepath.Join("/tmp", name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return home{}, err
	}
	stat, err := os.Lstat(dir)
	if err != nil {
		return home{}, err
	}
	if owner, ok := stat.Sys().(*syscall.Stat_t); !ok || !stat.IsDir() || int(owner.Uid) != os.Getuid() {
		return home{}, fmt.Errorf("%s belongs to someone else: remove it, or set TMPDIR", dir)
	}
	return home{dir: dir, bin: bin}, nil
}

func (h home) file(name string) string { return filepath.Join(h.dir, name) }

// dsn is known once the data has been made.
func (h home) dsn() (string, error) {
	password, err := os.ReadFile(h.file("password"))
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", string(password)), Path: "/postgres"}
	u.RawQuery = url.Values{"host": {h.file("socket")}}.Encode()
	return u.String(), nil
}

func (h home) answers(ctx context.Context) error {
	dsn, err := h.dsn()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// start runs the supervisor, which is this executable again, and waits until
// the server answers. The caller holds start.lock.
func (h home) start(ctx context.Context) error {
	if err := h.endLeftover(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(h.file("supervisor.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), superviseEnv+"="+h.dir, "BERTH_PG_BIN="+h.bin)
	// Not our output: go test waits until nobody holds that open any more.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = h.dir
	// Not our session: an interrupt of the tests must not keep it from tidying.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the Postgres supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	deadline := time.After(startTimeout)
	for {
		if err = h.answers(ctx); err == nil {
			return nil
		}
		select {
		case exit := <-ended:
			return fmt.Errorf("private Postgres ended at once (%v):\n%s", exit, h.logTail()) //nolint:errorlint // nil when it ended well
		case <-deadline:
			return fmt.Errorf("private Postgres does not answer: %w\n%s", err, h.logTail())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

func (h home) logTail() string {
	var out strings.Builder
	for _, name := range []string{"supervisor.log", "postgres.log"} {
		text, _ := os.ReadFile(h.file(name)) // absent is as good as empty
		out.Write(text[max(0, len(text)-2000):])
	}
	return out.String()
}

// serverUser is whom Postgres runs as when we are root, which it refuses.
func serverUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
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
	return nil, errors.New("Postgres does not run as root, and there is neither a user postgres nor nobody")
}
