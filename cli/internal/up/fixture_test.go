package up_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/toolchain"
	"github.com/berth-dev/berth/cli/internal/up"
)

const patience = 60 * time.Second // on a busy machine

// house is a data folder with executables and ports.
type house struct {
	t       *testing.T
	layout  up.Layout
	port    int
	libexec string

	mu    sync.Mutex
	lines []string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	// Not t.TempDir: other users cannot enter it, and Postgres must.
	base, err := os.MkdirTemp("/tmp", "berth-up-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	layout, err := up.LayoutAt(filepath.Join(base, "data"))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, layout: layout, port: freePorts(t), libexec: filepath.Join(base, "libexec")}
	if err := os.Mkdir(h.libexec, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ctl-api", "runner-api", "builder", "log-ingest", "runner", "engine", "policy"} {
		if err := os.Symlink(self, filepath.Join(h.libexec, "berth-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if layout.Exists() {
			if err := up.Down(layout, func(e up.Ended) { t.Logf("clean-up ended %s (pid %d)", e.Name, e.PID) }); err != nil {
				t.Errorf("clean-up: %v", err)
			}
		}
	})
	return h
}

// nextPort is where the next house looks for its ports: what a house has found is
// its own, also while nothing of it listens.
var nextPort = struct {
	sync.Mutex
	base int
}{base: 12000 + os.Getpid()%500*16}

// freePorts finds four free ports in a row, below those that the kernel gives to
// clients: one of these could take a port between two starts of a house.
func freePorts(t *testing.T) int {
	t.Helper()
	nextPort.Lock()
	defer nextPort.Unlock()
	for nextPort.base < 32000 {
		base := nextPort.base
		nextPort.base += 4
		if free(base) && free(base+1) && free(base+2) && free(base+3) {
			return base
		}
	}
	t.Fatal("no four free ports in a row")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func (h *house) config(ready func(string), env map[string]string) up.Config {
	getenv := func(name string) string {
		switch name {
		case "BERTH_LIBEXEC":
			return h.libexec
		case "DATABASE_URL":
			return ""
		}
		return firstOf(env[name], os.Getenv(name))
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	return up.Config{
		Layout: h.layout, Port: h.port, Org: "local", Getenv: getenv, Environ: environ,
		// Any executable will do: nothing runs it here.
		Terraform: toolchain.Options{Binary: filepath.Join(h.libexec, "terraform")},
		Say:       h.say, Ready: ready,
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (h *house) say(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *house) said() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

// up runs a supervisor until the test ends or stop is called.
func (h *house) up(env map[string]string) (stop func() error) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- up.Run(ctx, h.config(func(url string) { ready <- url }, env)) }()
	var once sync.Once
	var stopErr error
	stop = func() error {
		once.Do(func() {
			cancel()
			stopErr = <-ended
		})
		return stopErr
	}
	h.t.Cleanup(func() { _ = stop() })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		h.t.Fatalf("up ended: %v\n%s", err, h.said())
	case <-time.After(patience):
		h.t.Fatalf("up is not ready\n%s", h.said())
	}
	return stop
}

// superviseElsewhere runs a supervisor as a process of its own and returns it
// once it is ready.
func (h *house) superviseElsewhere() *exec.Cmd {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "BERTH_TEST_SUPERVISE="+h.layout.Dir+" "+h.libexec+" "+strconv.Itoa(h.port))
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = cmd.Process.Kill() })
	word := make([]byte, len("ready"))
	if _, err := out.Read(word); err != nil || string(word) != "ready" {
		_ = cmd.Wait()
		h.t.Fatalf("supervisor: %v\n%s", err, stderr.String())
	}
	return cmd
}

// superviseForTest is what that process does.
func superviseForTest() {
	fields := strings.Fields(os.Getenv("BERTH_TEST_SUPERVISE"))
	layout, err := up.LayoutAt(fields[0])
	if err != nil {
		panic(err)
	}
	port, err := strconv.Atoi(fields[2])
	if err != nil {
		panic(err)
	}
	h := &house{layout: layout, libexec: fields[1], port: port}
	cfg := h.config(func(string) { fmt.Print("ready") }, nil)
	cfg.Say = func(line string) { fmt.Fprintln(os.Stderr, line) }
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-terminated()
		cancel()
	}()
	if err := up.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pids of all parts that run, by name.
func (h *house) pids() map[string]int {
	h.t.Helper()
	status, err := up.AskStatus(h.t.Context(), h.layout)
	if err != nil {
		h.t.Fatal(err)
	}
	pids := map[string]int{}
	for _, part := range status.Parts {
		if part.Ready || !status.Running {
			pids[part.Name] = part.PID
		}
	}
	return pids
}

// eventually polls: what it waits for happens in other processes.
func (h *house) eventually(what string, ok func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("never: %s\n%s", what, h.said())
		}
	}
}

// call sends a request to the supervisor's socket.
func (h *house) call(method, path string, body any) int {
	h.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", h.layout.Socket())
		},
	}}
	req, err := http.NewRequestWithContext(h.t.Context(), method, "http://supervisor"+path, bytes.NewReader(data))
	if err != nil {
		h.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
