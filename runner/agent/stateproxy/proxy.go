// Package stateproxy is the Terraform state backend that an engine sees: one
// listener on the loopback per job, speaking Terraform's HTTP backend on one
// side and runner-api on the other. On the way out a state is sealed to the
// install's own key and carries attempt and fence; on the way in it is opened.
// Terraform never learns of either.
//
// While the control plane is away the proxy holds the request and tries again,
// so that an apply survives an outage. A written state is on disk, sealed,
// until the control plane has it; one that is refused stays as evidence.
//
// A plan locks nothing and writes nothing: its locks are answered here.
package stateproxy

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
)

const (
	// maxState bounds a state document: far above any that Terraform can handle.
	maxState = 256 << 20

	// What code in the engine can make the agent hold: one state, sent quickly,
	// and a few connections.
	maxConnections = 16
	maxHeaders     = 64 << 10
	bodyGrace      = 10 * time.Second
	bodyRate       = 1 << 20 // bytes per second: it comes over the loopback
	idleTimeout    = 2 * time.Minute
)

// States is where states are kept: runner-api.
type States interface {
	State(ctx context.Context, resource string, a runnerapi.Attempt) (*runnerapi.State, error)
	PutState(ctx context.Context, resource string, w runnerapi.StateWrite) error
	LockState(ctx context.Context, resource string, in runnerapi.LockRequest) (*runnerapi.Lock, error)
	UnlockState(ctx context.Context, resource string, in runnerapi.UnlockRequest) error
}

// Config makes a Proxy.
type Config struct {
	States   States
	Resource string
	Attempt  runnerapi.Attempt
	// Fence is the grant on the resource; Mutates is false for plans.
	Fence   int64
	Mutates bool
	Keys    datadir.Keys
	Runner  datadir.Runner
	// Dir is where states wait that were not accepted yet, the agent's own.
	Dir string
	// Disk gives of its reserve for a state on a full disk; nil does not.
	Disk *disk.Guard
	// Learn gets every value that a state marks as sensitive; written says
	// that it comes from Terraform, which may have shown it before.
	Learn func(value any, written bool)
	// Keep gets every state that was given out or accepted, sealed; nil does not.
	Keep func(lineage string, serial int64, digest string, sealed []byte)
	// Tells is how much the vendor learns of the state, "" for the least. Redact takes
	// the secrets of the attempt out of that; Told gets the size and digest of what the
	// control plane was told of attributes. Both may be nil.
	Tells  tfstate.Level
	Redact func(tree any) any
	Told   func(serial int64, bytes int, digest string)
	Log    *slog.Logger
}

// Proxy is the state backend of one attempt.
type Proxy struct {
	Config
	access Access
	memory *intake.Memory

	mu      sync.Mutex
	served  bool // a state, or that there is none, was given out
	lineage string
	serial  int64
	written []byte // what the control plane took last of this attempt, nil for nothing
}

// New makes the proxy of one attempt; nobody can reach it before Serve.
func New(c Config, a Access) *Proxy {
	return &Proxy{Config: c, access: a, memory: intake.NewMemory(maxState, maxState)}
}

// Serve answers Terraform until ctx ends. Requests that are being held end
// with it.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	limited := intake.Limit(l, maxConnections)
	server := &http.Server{
		Handler:           intake.Handler(p.handler()),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaders,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
	}
	limited.Watch(server)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("state proxy: %w", err)
	}
	return nil
}

// Present is the lineage and serial of the state that was last given out or
// accepted; ok is false when Terraform never asked.
func (p *Proxy) Present() (lineage string, serial int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lineage, p.serial, p.served
}

// Finish is called once the engine is over: it delivers a state that is still
// on disk and frees a lock that was left behind.
func (p *Proxy) Finish(ctx context.Context) error {
	if !p.Mutates {
		return nil
	}
	var waiting runnerapi.StateWrite
	found, damaged := datadir.ReadJSON(p.pendingPath(), &waiting)
	if damaged == nil && found {
		if err := p.deliver(ctx, waiting); err != nil {
			return err
		}
	}
	var held heldLock
	if found, err := datadir.ReadJSON(p.lockPath(), &held); err != nil || !found {
		return errors.Join(damaged, err)
	}
	return errors.Join(damaged, p.unlock(ctx, held.ID))
}

func (p *Proxy) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.get)
	mux.HandleFunc("POST /{$}", p.post)
	mux.HandleFunc("POST /lock", p.lock)
	mux.HandleFunc("DELETE /lock", p.unlockHTTP)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		same := subtle.ConstantTimeCompare([]byte(user), []byte(p.access.Username)) &
			subtle.ConstantTimeCompare([]byte(password), []byte(p.access.Password))
		if same != 1 || len(r.Header.Values("Authorization")) != 1 {
			http.Error(w, "not this job's", http.StatusUnauthorized)
			return
		}
		err := intake.BodyOf(r.Context()).Open(intake.Terms{
			MaxBytes: maxState, Memory: p.memory, Pace: intake.Pace{Grace: bodyGrace, BytesPerSecond: bodyRate},
		})
		if status, text := intake.Status(err); status != 0 {
			http.Error(w, text, status)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// get gives Terraform the state: what it wrote last as long as that was taken, as
// nobody else writes under this attempt's fence; else that of the control plane.
func (p *Proxy) get(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	body := p.written
	p.mu.Unlock()
	var err error
	if body == nil {
		body, err = p.read(r.Context())
	}
	switch {
	case err != nil:
		p.fail(w, r, "read", err)
	case body == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

// read fetches and opens the state; nil when there is none.
func (p *Proxy) read(ctx context.Context) ([]byte, error) {
	var state *runnerapi.State
	err := control.Retry(ctx, p.Log, "read state", func(ctx context.Context) (err error) {
		state, err = p.States.State(ctx, p.Resource, p.Attempt)
		return err
	})
	if err != nil {
		return nil, err
	}
	if state == nil {
		p.note("", 0)
		return nil, nil
	}
	body, d, err := Open(p.Keys, p.Runner, p.Resource, *state)
	if err != nil {
		return nil, fmt.Errorf("state of %s: %w", p.Resource, err)
	}
	d.secrets(func(v any) { p.Learn(v, false) })
	p.kept(d.Lineage, d.Serial, Digest(p.Keys.Salt, body), state.Body)
	p.note(d.Lineage, d.Serial)
	return body, nil
}

func (p *Proxy) kept(lineage string, serial int64, digest string, sealed []byte) {
	if p.Keep != nil {
		p.Keep(lineage, serial, digest, sealed)
	}
}

func (p *Proxy) note(lineage string, serial int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lineage, p.serial, p.served = lineage, serial, true
}

func (p *Proxy) post(w http.ResponseWriter, r *http.Request) {
	if !p.Mutates {
		http.Error(w, "a plan writes no state", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(r.Body)
	if status, text := intake.Status(err); status != 0 {
		http.Error(w, text, status)
		return
	}
	if err != nil {
		http.Error(w, "state is not readable", http.StatusBadRequest)
		return
	}
	d, err := parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.secrets(func(v any) { p.Learn(v, true) }) // before Terraform prints the next line
	write, err := p.sealed(body, d)
	if err != nil {
		p.fail(w, r, "seal", err)
		return
	}
	write.LockID = r.URL.Query().Get("ID")
	if err := p.keep(p.pendingPath(), write); err != nil {
		if !disk.Full(err) {
			p.fail(w, r, "keep", err)
			return
		}
		// Without a copy on disk it is lost if we die now; refused, it is lost for
		// certain.
		p.Log.ErrorContext(r.Context(), "state is handed in without a copy on disk", "serial", d.Serial, "err", err)
	}
	p.took(nil) // until it is known which one is there
	if err := p.deliver(r.Context(), write); err != nil {
		p.fail(w, r, "write", err)
		return
	}
	p.took(body)
	p.note(d.Lineage, d.Serial)
}

func (p *Proxy) took(body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = body
}

// keep writes a file that must not be lost.
func (p *Proxy) keep(path string, v any) error {
	return p.Disk.Insist(func() error { return datadir.WriteJSON(path, v) })
}

// deliver hands in a state that is on disk, and moves it out of the way of the
// next one when it is refused.
func (p *Proxy) deliver(ctx context.Context, write runnerapi.StateWrite) error {
	err := p.fenced()
	if err == nil {
		err = control.Retry(ctx, p.Log, "write state", func(ctx context.Context) error {
			return p.States.PutState(ctx, p.Resource, write)
		})
	}
	if err == nil {
		p.told(write)
		p.kept(write.Lineage, write.Serial, write.Digest, write.Body)
		return datadir.Remove(p.pendingPath())
	}
	if ctx.Err() != nil || control.Away(err) {
		return err // stays pending
	}
	if keep := p.setAside(write, err); keep != nil {
		return errors.Join(err, keep)
	}
	return errors.Join(err, datadir.Remove(p.pendingPath()))
}

// setAside keeps a state that was refused.
func (p *Proxy) setAside(write runnerapi.StateWrite, why error) error {
	return p.keep(p.refusedPath(write.Serial), refusedState{Reason: why.Error(), At: time.Now().UTC(), Write: write})
}

// refusedState is a state that the control plane did not take: evidence, and
// with the install's key the way back to what Terraform knew.
type refusedState struct {
	Reason string               `json:"reason"`
	At     time.Time            `json:"at"`
	Write  runnerapi.StateWrite `json:"write"`
}

// fail answers Terraform, which shows the text to people.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, what string, err error) {
	status := control.Status(err)
	if status < 400 || status == http.StatusUnauthorized {
		status = http.StatusServiceUnavailable
	}
	p.Log.WarnContext(r.Context(), "state proxy refused", "what", what, "status", status, "err", err)
	http.Error(w, err.Error(), status)
}

func (p *Proxy) pendingPath() string { return filepath.Join(p.Dir, "pending-state.json") }
