package buildkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit/step"
	"github.com/berth-dev/berth/runner/agent/process"
)

const (
	// socket is where the daemon listens, in its folder.
	socket = "run/s"

	// startTimeout is for a daemon that opens its cache.
	startTimeout = 30 * time.Second

	// stopTimeout is for a daemon that ends what it builds.
	stopTimeout = 5 * time.Second

	// idMapSize is how many users a rootless daemon has.
	idMapSize = 65536
)

// Config is what a Service works with.
type Config struct {
	Settings
	// Dir is the runner's folder for BuildKit, Lock the file that a living agent
	// keeps locked.
	Dir, Lock string
	// Executable is the runner itself. Libexec and SearchPath are where buildkitd,
	// buildctl, runc and rootlesskit are looked for, in this order.
	Executable, Libexec, SearchPath string
	// EngineUID of the runner tells its daemon's users from those of other runners.
	EngineUID int
	Log       *slog.Logger
}

// Service gives builds their BuildKit. It is safe for concurrent use.
type Service struct {
	cfg Config
	mu  sync.Mutex
}

// New makes a Service; it starts nothing.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Shown are the directories that the engine of a job sees below the runner's data.
// It makes them.
func (s *Service) Shown(kind jobspec.Kind) []string {
	if s == nil || kind != jobspec.KindDockerBuild {
		return nil
	}
	dirs := []string{filepath.Join(s.cfg.Dir, "client")}
	if s.cfg.Address == "" {
		dirs = append(dirs, filepath.Join(s.cfg.Dir, "state", "run"))
	}
	for _, dir := range dirs {
		_ = os.MkdirAll(dir, 0o755) // that it is missing is said when it is needed
	}
	return dirs
}

func (s *Service) buildctl() string { return filepath.Join(s.cfg.Dir, "client", "buildctl") }

// find looks for a program.
func (s *Service) find(names ...string) (string, bool) {
	for _, dir := range append([]string{s.cfg.Libexec, filepath.Dir(s.cfg.Executable)}, filepath.SplitList(s.cfg.SearchPath)...) {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); dir != "" && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, true
			}
		}
	}
	return "", false
}

// installRemedy is what to do about programs that are missing.
const installRemedy = "install BuildKit (buildkitd and buildctl) with runc, and without root also rootlesskit and newuidmap, on the machine of the builder, on its PATH or in BERTH_LIBEXEC; or set BERTH_BUILDKIT_ADDR to a BuildKit that runs elsewhere"

// provideClient puts buildctl where engines see it, unless it is there.
func (s *Service) provideClient() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, ok := s.find("buildctl")
	if !ok {
		return refuse(installRemedy, "this Build Runner cannot build images: there is no buildctl")
	}
	want, err := os.Stat(from)
	if err != nil {
		return err
	}
	if have, err := os.Stat(s.buildctl()); err == nil && have.Size() == want.Size() && have.ModTime().Equal(want.ModTime()) {
		return nil
	}
	return copyFile(from, s.buildctl(), want.ModTime())
}

func copyFile(from, to string, at time.Time) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	dst, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Close()); err != nil {
		return err
	}
	return errors.Join(os.Chtimes(to+".new", at, at), os.Rename(to+".new", to))
}

// keep is what a keeper is to start: keep.json.
type keep struct {
	Buildkitd string `json:"buildkitd"`
	// Rootlesskit makes the user namespace where the keeper is not root.
	Rootlesskit string `json:"rootlesskit,omitempty"`
	// Runc is what runs steps.
	Runc string `json:"runc"`
	// Home is the control group of the daemon itself, "" for that of its keeper.
	Home string `json:"home,omitempty"`
	// FirstUID is where the users of the daemon begin on this machine, for root.
	FirstUID int    `json:"first_uid,omitempty"`
	State    string `json:"state"`
	Lock     string `json:"lock"`
	Path     string `json:"path"`
}

func (s *Service) keepFile() string { return filepath.Join(s.cfg.Dir, "keep.json") }
func (s *Service) record() string   { return filepath.Join(s.cfg.Dir, "keeper.json") }

// plan decides what is started.
func (s *Service) plan() (keep, error) {
	k := keep{State: filepath.Join(s.cfg.Dir, "state"), Lock: s.cfg.Lock, Path: s.cfg.Libexec + ":" + s.cfg.SearchPath}
	var ok bool
	if k.Buildkitd, ok = s.find("buildkitd"); !ok {
		return k, refuse(installRemedy, "this Build Runner cannot build images: there is no buildkitd")
	}
	if k.Runc, ok = s.find("buildkit-runc", "runc"); !ok {
		return k, refuse(installRemedy, "this Build Runner cannot build images: there is no runc")
	}
	if os.Geteuid() == 0 {
		k.FirstUID = firstUID(s.cfg.EngineUID)
		if err := process.Reachable(k.Buildkitd, k.FirstUID, k.FirstUID); err != nil {
			return k, refuse("move it to where every user may read it", "buildkitd, which does not run as root: %v", err)
		}
		return k, nil
	}
	if k.Rootlesskit, ok = s.find("rootlesskit"); !ok {
		return k, refuse(installRemedy, "this Build Runner cannot build images: there is no rootlesskit, and it is not root")
	}
	if _, ok = s.find("newuidmap"); !ok {
		return k, refuse(installRemedy, "this Build Runner cannot build images: there is no newuidmap, and it is not root")
	}
	return k, nil
}

// firstUID is where the users of a runner's daemon begin. Each runner has an
// EngineUID of its own on a machine; what it maps to lies above the users that
// people and containers get, and below 2^31.
func firstUID(engineUID int) int {
	const above, ranges = 1 << 30, 8192
	return above + engineUID%ranges*idMapSize
}

// start sees that the own daemon answers.
func (s *Service) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive() && s.answers(ctx) {
		return nil
	}
	s.stop()
	k, err := s.plan()
	if err != nil {
		return err
	}
	if err := s.prepare(k); err != nil {
		return fmt.Errorf("folder of BuildKit: %w", err)
	}
	began := time.Now()
	ended, err := s.launch()
	if err != nil {
		return fmt.Errorf("start BuildKit: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !s.answers(ctx) {
		select {
		case <-ended:
			return refuse(installRemedy, "BuildKit does not start: %s", s.lastWords())
		case <-ctx.Done():
			s.stop()
			return refuse("", "BuildKit did not answer within %s: %s", startTimeout, s.lastWords())
		case <-time.After(20 * time.Millisecond): // a socket tells nobody that it is there
		}
	}
	s.cfg.Log.InfoContext(ctx, "buildkit started", "took", time.Since(began))
	return nil
}

// prepare makes the folder as the daemon needs it.
func (s *Service) prepare(k keep) error {
	for dir, mode := range map[string]fs.FileMode{k.State: 0o711, filepath.Join(k.State, "run"): 0o755, filepath.Join(k.State, "root"): 0o700, filepath.Join(k.State, "tmp"): 0o700, filepath.Join(k.State, "bin"): 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if err := os.Chmod(dir, mode); err != nil {
			return err
		}
		if k.FirstUID != 0 && dir != filepath.Join(k.State, "bin") {
			if err := os.Lchown(dir, k.FirstUID, k.FirstUID); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(filepath.Join(k.State, socket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	home, err := s.limit(k)
	if err != nil {
		return err
	}
	k.Home = home
	runc := filepath.Join(k.State, "bin", step.Name)
	// RUN steps get this socket mounted, so its path is absolute, and short.
	root, otel := filepath.Join(k.State, "root"), "/run/berth-otel.sock"
	if k.FirstUID != 0 {
		root, otel = filepath.Join(mountPoint, "root"), filepath.Join(mountPoint, "tmp", "otel.sock")
		runc = filepath.Join(mountPoint, "bin", step.Name)
	}
	if err := os.WriteFile(filepath.Join(k.State, "buildkitd.toml"), []byte(daemonConfig(root, otel, runc)), 0o644); err != nil {
		return err
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return durable.WriteFile(s.keepFile(), raw, 0o600)
}

// launch starts the keeper and writes down which process it is.
func (s *Service) launch() (ended <-chan struct{}, err error) {
	log, err := os.OpenFile(s.daemonLog(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(s.cfg.Executable, "buildkitd", s.keepFile()) //nolint:noctx // it outlives the agent on purpose
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = []string{"PATH=" + s.cfg.Libexec + ":" + s.cfg.SearchPath, "HOME=" + os.Getenv("HOME"), "GORACE=" + os.Getenv("GORACE")}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if value := os.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	raw, err := json.Marshal(process.IDOf(cmd.Process.Pid))
	if err == nil {
		err = durable.WriteFile(s.record(), raw, 0o600)
	}
	if err != nil {
		_ = cmd.Process.Kill()
	}
	return done, err
}

func (s *Service) daemonLog() string { return filepath.Join(s.cfg.Dir, "daemon.log") }

// keeper is the one on record.
func (s *Service) keeper() (id process.ID, ok bool) {
	raw, err := os.ReadFile(s.record())
	if err != nil || json.Unmarshal(raw, &id) != nil {
		return id, false
	}
	return id, process.Alive(id)
}

func (s *Service) alive() bool {
	_, ok := s.keeper()
	return ok
}

// answers tells whether the daemon takes connections, and opens its socket to the
// engines: which of them see it is decided by what they are shown.
func (s *Service) answers(ctx context.Context) bool {
	dir, err := os.Open(filepath.Join(s.cfg.Dir, "state"))
	if err != nil {
		return false
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socket) // longer paths fit in no socket's address
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", short)
	if err != nil {
		return false
	}
	_ = conn.Close()
	if os.Geteuid() != 0 {
		return true
	}
	return os.Chmod(short, 0o666) == nil
}

// lastWords are those of a daemon that did not start.
func (s *Service) lastWords() string {
	raw, _ := os.ReadFile(s.daemonLog())
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return lines[len(lines)-1]
}

// stop ends the daemon on record, and with it all that it builds.
func (s *Service) stop() {
	id, ok := s.keeper()
	if !ok {
		return
	}
	_ = syscall.Kill(id.PID, syscall.SIGTERM)
	for began := time.Now(); process.Alive(id); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > stopTimeout {
			_ = syscall.Kill(id.PID, syscall.SIGKILL)
			break
		}
	}
	_ = os.Remove(s.record())
}

// Close ends the daemon that this or an earlier agent started.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := os.Stat(s.record())
	s.stop()
	// Without a daemon of its own the groups belong to another Build Runner of this user.
	if err == nil && os.Geteuid() == 0 {
		dropGroups(firstUID(s.cfg.EngineUID))
	}
	return nil
}
