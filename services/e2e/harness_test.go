package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	upTimeout   = 2 * time.Minute  // initdb and all migrations on a busy machine
	cliTimeout  = 3 * time.Minute  // one command
	goOnTimeout = 15 * time.Second // within which everything goes on after a kill
)

// atOnce is how many stories run at the same time: they wait more than they
// work. -parallel on the command line wins.
const atOnce = "3"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce) // a number: cannot fail
	}
	// Actions can also use what is next to the tests' kubectl.
	if kubectl := os.Getenv("KUBECTL"); kubectl != "" {
		_ = os.Setenv("PATH", filepath.Dir(kubectl)+string(filepath.ListSeparator)+os.Getenv("PATH")) // fails on a NUL only
	}
	os.Exit(m.Run())
}

// system is one `berth up`, or an org of a deployment.
type system struct {
	t     *testing.T
	dir   string // data folder; of a deployment only the admin's token is in it
	bin   string // folder of the executables
	port  int    // the first of four; of `berth up` alone
	api   string // address of the public API
	logs  string // address of log-ingest
	http  *http.Client
	env   []string
	up    *exec.Cmd
	upLog *bytes.Buffer
	ended chan struct{}
	slow  time.Duration // how long a release may take; a minute when zero
	*deployment
}

// start brings a system up and ends it after the test. On a deployment it makes
// an org, which stays.
func start(t *testing.T, extraEnv ...string) *system {
	t.Helper()
	if d := given(t); d != nil {
		return d.org(t, extraEnv)
	}
	return startFrom(t, executables(t), extraEnv...)
}

// executables is the folder of what is tested.
func executables(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("BERTH_LIBEXEC")
	if bin == "" {
		t.Fatal("BERTH_LIBEXEC names no folder with the executables: run `make test`, or `make build` and set it to .bin")
	}
	return bin
}

// startFrom is start with the executables of a folder.
func startFrom(t *testing.T, bin string, extraEnv ...string) *system {
	t.Helper()
	s := at(t, home(t), bin, extraEnv...)
	s.begin()
	return s
}

// home makes a folder for a system, until the end of the test. Engines run as
// another user and must be able to pass through.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// at is a system in a folder, not up yet.
func at(t *testing.T, dir, bin string, extraEnv ...string) *system {
	t.Helper()
	s := &system{t: t, dir: filepath.Join(dir, "data"), bin: bin, port: freePorts(t), http: http.DefaultClient, ended: make(chan struct{})}
	s.api, s.logs = fmt.Sprintf("http://127.0.0.1:%d", s.port), fmt.Sprintf("http://127.0.0.1:%d", s.port+2)
	s.env = append(os.Environ(),
		"BERTH_DATA="+s.dir, "BERTH_PORT="+strconv.Itoa(s.port), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"BERTH_CONTEXT=", "BERTH_URL=", "BERTH_TOKEN=", "KUBECONFIG=", "NO_COLOR=1",
		"BERTH_SWEEP_SECONDS=2")
	s.env = append(s.env, extraEnv...)
	return s
}

// begin brings the system up, and ends it after the test.
func (s *system) begin() {
	s.t.Helper()
	s.t.Cleanup(func() {
		s.down()
		for _, report := range s.raceReports() {
			s.t.Errorf("data race: %s", report)
		}
		for _, line := range s.lostWakeUps() {
			s.t.Errorf("something waited that nobody would have moved: %s", line)
		}
		if s.t.Failed() {
			s.dump()
		}
	})
	s.launch()
}

// lostWakeUps are what the sweep of ctl-api had to move (package sweep): nothing, in a
// system that works. It looks every two seconds here.
func (s *system) lostWakeUps() (lines []string) {
	logs, _ := filepath.Glob(filepath.Join(s.dir, "log", "ctl-api.log*"))
	for _, file := range logs {
		data, _ := os.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "a wake-up was lost") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// launch starts `berth up` in the foreground and waits until it is ready.
func (s *system) launch() {
	s.t.Helper()
	s.upLog = &bytes.Buffer{}
	s.up = exec.Command(filepath.Join(s.bin, "berth"), "up")
	s.up.Env, s.up.Stdout, s.up.Stderr = s.env, s.upLog, s.upLog
	s.up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.up.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(s.up, s.ended)
	s.eventually(upTimeout, "berth up is ready", func() error {
		select {
		case <-s.ended:
			s.t.Fatalf("berth up ended:\n%s", s.upLog)
		default:
		}
		for _, name := range []string{"ctl-api", "runner-api", "log-ingest", "builder"} {
			p, ok := s.part(name)
			if !ok || !p.Ready {
				return fmt.Errorf("%s is not ready", name)
			}
		}
		for _, file := range []string{filepath.Join(s.dir, "token"), filepath.Join(filepath.Dir(s.dir), "config", "berth", "config.json")} {
			if _, err := os.Stat(file); err != nil {
				return err
			}
		}
		return nil
	})
}

// down ends the system, by its own command first.
func (s *system) down() {
	ctx, cancel := context.WithTimeout(context.Background(), cliTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "berth"), "down")
	cmd.Env = s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("berth down: %v\n%s", err, out)
	}
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.t.Error("berth up did not end after berth down")
		_ = s.up.Process.Kill()
	}
	if left := s.processes(""); len(left) > 0 {
		s.t.Errorf("berth down left processes running: %v", left)
	}
}

// dump shows the end of every log of a failed test, as output that is no message of the
// test: the summary of a run repeats the messages.
func (s *system) dump() {
	out := s.t.Output()
	fmt.Fprintf(out, "berth up said:\n%s\n", tail(s.upLog.String(), 40))
	logs, _ := filepath.Glob(filepath.Join(s.dir, "log", "*.log"))
	for _, file := range logs {
		data, _ := os.ReadFile(file)
		fmt.Fprintf(out, "%s:\n%s\n", filepath.Base(file), tail(string(data), 40))
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

// nextPort is where the next system looks for its ports: what a system has
// found is its own before it listens there.
var nextPort = struct {
	sync.Mutex
	base int
}{base: 20000 + os.Getpid()%500*16}

// freePorts finds four free ports in a row. They are below those that the
// kernel gives to clients, and below the node ports of a Kubernetes: a cluster on
// this machine takes what is sent to one of these, though nothing listens there.
func freePorts(t *testing.T) int {
	t.Helper()
	nextPort.Lock()
	defer nextPort.Unlock()
	for ; nextPort.base < 30000; nextPort.base += 4 {
		base := nextPort.base
		free := true
		for i := range 4 {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(base+i)))
			if err != nil {
				free = false
				break
			}
			_ = l.Close()
		}
		if free {
			nextPort.base += 4
			return base
		}
	}
	t.Fatal("no four free ports in a row")
	return 0
}

// freeAddress is a port of host that nothing uses: a program that is told to listen
// there finds it free, whatever clients and listeners begin meanwhile.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	return net.JoinHostPort(host, strconv.Itoa(freePorts(t)))
}

// part is what `berth up --status` says of one process.
type part struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Ready bool   `json:"ready"`
}

// parts asks the supervisor itself, which is what the command does too.
func (s *system) parts() []part {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	socket := filepath.Join(s.dir, "run", "supervisor", "up.sock")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://supervisor/status", nil)
	if err != nil {
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil // not up yet
	}
	defer func() { _ = resp.Body.Close() }()
	var status struct {
		Parts []part `json:"parts"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&status) // no parts is the answer to anything odd
	return status.Parts
}

func (s *system) part(prefix string) (part, bool) {
	for _, p := range s.parts() {
		if strings.HasPrefix(p.Name, prefix) {
			return p, true
		}
	}
	return part{}, false
}

// berth runs a command and returns stdout and the exit code.
func (s *system) berth(args ...string) (string, int) {
	s.t.Helper()
	out, errOut, code := s.run(args...)
	if code != 0 {
		s.t.Logf("berth %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out, code
}

func (s *system) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cliTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "berth"), args...)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &errOut
	err := cmd.Run()
	if ctx.Err() != nil {
		s.t.Fatalf("berth %s did not end within %s:\n%s%s", strings.Join(args, " "), cliTimeout, out.String(), errOut.String())
	}
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatalf("berth %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that has to come out well.
func (s *system) must(args ...string) string {
	s.t.Helper()
	out, errOut, code := s.run(args...)
	if code != 0 {
		s.t.Fatalf("berth %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// token is the admin's.
func (s *system) token() string {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// call asks the public API and decodes the answer into out (may be nil).
func (s *system) call(method, path string, body, out any) error {
	return s.ask(method, s.api+path, body, out)
}

func (s *system) ask(method, address string, body, out any) error {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, address, resp.Status, raw)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

func (s *system) get(path string, out any) {
	s.t.Helper()
	if err := s.call(http.MethodGet, path, nil, out); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) post(path string, body, out any) {
	s.t.Helper()
	if err := s.call(http.MethodPost, path, body, out); err != nil {
		s.t.Fatal(err)
	}
}

// database is the whole database, as its administrator.
func (s *system) database() *pgxpool.Pool {
	s.t.Helper()
	pool, err := pgxpool.New(s.t.Context(), "postgres://postgres@/berth?host="+filepath.Join(s.dir, "run", "postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(pool.Close)
	return pool
}

// stall is how much longer than asked a sleep takes when the machine stood still.
const stall = 500 * time.Millisecond

// eventually waits until check has no objection. Time in which the machine did not
// run even this process does not count: the deadlines are promises of Berth, not of
// the machine.
func (s *system) eventually(within time.Duration, what string, check func() error) {
	s.t.Helper()
	began := time.Now()
	deadline := began.Add(within)
	for wait := 20 * time.Millisecond; ; wait = min(wait*3/2, 300*time.Millisecond) {
		err := check()
		took := time.Since(began)
		if err == nil {
			if took > within/2 {
				s.t.Logf("%s: after %s of %s", what, took.Round(100*time.Millisecond), within)
			}
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not within %s, but after %s still: %v", what, within, took.Round(100*time.Millisecond), err)
		}
		asleep := time.Now()
		time.Sleep(wait) // looking costs the machine more than waiting
		if over := time.Since(asleep) - wait; over > stall {
			s.t.Logf("the machine stood still for %s", over)
			deadline = deadline.Add(over)
		}
	}
}

// processes lists the pids of all processes of this system whose command line
// has the word; all with "".
func (s *system) processes(word string) []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || len(cmdline) == 0 {
			continue
		}
		line := strings.ReplaceAll(string(cmdline), "\x00", " ")
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		ours := strings.Contains(line, s.dir) || bytes.Contains(environ, []byte(s.dir))
		if ours && strings.Contains(line, word) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// signal sends a signal to one process of this system.
func (s *system) signal(pid int, sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatalf("signal %v to %d: %v", sig, pid, err)
	}
}

// folder copies an app folder, so that a test can edit it.
func folder(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(from))
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// edit replaces text in a file of a copied folder.
func edit(t *testing.T, file, old, replacement string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not have %q", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(data), old, replacement)), 0o644); err != nil {
		t.Fatal(err)
	}
}
