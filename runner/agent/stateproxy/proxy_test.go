package stateproxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// states keeps one state and can be away or refuse.
type states struct {
	mu     sync.Mutex
	away   int // calls that fail still
	refuse error
	stored *runnerapi.State
	writes []runnerapi.StateWrite
	locked []runnerapi.LockRequest
	freed  []runnerapi.UnlockRequest
	holder *runnerapi.Lock
	onPut  func() error // called instead, without the lock
}

var errAway = errors.New("connection refused")

func (s *states) gone() error {
	if s.away > 0 {
		s.away--
		return errAway
	}
	return s.refuse
}

func (s *states) State(context.Context, string, runnerapi.Attempt) (*runnerapi.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored, s.gone()
}

func (s *states) PutState(_ context.Context, _ string, w runnerapi.StateWrite) error {
	s.mu.Lock()
	onPut := s.onPut
	s.mu.Unlock()
	if onPut != nil {
		return onPut()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.gone(); err != nil {
		return err
	}
	s.writes = append(s.writes, w)
	s.stored = &runnerapi.State{Serial: w.Serial, Lineage: w.Lineage, Body: w.Body}
	return nil
}

func (s *states) LockState(_ context.Context, _ string, in runnerapi.LockRequest) (*runnerapi.Lock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != nil {
		return s.holder, &control.Error{Status: http.StatusLocked, Code: "state_locked"}
	}
	s.locked = append(s.locked, in)
	return nil, s.gone()
}

func (s *states) UnlockState(_ context.Context, _ string, in runnerapi.UnlockRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed = append(s.freed, in)
	return s.gone()
}

// bench is a proxy with Terraform's side of it.
type bench struct {
	*states
	t       *testing.T
	proxy   *stateproxy.Proxy
	access  stateproxy.Access
	dir     string
	learned []any
	id      *seal.Identity
}

var owner = datadir.Runner{OrgID: "org_1", InstallID: "ins_1"}

func newBench(t *testing.T, mutates bool) *bench {
	t.Helper()
	id, err := seal.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{states: &states{}, t: t, dir: t.TempDir(), id: id}
	listener, access, err := stateproxy.Listen(t.Context(), stateproxy.NewAccess())
	if err != nil {
		t.Fatal(err)
	}
	b.access = access
	b.proxy = stateproxy.New(stateproxy.Config{
		States: b.states, Resource: "res_1", Attempt: runnerapi.Attempt{JobID: "job_1", Attempt: 2}, Fence: 5, Mutates: mutates,
		Keys: datadir.Keys{Seal: id, Salt: []byte("salt")}, Runner: owner, Dir: b.dir, Learn: func(v any, _ bool) { b.learned = append(b.learned, v) },
		Log: slog.New(slog.DiscardHandler),
	}, access)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.proxy.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) ask(method, path, body string) (int, string) {
	b.t.Helper()
	return b.askAs(b.access.Username, b.access.Password, method, path, body)
}

func (b *bench) askAs(user, password, method, path, body string) (int, string) {
	b.t.Helper()
	url := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(b.access.Port)) + path
	req, err := http.NewRequestWithContext(b.t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

const (
	state = `{"version":4,"serial":3,"lineage":"lin","outputs":{"url":{"value":"http://x"},"token":{"value":"t0ken-of-state","sensitive":true}},` +
		`"resources":[{"mode":"managed","type":"local_file","instances":[{"attributes":{"content":"secret content","name":"x"},` +
		`"sensitive_attributes":[[{"type":"get_attr","value":"content"}]]}]}]}`
	lock = `{"ID":"L1","Operation":"OperationTypeApply"}`
)

func TestApplyGoesThrough(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	if status, _ := b.ask(http.MethodGet, "/", ""); status != http.StatusNoContent {
		t.Errorf("no state yet: %d, want 204", status)
	}
	if lineage, serial, ok := b.proxy.Present(); lineage != "" || serial != 0 || !ok {
		t.Errorf("present = %q %d %v, want none, but known", lineage, serial, ok)
	}
	for _, step := range []struct{ method, path, body string }{
		{http.MethodPost, "/lock", lock}, {http.MethodPost, "/?ID=L1", state}, {http.MethodDelete, "/lock", lock},
	} {
		if status, text := b.ask(step.method, step.path, step.body); status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", step.method, step.path, status, text)
		}
	}
	w := b.writes[0]
	if w.Fence != 5 || w.LockID != "L1" || w.Attempt != 2 || w.Serial != 3 || w.Lineage != "lin" || bytes.Contains(w.Body, []byte("t0ken")) {
		t.Errorf("write = %+v", w)
	}
	if !strings.HasPrefix(w.Digest, "sha256:") || len(w.Digest) != 71 {
		t.Errorf("digest = %s", w.Digest)
	}
	counts := map[string]any{"resources": map[string]any{"local_file": json.Number("1")}, "bytes": json.Number(strconv.Itoa(len(w.Body))), "level": "counts"}
	if diff := cmp.Diff(counts, *w.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if plain, err := seal.Open(b.id, datadir.StatePurpose(owner, "res_1", "lin", 3), w.Body); err != nil || string(plain) != state {
		t.Errorf("sealed state = %s, %v", plain, err)
	}
	if !slices.Contains(b.learned, any("t0ken-of-state")) || !slices.Contains(b.learned, any("secret content")) || slices.Contains(b.learned, any("http://x")) {
		t.Errorf("learned = %v", b.learned)
	}
	if status, text := b.ask(http.MethodGet, "/", ""); status != http.StatusOK || text != state {
		t.Errorf("read back: %d %s", status, text)
	}
	if left, _ := filepath.Glob(b.dir + "/*"); len(left) > 0 {
		t.Errorf("left on disk: %v", left)
	}
}

func TestPlanLocksAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, false)
	if status, _ := b.ask(http.MethodPost, "/lock", lock); status != http.StatusOK {
		t.Errorf("lock: %d", status)
	}
	if status, _ := b.ask(http.MethodPost, "/?ID=L1", state); status != http.StatusForbidden {
		t.Errorf("write: %d, want 403", status)
	}
	if status, _ := b.ask(http.MethodDelete, "/lock", lock); status != http.StatusOK {
		t.Errorf("unlock: %d", status)
	}
	if len(b.locked)+len(b.writes)+len(b.freed) > 0 {
		t.Errorf("the control plane was asked: %+v", b.states)
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.stored = &runnerapi.State{Serial: 1}
	for _, who := range [][2]string{{"", ""}, {b.access.Username, "wrong"}, {"wrong", b.access.Password}} {
		if status, _ := b.askAs(who[0], who[1], http.MethodGet, "/", ""); status != http.StatusUnauthorized {
			t.Errorf("%q: %d, want 401", who, status)
		}
	}
}

func TestOutageIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.away = 2
	if status, text := b.ask(http.MethodPost, "/lock", lock); status != http.StatusOK {
		t.Errorf("lock: %d %s", status, text)
	}
	b.mu.Lock()
	b.away = 2
	b.mu.Unlock()
	if status, text := b.ask(http.MethodPost, "/?ID=L1", state); status != http.StatusOK {
		t.Errorf("write: %d %s", status, text)
	}
	if len(b.writes) != 1 {
		t.Errorf("%d writes, want 1", len(b.writes))
	}
}

func TestLockOfAnotherIsShown(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.holder = &runnerapi.Lock{LockID: "other", Info: map[string]any{"ID": "other", "Who": "somebody"}}
	status, text := b.ask(http.MethodPost, "/lock", lock)
	if status != http.StatusLocked || !strings.Contains(text, `"Who":"somebody"`) {
		t.Errorf("lock: %d %s", status, text)
	}
}

// Terraform dies after it wrote its state, before the control plane had it.
func TestFinishDeliversWhatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	if status, _ := b.ask(http.MethodPost, "/lock", lock); status != http.StatusOK {
		t.Fatal(status)
	}
	b.mu.Lock()
	b.away = 1000
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	url := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(b.access.Port)) + "/?ID=L1"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(state))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(b.access.Username, b.access.Password)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("the write was answered in an outage")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "pending-state.json")); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.away = 0
	b.mu.Unlock()
	if err := b.proxy.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.writes) != 1 || len(b.freed) != 1 || b.freed[0].LockID != "L1" {
		t.Errorf("writes = %d, freed = %+v", len(b.writes), b.freed)
	}
}

// The socket of an agent that was killed does not stand in the way of the next
// one, and nobody else can connect to it.
func TestListenOnASocketAgain(t *testing.T) {
	t.Parallel()
	access := stateproxy.NewAccess()
	access.Port, access.Socket = 8700, filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(access.Socket, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	listener, got, err := stateproxy.Listen(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if got != access {
		t.Errorf("access %+v, want %+v", got, access)
	}
	info, err := os.Stat(access.Socket)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("socket %v, %v", info.Mode(), err)
	}
}

// The control plane keeps the states and may send any of them, with any serial.
func TestAttackAnotherStateIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *seal.Purpose, s *runnerapi.State){
		"of another resource": func(p *seal.Purpose, _ *runnerapi.State) { p.Resource = "res_2" },
		"of another install":  func(p *seal.Purpose, _ *runnerapi.State) { p.InstallID = "ins_2" },
		"of a lower serial":   func(p *seal.Purpose, _ *runnerapi.State) { p.Serial = 2 },
		"of another lineage":  func(p *seal.Purpose, _ *runnerapi.State) { p.Lineage = "other" },
		"that is a leaf":      func(p *seal.Purpose, _ *runnerapi.State) { p.Kind, p.Path = seal.KindInput, "x" },
		"under a false serial": func(p *seal.Purpose, s *runnerapi.State) {
			p.Serial, s.Serial = 4, 4 // anyone who knows the recipient can seal that
		},
	} {
		b := newBench(t, false)
		purpose := datadir.StatePurpose(owner, "res_1", "lin", 3)
		sent := &runnerapi.State{Serial: 3, Lineage: "lin"}
		change(&purpose, sent)
		var err error
		if sent.Body, err = seal.Seal([]string{b.id.Recipient()}, purpose, []byte(state)); err != nil {
			t.Fatal(err)
		}
		b.states.stored = sent
		status, text := b.ask(http.MethodGet, "/", "")
		if status == http.StatusOK || strings.Contains(text, "t0ken") || !strings.Contains(text, "sealed for another purpose") {
			t.Errorf("a state %s: %d %s", name, status, text)
		}
	}
}

// What the control plane took of this attempt needs not be asked for; a write that it did
// not take says nothing of what is there.
func TestOwnWriteIsNotAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	reads := func() (asked bool, text string) {
		b.change(func() { b.refuse = &control.Error{Status: http.StatusForbidden, Code: "asked"} })
		status, text := b.ask(http.MethodGet, "/", "")
		b.change(func() { b.refuse = nil })
		return status == http.StatusForbidden, text
	}
	if asked, _ := reads(); !asked {
		t.Error("before the first write the control plane is not asked")
	}
	if status, text := b.ask(http.MethodPost, "/?ID=L1", state); status != http.StatusOK {
		t.Fatal(status, text)
	}
	if asked, text := reads(); asked || text != state {
		t.Errorf("asked %v, got %s, want what was written", asked, text)
	}
	b.change(func() { b.refuse = &control.Error{Status: http.StatusConflict, Code: "stale_fence"} })
	if status, _ := b.ask(http.MethodPost, "/?ID=L1", state); status != http.StatusConflict {
		t.Errorf("a refused write: %d", status)
	}
	if asked, _ := reads(); !asked {
		t.Error("after a refused write the control plane is not asked")
	}
}

func (s *states) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}
