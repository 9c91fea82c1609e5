package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/internal/logtest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// The fleet is tested with processes. This test's own executable stands for
// berth-runner: it keeps what the fleet relies on, the lock and SIGTERM.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "--data" {
		if err := live(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// live is one life of a runner: it notes its process id and waits for the end.
func live(dir string) error {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // a file that nothing holds is closed when memory is collected, and its lock goes with it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.New("another agent is active on this data directory")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lives, err := os.OpenFile(filepath.Join(dir, "lives"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(lives, os.Getpid())
	<-ctx.Done()
	return nil
}

type port struct {
	t     *testing.T
	db    *pgtest.DB
	fleet *Fleet
	logs  *logtest.Log
}

func newPort(t *testing.T) *port {
	t.Helper()
	p := &port{t: t, db: pgtest.New(t), logs: &logtest.Log{}}
	p.fleet = p.newFleet(t.TempDir())
	return p
}

func (p *port) newFleet(dir string) *Fleet {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	keys, err := orders.Open(filepath.Join(dir, "orders.key"))
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := New(database.New(p.db.AsRole(store.RoleBuilder)), Config{
		Dir: dir, Executable: self, RunnerAPIURL: "http://127.0.0.1:8701", EngineUID: 61500, Keys: keys,
		MinBackoff: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(p.logs, nil)),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

func (p *port) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.db.Admin().Exec(p.t.Context(), sql, args...); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p *port) addOrg(name string) string {
	p.t.Helper()
	org := id.New(id.Org)
	p.exec(`insert into orgs (org_id, name) values ($1, $2)`, org, name)
	return org
}

func (p *port) ensure(org string) string {
	p.t.Helper()
	runner, ready, err := p.fleet.Ensure(p.t.Context(), org)
	if err != nil || !ready {
		p.t.Fatalf("ready %t, %v", ready, err)
	}
	return runner
}

func (p *port) dir(runner string) dataDir { return dataDir(filepath.Join(p.fleet.config.Dir, runner)) }

// run runs the fleet until the returned function is called, which waits for its
// end.
func (p *port) run() (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.fleet.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Errorf("fleet: %v", err)
		}
	})
	p.t.Cleanup(stop)
	return stop
}

// lives are the processes that a runner had, oldest first.
func (p *port) lives(runner string) (pids []int) {
	text, err := os.ReadFile(filepath.Join(string(p.dir(runner)), "lives"))
	if err != nil {
		return nil
	}
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			p.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func (p *port) eventually(what string, is func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s\n%s", what, p.logs)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestOneRunnerPerOrg(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	acme, other := p.addOrg("acme"), p.addOrg("other")
	var group sync.WaitGroup
	ids := make([]string, 8)
	for n := range ids {
		group.Go(func() {
			runner, _, err := p.fleet.Ensure(t.Context(), acme)
			if err != nil {
				t.Error(err)
			}
			ids[n] = runner
		})
	}
	group.Wait()
	for _, runner := range ids {
		if runner != ids[0] {
			t.Fatalf("several runners for one org: %v", ids)
		}
	}
	theirs := p.ensure(other)
	p.run()
	p.eventually("both live", func() bool { return len(p.lives(ids[0])) == 1 && len(p.lives(theirs)) == 1 })

	var trusted roster.Trust
	if err := readJSON(p.dir(ids[0]).trust(), &trusted); err != nil {
		t.Fatal(err)
	}
	key, err := p.fleet.config.Keys.Public(acme)
	if err != nil {
		t.Fatal(err)
	}
	want := roster.Trust{
		RunnerAPIURL: "http://127.0.0.1:8701", DispatchKeys: []roster.TrustedKey{}, // a dispatch key orders nothing here
		BuilderKeys: []roster.TrustedKey{{KeyID: capsule.KeyID(key), PublicKey: capsule.EncodePublicKey(key)}},
	}
	if theirKey, err := p.fleet.config.Keys.Public(other); err != nil || theirKey.Equal(key) {
		t.Errorf("two orgs have one key, %v", err)
	}
	if diff := cmp.Diff(want, trusted); diff != "" {
		t.Errorf("trust (-want +got):\n%s", diff)
	}
	users := map[int]bool{}
	for _, runner := range []string{ids[0], theirs} {
		var own settings
		if err := readJSON(p.dir(runner).config(), &own); err != nil {
			t.Fatal(err)
		}
		users[own.EngineUID] = true
	}
	if diff := cmp.Diff(map[int]bool{61500: true, 61501: true}, users); diff != "" {
		t.Errorf("users of engines (-want +got):\n%s", diff)
	}
}

func TestSecretIsUsableAndPrivate(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	runner := p.ensure(p.addOrg("acme"))
	p.run()
	p.eventually("alive", func() bool { return len(p.lives(runner)) == 1 })
	dir := p.dir(runner)
	secret, err := dir.secret()
	if err != nil || !strings.HasPrefix(secret, "ben_") || len(secret) != 47 {
		t.Fatalf("secret of %d characters, %v", len(secret), err)
	}
	var usable int
	err = p.db.Admin().QueryRow(t.Context(), `select count(*) from enrolments where runner_id = $1 and secret_hash = $2 and state = 'open' and not replaces and expires_at > now()`,
		runner, roster.HashSecret(secret)).Scan(&usable)
	if err != nil || usable != 1 {
		t.Errorf("%d enrolments for the secret, %v", usable, err)
	}
	for file, mode := range map[string]os.FileMode{string(dir): os.ModeDir | 0o700, dir.enrolment(): 0o600, dir.trust(): 0o600} {
		if info, err := os.Stat(file); err != nil || info.Mode() != mode {
			t.Errorf("mode of %s: %v, %v; want %v", file, info.Mode(), err, mode)
		}
	}
	if strings.Contains(p.logs.String(), secret) {
		t.Error("the secret is in the log")
	}
}

func TestDeadRunnerIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	runner := p.ensure(p.addOrg("acme"))
	stop := p.run()
	for life := 1; life <= 3; life++ {
		p.eventually("alive", func() bool { return len(p.lives(runner)) == life })
		if life < 3 {
			kill(t, p.lives(runner)[life-1])
		}
	}
	stop()
	for _, pid := range p.lives(runner) {
		if alive(pid) {
			t.Errorf("process %d outlived the fleet", pid)
		}
	}
}

// The builder was killed with -9: its runner lives on, and the next builder
// watches it in place of fighting it for its lock.
func TestLivingRunnerIsAdopted(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	runner := p.ensure(p.addOrg("acme"))
	first := p.orphan(runner)

	p.fleet = p.newFleet(p.fleet.config.Dir) // knows nothing but the rows
	stop := p.run()
	p.eventually("found", func() bool { return strings.Contains(p.logs.String(), "build runner found alive") })
	if diff := cmp.Diff([]int{first}, p.lives(runner)); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	kill(t, first)
	p.eventually("started again", func() bool { return len(p.lives(runner)) == 2 })
	stop()
	if alive(p.lives(runner)[1]) {
		t.Error("the runner outlived the fleet")
	}
	if n := strings.Count(p.logs.String(), "build runner started"); n != 1 {
		t.Errorf("%d starts, want 1:\n%s", n, p.logs)
	}
}

func TestAdoptedRunnerIsStopped(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	runner := p.ensure(p.addOrg("acme"))
	first := p.orphan(runner)
	stop := p.run()
	p.eventually("found", func() bool { return strings.Contains(p.logs.String(), "build runner found alive") })
	stop()
	p.eventually("ended", func() bool { return !alive(first) })
}

// orphan starts a runner as a builder that is no more did.
func (p *port) orphan(runner string) (pid int) {
	p.t.Helper()
	dir := p.dir(runner)
	if err := dir.make(); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.fleet.keeper(p.fleet.all()[runner], runner).writeTrust(); err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(p.fleet.config.Executable, "--data", string(dir))
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // reaps it, as init would
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
	p.eventually("orphan lives", func() bool { return len(p.lives(runner)) == 1 })
	return cmd.Process.Pid
}

func TestProvideSecret(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	for n, tc := range []struct {
		name     string
		before   func(k *keeper)
		renewed  bool
		replaces bool
	}{
		{"a secret that works stays", func(*keeper) {}, false, false},
		{"one that expired is renewed", func(k *keeper) {
			p.exec(`update enrolments set expires_at = now() where runner_id = $1`, k.runnerID)
		}, true, false},
		{"one that was never stored is renewed", func(k *keeper) {
			p.exec(`delete from enrolments where runner_id = $1`, k.runnerID)
		}, true, false},
		{"one that was used, and its reply lost, stays", func(k *keeper) {
			p.exec(`update enrolments set state = 'used', bound_key = 'K' where runner_id = $1`, k.runnerID)
			p.exec(`update runners set public_key = 'K', state = 'active' where id = $1`, k.runnerID)
			p.write(k.dir.identity(), "key")
		}, false, false},
		{"a runner that lost its directory is replaced", func(k *keeper) {
			p.exec(`update enrolments set state = 'used', bound_key = 'K' where runner_id = $1`, k.runnerID)
			p.exec(`update runners set public_key = 'K', state = 'active' where id = $1`, k.runnerID)
			if err := os.RemoveAll(string(k.dir)); err != nil {
				t.Fatal(err)
			}
		}, true, true},
		{"an enrolled runner needs none", func(k *keeper) {
			p.write(k.dir.enrolled(), "{}")
			if err := os.Remove(k.dir.enrolment()); err != nil {
				t.Fatal(err)
			}
		}, false, false},
	} {
		org := p.addOrg(fmt.Sprintf("org-%d", n))
		k := p.fleet.keeper(org, p.ensure(org))
		if _, err := k.provide(t.Context()); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		first, err := k.dir.secret()
		if err != nil {
			t.Fatal(err)
		}
		tc.before(k)
		if _, err := k.provide(t.Context()); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		second, err := k.dir.secret()
		if err != nil {
			t.Fatal(err)
		}
		if renewed := second != "" && second != first; renewed != tc.renewed {
			t.Errorf("%s: renewed %v", tc.name, renewed)
		}
		var open, replaces int
		err = p.db.Admin().QueryRow(t.Context(), `select count(*) filter (where state = 'open'), count(*) filter (where state = 'open' and replaces) from enrolments where runner_id = $1`, k.runnerID).Scan(&open, &replaces)
		if err != nil || (tc.renewed && open != 1) || (replaces == 1) != tc.replaces {
			t.Errorf("%s: %d open, %d of them replace, %v", tc.name, open, replaces, err)
		}
	}
}

func (p *port) write(file, text string) {
	p.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Another secret is other keys: a runner that lives still trusts the old one, so
// it is started again with what it is to trust now.
func TestNewSecretReachesALivingRunner(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	runner := p.ensure(p.addOrg("acme"))
	p.orphan(runner)
	var before roster.Trust
	if err := readJSON(p.dir(runner).trust(), &before); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.fleet.config.Dir, "orders.key")); err != nil {
		t.Fatal(err)
	}
	p.fleet = p.newFleet(p.fleet.config.Dir)
	p.run()
	p.eventually("started again", func() bool { return len(p.lives(runner)) == 2 })
	var after roster.Trust
	if err := readJSON(p.dir(runner).trust(), &after); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(before, after) {
		t.Error("the runner trusts the old key")
	}
}

func TestRevokedRunnerIsLeft(t *testing.T) {
	t.Parallel()
	p := newPort(t)
	org := p.addOrg("acme")
	first := p.ensure(org)
	p.run()
	p.eventually("alive", func() bool { return len(p.lives(first)) == 1 })
	p.exec(`update runners set state = 'revoked' where id = $1`, first)
	kill(t, p.lives(first)[0]) // as runner-api's refusals end it
	p.eventually("left", func() bool { return strings.Contains(p.logs.String(), "not wanted any more") })
	second := p.ensure(org)
	if second == first {
		t.Fatal("the revoked runner came back")
	}
	p.eventually("its successor lives", func() bool { return len(p.lives(second)) == 1 })
}

// What the runner reads must stay what it expects.
func TestFilesAreTheRunners(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]any{roster.Trust{RunnerAPIURL: "u", DispatchKeys: []roster.TrustedKey{}, BuilderKeys: []roster.TrustedKey{{KeyID: "k", PublicKey: "p"}}}, settings{EngineUID: 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"dispatch_keys":[],"builder_keys":[{"key_id":"k","public_key":"p"}],"runner_api_url":"u"},{"engine_uid":1}]`
	if got := string(text); got != want {
		t.Errorf("files: %s, want %s", got, want)
	}
}
