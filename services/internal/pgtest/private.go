package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/localpg"
)

const (
	startTimeout = 90 * time.Second // initdb on a busy machine
	pollInterval = 20 * time.Millisecond
)

// inUse keeps the lock file of this process open, and so its lock held, until
// the process ends, however it ends.
var inUse *os.File //nolint:unused // that it is referred to keeps it open

// privateServer starts the private server if no other test process has. The
// secret is known to its user only.
func privateServer(ctx context.Context) (adminDSN, secret string, err error) {
	bin, err := findPostgres()
	if err != nil {
		return "", "", err
	}
	home, err := openHome(bin)
	if err != nil {
		return "", "", err
	}
	starting, err := lockFile(home.file("start.lock"), syscall.LOCK_EX)
	if err != nil {
		return "", "", err
	}
	defer starting.Close()
	if inUse, err = lockFile(home.file("users.lock"), syscall.LOCK_SH); err != nil {
		return "", "", err
	}
	supervised, err := lockedByOther(home.file("supervisor.lock"))
	if err != nil {
		return "", "", err
	}
	if !supervised || home.answers(ctx) != nil {
		if err := home.start(ctx); err != nil {
			return "", "", err
		}
	}
	secret, err = home.secret()
	return home.postgres.URL(), secret, err
}

func findPostgres() (string, error) {
	bin, err := localpg.Find(os.Getenv)
	var known *localpg.Problem
	if errors.As(err, &known) {
		return "", fmt.Errorf("%w: %s, or BERTH_TEST_DATABASE_URL to a superuser's postgres:// address", err, known.Advice)
	}
	return bin, err
}

// home is the folder that all test processes of one user share for one set of
// binaries: locks, data and socket.
type home struct {
	dir      string
	postgres localpg.Cluster
}

func openHome(bin string) (home, error) {
	// Other binaries (an upgrade of Postgres) must not meet old data.
	info, err := os.Stat(filepath.Join(bin, "postgres"))
	if err != nil {
		return home{}, err
	}
	which := sha256.Sum256(fmt.Appendf(nil, "%s %d", bin, info.ModTime().Unix()))
	name := fmt.Sprintf("berth-tests-%d-%x", os.Getuid(), which[:4])
	dir := filepath.Join(os.TempDir(), name)
	if len(dir)+len("/socket") > localpg.MaxSocketDir || os.Getuid() == 0 { // root's own TMPDIR may be closed to the server's user
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
	return homeAt(dir, bin)
}

func homeAt(dir, bin string) (home, error) {
	h := home{dir: dir}
	as, err := localpg.ServerUser()
	h.postgres = localpg.Cluster{Bin: bin, Data: h.file("data"), Socket: h.file("socket"), User: as, Scratch: true}
	return h, err
}

func (h home) file(name string) string { return filepath.Join(h.dir, name) }

// secret is made once; the passwords of the roles come from it.
func (h home) secret() (string, error) {
	text, err := os.ReadFile(h.file("secret"))
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text())
		err = durable.WriteFile(h.file("secret"), text, 0o600)
	}
	return string(text), err
}

func (h home) answers(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, h.postgres.URL())
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
	cmd.Env = append(os.Environ(), superviseEnv+"="+h.dir, "BERTH_PG_BIN="+h.postgres.Bin)
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
