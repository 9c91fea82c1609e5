package up

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/cli/internal/toolchain"
	"github.com/berth-dev/berth/pkg/localpg"
)

const (
	postgresStart = 60 * time.Second // a recovery after a crash included
	serviceStart  = 60 * time.Second

	housekeeping = 30 * time.Second // between looks at the sizes of logs
)

// Config of Run.
type Config struct {
	Layout Layout
	Port   int    // first of the four
	Org    string // made at the first start
	// DatabaseURL is the address of an administrator of a Postgres to use
	// instead of an own one.
	DatabaseURL string
	Getenv      func(string) string
	Environ     []string
	// Kubeconfig is the file by which local installs reach a cluster; "" for
	// none. nil takes the one of earlier starts, else that of KUBECONFIG.
	Kubeconfig *string
	// Terraform says where to look for the one that runners use. It is kept
	// in the data folder when it must be fetched.
	Terraform toolchain.Options
	// Say gets one line per thing that happens.
	Say func(string)
	// Ready is called once everything is up.
	Ready func(url string)
}

// ErrRunning says that the data folder is in use; its text has the URL.
var ErrRunning = errors.New("berth is already running")

// supervisor is one run of `berth up`.
type supervisor struct {
	Config
	ledger *ledger
	around surroundings
	// postgres is our own, nil with DatabaseURL.
	postgres *localpg.Cluster
	// cluster is the kubeconfig of local installs, "" without one.
	cluster string

	mu      sync.Mutex
	keepers []*keeper // in the order in which they were started
	runners map[string]*runner
	started bool // all parts were ready once
	stopped bool
	tasks   sync.WaitGroup // phone-homes of runners

	restarting sync.Mutex // one restart of changed parts at a time
}

// Run starts everything, calls Ready, and keeps it running until the context
// ends; then it stops everything and returns nil. When a start fails it stops
// what it has started and says why.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Layout.Make(); err != nil {
		return err
	}
	lock, err := takeLock(cfg.Layout)
	if err != nil {
		return err
	}
	defer unlock(lock)
	cfg.Say = oneAtATime(cfg.Say)
	s := &supervisor{Config: cfg, runners: map[string]*runner{}}
	if s.ledger, err = openLedger(cfg.Layout.State()); err != nil {
		return err
	}
	self, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	// Before the first part: nothing may run that nobody could find.
	if err := s.ledger.change(func(st *State) { st.Port, st.Supervisor = cfg.Port, &self }); err != nil {
		return err
	}
	if err := s.chooseCluster(ctx); err != nil {
		return errors.Join(err, s.ledger.change(func(st *State) { st.Supervisor = nil }))
	}
	socket, err := s.listen(ctx)
	if err != nil {
		return err
	}
	err = s.start(ctx)
	if err == nil {
		cfg.Ready(URL(s.around.ports.Ctl))
		s.keepHouse(ctx)
	} else if ctx.Err() != nil {
		err = nil // asked to stop while starting
	}
	socket()
	s.stop()
	return errors.Join(err, s.ledger.change(func(st *State) { st.Supervisor = nil }))
}

// oneAtATime lets many goroutines say something.
func oneAtATime(say func(string)) func(string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		say(line)
	}
}

// takeLock makes us the only supervisor of the data folder, however the one
// before ended. Children do not inherit the lock.
func takeLock(l Layout) (*os.File, error) {
	f, err := os.OpenFile(l.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, onDisk(l.Dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", l.lock(), err)
		}
		var st State
		_, _ = readJSON(l.State(), &st) // for the message only
		return nil, fmt.Errorf("%w: %s (data in %s)", ErrRunning, URL(st.Port), l.Dir)
	}
	return f, nil
}

// unlock gives the data folder free at once: a child of ours that is about to
// become another program still has its copy of the file, and the lock with it.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing is enough but for that
	_ = f.Close()
}

func (s *supervisor) start(ctx context.Context) error {
	began := time.Now()
	if err := s.find(ctx); err != nil {
		return err
	}
	if s.Layout.Shared != s.Layout.Dir {
		s.Say(fmt.Sprintf("  %s cannot be entered by other users, so Postgres and runners keep their data in %s", s.Layout.Dir, s.Layout.Shared))
	}
	services := s.around.services()
	if err := s.settle(ctx, services); err != nil {
		return err
	}
	if err := s.startPostgres(ctx); err != nil {
		return err
	}
	if err := s.prepareDatabase(ctx); err != nil {
		return err
	}
	if err := s.startServices(ctx, services); err != nil {
		return err
	}
	s.restoreRunners(ctx)
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.Say(fmt.Sprintf("✓ up in %s", time.Since(began).Round(100*time.Millisecond)))
	return nil
}

// find looks for all executables before anything is started.
func (s *supervisor) find(ctx context.Context) error {
	libexec, err := findExecutables(ctx, s.Getenv, s.Say)
	if err != nil {
		return err
	}
	if s.DatabaseURL == "" {
		if s.postgres, err = newPostgres(s.Layout, s.Getenv); err != nil {
			return err
		}
	}
	s.around = surroundings{layout: s.Layout, ports: PortsFrom(s.Port), libexec: libexec, environ: s.Environ}
	for _, name := range []string{exeRunner, exeEngine, exePolicy} {
		path, err := s.Layout.shared(filepath.Join(libexec, name))
		if err != nil {
			return err
		}
		s.around.runners = filepath.Dir(path)
	}
	options := s.Terraform
	options.CacheDir, options.Progress = s.Layout.terraformDir(), s.Say
	terraform, err := toolchain.EnsureTerraform(ctx, options)
	if err == nil {
		terraform, err = s.Layout.shared(terraform)
	}
	if err != nil {
		// Everything but Terraform components works without it.
		s.Say("! " + err.Error())
		s.Say("  until a start finds one, changes of Terraform components are refused; everything else works")
		return nil //nolint:nilerr // it was said
	}
	s.around.terraform = terraform
	return nil
}

// settle deals with what an earlier supervisor left: processes that are what we
// would start are kept for adoption, all others are ended.
func (s *supervisor) settle(ctx context.Context, services []Part) error {
	wanted := map[string]string{}
	parts := services
	if s.postgres != nil {
		parts = append([]Part{s.postgresServer()}, services...)
	}
	for _, part := range parts {
		wanted[part.Name] = part.digest()
	}
	state := s.ledger.read()
	for id, r := range state.Runners {
		if uid := r.EngineUID; uid == 0 || os.Geteuid() == 0 {
			part := s.runnerPart(id, r)
			wanted[part.Name] = part.digest()
			if s.hasRegistry(r) {
				part = s.registryPart(id, r)
				wanted[part.Name] = part.digest()
			}
		}
	}
	kept := map[int]bool{}
	for _, left := range recorded(state) {
		if wanted[left.name] == state.Parts[left.name].Digest {
			kept[left.PID] = true
			s.Say(fmt.Sprintf("  %s (pid %d) still runs and is taken over", left.name, left.PID))
			continue
		}
		s.Say(fmt.Sprintf("  %s (pid %d) is of an older start and is ended", left.name, left.PID))
		left.stop()
	}
	if s.postgres != nil {
		// A supervisor that was killed may not have written down what it started.
		if pid, ok := s.postgres.PID(); ok && !kept[pid] {
			if left, err := identify(pid); err == nil {
				leftover{left, postgresPart}.stop()
			}
		}
	}
	// Children of those that are kept, such as Build Runners and engines, are
	// theirs; they are strays only when nobody is left.
	if len(kept) == 0 {
		for _, e := range endStrays(s.Layout, func(int) bool { return false }) {
			s.Say(fmt.Sprintf("  %s (pid %d) was left over and is ended", e.Name, e.PID))
		}
	}
	err := s.ledger.change(func(st *State) {
		for name, part := range st.Parts {
			if !kept[part.PID] {
				delete(st.Parts, name)
			}
		}
	})
	if err != nil {
		return err
	}
	state = s.ledger.read()
	return portsFree(ctx, services, s.around.ports, func(p Part) bool { _, ok := state.Parts[p.Name]; return ok })
}

// keep starts a part. The keeper is stopped with everything else.
func (s *supervisor) keep(part Part) *keeper {
	k := keep(s.quoted(part), s.ledger, s.Say)
	s.mu.Lock()
	s.keepers = append(s.keepers, k)
	s.mu.Unlock()
	return k
}

// quoted is a part of whose log errors quote no secret.
func (s *supervisor) quoted(part Part) Part {
	part.Quote = s.quote
	return part
}

// quote is text of a log without the secrets of the data folder.
func (s *supervisor) quote(text string) string { return secretsOf(s.Layout).String(text) }

func (s *supervisor) startPostgres(ctx context.Context) error {
	if s.postgres == nil {
		s.Say("  postgres      the one of DATABASE_URL")
		return nil
	}
	began := time.Now()
	fresh, err := s.initPostgres(ctx)
	if err != nil {
		return err
	}
	if err := s.keep(s.postgresServer()).waitReady(ctx, postgresStart); err != nil {
		return err
	}
	what := ""
	if fresh {
		what = ", new cluster in " + s.Layout.postgresDir()
	}
	s.Say(fmt.Sprintf("✓ postgres      %s%s", took(began), what))
	return nil
}

// prepareDatabase brings the schema up to date and makes the first org.
func (s *supervisor) prepareDatabase(ctx context.Context) error {
	began := time.Now()
	admin, password, err := s.administrator()
	if err != nil {
		return err
	}
	steps := [][]string{
		{"migrate", "--admin-url", admin, "--dsn-dir", s.Layout.dsns()},
		{"bootstrap", "--org", s.Org, "--token-file", s.Layout.Token()},
	}
	for _, args := range steps {
		cmd := exec.CommandContext(ctx, filepath.Join(s.around.libexec, exeCtlAPI), args...)
		cmd.Env = s.around.serviceEnv(filepath.Join(s.Layout.dsns(), "ctl.dsn"), s.around.ports.Ctl, 0)
		if s.postgres != nil && s.Getenv(connectionLimitEnv) == "" {
			cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", connectionLimitEnv, connectionLimit(s.Getenv)))
		}
		if password != "" {
			cmd.Env = append(cmd.Env, "PGPASSWORD="+password) // arguments are seen by everybody
		}
		cmd.Dir = s.Layout.Dir
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			_ = os.WriteFile(s.Layout.LogFile(args[0]), out, 0o600) // to look further; the error says the essence
			what, remedy := lastWords(s.quote(string(out)))
			return problem(err, firstOf(remedy, "fix that, then berth up again"), "%s: %s; its log: %s", args[0], firstOf(what, err.Error()), s.Layout.LogFile(args[0]))
		}
	}
	s.Say(fmt.Sprintf("✓ database      %s, schema is up to date", took(began)))
	return nil
}

// connectionLimitEnv is a setting of `berth-ctl-api migrate`.
const connectionLimitEnv = "BERTH_DB_CONNECTION_LIMIT"

// connectionLimit of each of the four services' roles, so that none can take all
// that our Postgres gives (maxConnections): the largest default pool is 30; a
// listener, River's notifier and the end of a process before come on top.
func connectionLimit(getenv func(string) string) int {
	const largestPool, spare = 30, 15
	pool := largestPool
	for _, name := range []string{"BERTH_DB_MAX_CONNS", "BERTH_DATABASE_CONNECTIONS"} {
		if set, err := strconv.Atoi(getenv(name)); err == nil { // else the service says so
			pool = max(pool, set)
		}
	}
	return pool + spare
}

// administrator is the address to prepare the database with, without its
// password.
func (s *supervisor) administrator() (address, password string, err error) {
	if s.postgres != nil {
		return s.postgres.URL(), "", nil
	}
	u, err := url.Parse(s.DatabaseURL)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") || u.Query().Has("password") {
		// Not the cause: it would repeat the address.
		return "", "", problem(nil, "write it as postgres://user:password@host:port/postgres", "DATABASE_URL is not an address that can be used")
	}
	if u.User != nil {
		password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
	}
	return u.String(), password, nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

func (s *supervisor) startServices(ctx context.Context, services []Part) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range services {
		began := time.Now()
		k := s.keep(part)
		group.Go(func() error {
			if err := k.waitReady(ctx, serviceStart); err != nil {
				return err
			}
			s.Say(fmt.Sprintf("✓ %-13s %s", part.Name, took(began)))
			return nil
		})
	}
	return group.Wait()
}

func took(began time.Time) string {
	return fmt.Sprintf("%.1f s", time.Since(began).Seconds())
}

// keepHouse waits for the end and meanwhile keeps logs short.
func (s *supervisor) keepHouse(ctx context.Context) {
	tick := time.NewTicker(housekeeping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := rotateAll(s.Layout.logDir()); err != nil {
				s.Say("! turning over logs: " + err.Error())
			}
		}
	}
}

// stop ends everything: runners side by side, then the rest in reverse order.
func (s *supervisor) stop() {
	s.mu.Lock()
	s.stopped = true
	runners, keepers := s.runners, s.keepers
	s.mu.Unlock()
	if len(runners)+len(keepers) > 0 {
		s.Say("stopping")
	}
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(r.stop)
	}
	all.Wait()
	s.tasks.Wait()
	for i := len(keepers) - 1; i >= 0; i-- {
		keepers[i].stop()
	}
	for _, e := range endStrays(s.Layout, func(int) bool { return false }) {
		s.Say(fmt.Sprintf("  ended %s (pid %d), which was left over", e.Name, e.PID))
	}
}
