package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	downTimeout = time.Minute
	lookEvery   = 20 * time.Millisecond // between looks at what has no wake-up for us
)

// system is one `berth up` on a data folder of its own.
type system struct {
	dir, bin string
	port     int
	env      []string
}

// startSystem returns once everything is up. stop must be called, also after
// an error.
func startSystem(ctx context.Context, bin string) (*system, error) {
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return nil, err
	}
	s := &system{dir: dir, bin: bin}
	// Postgres and the engines run as other users and must pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return s, err
	}
	if s.port, err = freePorts(ctx); err != nil {
		return s, err
	}
	s.env = append(os.Environ(),
		"BERTH_DATA="+s.data(), "BERTH_PORT="+strconv.Itoa(s.port), "DATABASE_URL=", "BERTH_LIBEXEC="+bin,
		"HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"BERTH_REQUESTS_PER_MINUTE=10000000",
		"BERTH_CONTEXT=", "BERTH_URL=", "BERTH_TOKEN=", "NO_COLOR=1")
	return s, s.berth(ctx, "up", "--detach")
}

func (s *system) data() string         { return filepath.Join(s.dir, "data") }
func (s *system) ctlAPIURL() string    { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }
func (s *system) runnerAPIURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port+1) }
func (s *system) logURL() string       { return fmt.Sprintf("http://127.0.0.1:%d", s.port+2) }

// stop ends everything and deletes the data; when something does not end, the
// data stays to look into.
func (s *system) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	if err := s.berth(ctx, "down"); err != nil {
		return fmt.Errorf("%w\nits data is in %s", err, s.dir)
	}
	return os.RemoveAll(s.dir)
}

func (s *system) berth(ctx context.Context, args ...string) error {
	_, err := s.command(ctx, filepath.Join(s.bin, "berth"), args...)
	return err
}

// command runs a program to its end and returns what it printed.
func (s *system) command(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, _, err := s.measured(ctx, program, args...)
	return out, err
}

// measured is command, and how long the program was on a processor.
func (s *system) measured(ctx context.Context, program string, args ...string) ([]byte, time.Duration, error) {
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &problem
	// In its own group: our interrupt must not reach what it starts.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(program), args[0], err, out.Bytes(), problem.Bytes())
	}
	return out.Bytes(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// open is the database with the rights of ctl-api.
func (s *system) open(ctx context.Context) (*store.Store, error) {
	dsn, err := os.ReadFile(filepath.Join(s.data(), "dsn", store.RoleCtl.DSNFile()))
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, string(bytes.TrimSpace(dsn)), store.Options{Name: "berth-bench"})
}

// startAgent asks the supervisor for an Install Runner, as ctl-api does.
func (s *system) startAgent(ctx context.Context, r runner) error {
	public, _ := r.orders.Public().(ed25519.PublicKey)
	body, err := json.Marshal(map[string]any{
		"kind": "install", "org_id": r.orgID, "install_id": r.installID, "name": "bench", "enrolment_secret": r.secret,
		"dispatch_keys":  []map[string]string{{"key_id": capsule.KeyID(public), "public_key": capsule.EncodePublicKey(public)}},
		"runner_api_url": s.runnerAPIURL(), "log_url": s.logURL(),
	})
	if err != nil {
		return err
	}
	socket := filepath.Join(s.data(), "run", "supervisor", "up.sock")
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://supervisor/runners/"+r.id, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for a runner: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("ask for a runner: %s", resp.Status)
	}
	return nil
}

// freePorts finds four free ports in a row, below the node ports of a Kubernetes
// and those that the kernel gives to clients.
func freePorts(ctx context.Context) (int, error) {
	for base := 20000 + os.Getpid()%8000; base < 30000; base += 4 {
		free := true
		for i := range 4 {
			l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(base+i)))
			if err != nil {
				free = false
				break
			}
			_ = l.Close()
		}
		if free {
			return base, nil
		}
	}
	return 0, errors.New("no four free ports in a row")
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
