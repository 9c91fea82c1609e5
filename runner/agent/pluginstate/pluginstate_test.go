package pluginstate_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/pluginstate"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// shelf is runner-api as far as one resource goes: it takes a state under its lock,
// of the stored lineage and above the stored serial.
type shelf struct {
	stored *runnerapi.StateWrite
	lock   string
	writes int
	lost   func() error // called after a write was taken: its answer is lost
}

func (s *shelf) State(context.Context, string, runnerapi.Attempt) (*runnerapi.State, error) {
	if s.stored == nil {
		return nil, nil
	}
	return &runnerapi.State{Serial: s.stored.Serial, Lineage: s.stored.Lineage, Body: s.stored.Body}, nil
}

func (s *shelf) PutState(_ context.Context, _ string, w runnerapi.StateWrite) error {
	is := s.stored
	switch {
	case is != nil && is.Lineage == w.Lineage && is.Serial == w.Serial && is.Digest == w.Digest: // once more
	case s.lock != w.LockID, is != nil && (is.Lineage != w.Lineage || is.Serial >= w.Serial):
		return &control.Error{Status: http.StatusConflict, Code: "state_refused"}
	default:
		s.stored = &w
		s.writes++
	}
	if s.lost != nil {
		return s.lost()
	}
	return nil
}

func (s *shelf) LockState(_ context.Context, _ string, in runnerapi.LockRequest) (*runnerapi.Lock, error) {
	if s.lock != "" && s.lock != in.LockID {
		return &runnerapi.Lock{LockID: s.lock}, &control.Error{Status: http.StatusLocked, Code: "state_locked"}
	}
	s.lock = in.LockID
	return nil, nil
}

func (s *shelf) UnlockState(context.Context, string, runnerapi.UnlockRequest) error {
	s.lock = ""
	return nil
}

// bench makes the keepers of attempts on one machine.
type bench struct {
	*shelf
	t    *testing.T
	keys datadir.Keys
}

func newBench(t *testing.T) *bench {
	t.Helper()
	id, err := seal.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{shelf: &shelf{}, t: t, keys: datadir.Keys{Seal: id, Salt: []byte("salt")}}
}

func (b *bench) attempt(job string, mutates bool) pluginstate.Keeper {
	b.t.Helper()
	dir := b.t.TempDir()
	for _, sub := range []string{"engine/in", "engine/work/plugin/work"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.again(pluginstate.Keeper{Dir: dir, Engine: filepath.Join(dir, "engine")}, job, mutates)
}

// again is the keeper of an agent that was started again.
func (b *bench) again(k pluginstate.Keeper, job string, mutates bool) pluginstate.Keeper {
	k.Salt = b.keys.Salt
	k.Proxy = stateproxy.New(stateproxy.Config{
		States: b.shelf, Resource: "res_1", Attempt: runnerapi.Attempt{JobID: job, Attempt: 1}, Fence: 1, Mutates: mutates,
		Keys: b.keys, Runner: datadir.Runner{OrgID: "org_1", InstallID: "ins_1"}, Dir: k.Dir, Learn: func(any, bool) {},
		Log: slog.New(slog.DiscardHandler),
	}, stateproxy.Access{})
	return k
}

func (b *bench) bring(k pluginstate.Keeper) plugin.State {
	b.t.Helper()
	if err := k.Bring(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	given, err := plugin.ReadState(os.DirFS(filepath.Join(k.Engine, "in/state")))
	if err != nil {
		b.t.Fatal(err)
	}
	return given
}

// leave is what the plugin has in its directory when it ends.
func (b *bench) leave(k pluginstate.Keeper, s plugin.State) {
	b.t.Helper()
	if err := s.Write(filepath.Join(k.Engine, "work/plugin", plugin.StateDir)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) take(k pluginstate.Keeper) int64 {
	b.t.Helper()
	serial, err := k.Take(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := k.Proxy.Finish(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return serial
}

var (
	first  = plugin.State{"place": []byte("hall of secrets"), "deep/er/x": {0, 255}}
	second = plugin.State{"place": []byte("cellar")}
)

func TestStateGoesFromJobToJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.attempt("job_1", true)
	if given := b.bring(k); len(given) != 0 {
		t.Errorf("the first job is given %v", given)
	}
	if b.lock == "" {
		t.Error("an apply holds no lock")
	}
	b.leave(k, plugin.State{"place": first["place"], "deep/er/x": first["deep/er/x"], ".place": []byte("half")})
	if serial := b.take(k); serial != 1 || b.lock != "" {
		t.Errorf("serial %d, lock %q", serial, b.lock)
	}
	if bytes.Contains(b.stored.Body, []byte("secrets")) || strings.Contains(b.stored.Digest, "secrets") {
		t.Error("the state left the machine in clear")
	}
	k = b.attempt("job_2", false)
	if diff := cmp.Diff(first, b.bring(k)); diff != "" {
		t.Errorf("the plan is given (-want +got):\n%s", diff)
	}
	if b.lock != "" {
		t.Error("a plan locks")
	}
	k = b.attempt("job_3", true)
	b.bring(k)
	b.leave(k, first)
	if serial := b.take(k); serial != 0 || b.writes != 1 || b.lock != "" {
		t.Errorf("a state that did not move: serial %d, %d writes, lock %q", serial, b.writes, b.lock)
	}
	k = b.attempt("job_4", true)
	b.bring(k)
	b.leave(k, second)
	if serial := b.take(k); serial != 2 {
		t.Errorf("serial %d", serial)
	}
	k = b.attempt("job_5", true)
	b.bring(k)
	b.leave(k, plugin.State{}) // it forgets everything
	if serial := b.take(k); serial != 3 {
		t.Errorf("serial %d", serial)
	}
}

// The agent is killed after the control plane took the state, before it knew: the
// next agent hands in the same, which changes nothing.
func TestTakeOnceMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.attempt("job_1", true)
	b.bring(k)
	b.leave(k, first)
	ctx, kill := context.WithCancel(t.Context())
	b.lost = func() error { kill(); return errors.New("connection reset") }
	if _, err := k.Take(ctx, false); err == nil {
		t.Fatal("it knew")
	}
	b.lost = nil
	k = b.again(k, "job_1", true)
	if serial := b.take(k); serial != 1 || b.writes != 1 || b.lock != "" {
		t.Errorf("serial %d, %d writes, lock %q", serial, b.writes, b.lock)
	}
	noState(t, k.Dir)
}

// An engine that is killed before it gave the plugin its state lost nothing, and one
// without a place for it changed nothing.
func TestEngineNeverBegan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.attempt("job_1", true)
	b.bring(k)
	b.leave(k, first)
	b.take(k)
	k = b.attempt("job_2", true)
	b.bring(k)
	if err := os.Mkdir(filepath.Join(k.Engine, "work/plugin/work/state.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if serial := b.take(k); serial != 0 || b.stored.Serial != 1 {
		t.Errorf("serial %d, stored %d", serial, b.stored.Serial)
	}
}

func TestStateIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(k pluginstate.Keeper) error{
		"a link to the machine": func(k pluginstate.Keeper) error {
			return os.Symlink("/etc/passwd", filepath.Join(k.Engine, "work/plugin/work/state/x"))
		},
		"the directory is a link out": func(k pluginstate.Keeper) error {
			dir := filepath.Join(k.Engine, "work/plugin/work/state")
			return errors.Join(os.RemoveAll(dir), os.Symlink("/etc", dir))
		},
		"too large": func(k pluginstate.Keeper) error {
			return os.Truncate(filepath.Join(k.Engine, "work/plugin/work/state/place"), plugin.MaxStateSize+1)
		},
	} {
		b := newBench(t)
		k := b.attempt("job_1", true)
		b.bring(k)
		b.leave(k, first)
		if err := spoil(k); err != nil {
			t.Fatal(err)
		}
		if serial, err := k.Take(t.Context(), false); err == nil || b.stored != nil {
			t.Errorf("%s: taken as serial %d", name, serial)
		}
	}
	b := newBench(t)
	b.lock = "a person's"
	if err := b.attempt("job_1", true).Bring(t.Context()); err == nil || !strings.Contains(err.Error(), "somebody else holds the state") {
		t.Errorf("a state that is locked: %v", err)
	}
}

// A job whose lease is lost hands in nothing. What it knew stays on the machine,
// sealed.
func TestLostLease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := b.attempt("job_1", true)
	b.bring(k)
	b.leave(k, first)
	if serial, err := k.Take(t.Context(), true); err != nil || serial != 0 || b.stored != nil {
		t.Fatalf("serial %d, %v", serial, err)
	}
	if _, err := os.Stat(filepath.Join(k.Dir, "refused-state-1.json")); err != nil {
		t.Error(err)
	}
	noState(t, k.Dir)
}

// noState checks that no file of the agent's own has the state in clear.
func noState(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "engine/") {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if bytes.Contains(raw, []byte("secrets")) || bytes.Contains(raw, []byte("aGFsbCBvZiBzZWNyZXRz")) {
			t.Errorf("%s has the state in clear", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
