package process_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/agent/process"
)

// TestMain is also what TestNoNetwork starts.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_NETWORK") != "" {
		fmt.Println(tellNetwork(os.Args[1]))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shell starts a script and returns it with the directory it runs in.
func shell(t *testing.T, iso process.Isolation, group *process.Group, script string) (*process.Process, string) {
	t.Helper()
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := process.Start(process.Spec{
		Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: out, Stderr: out,
		Isolation: iso, Group: group, Launcher: self(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		ended(t, p)
	})
	return p, dir
}

func ended(t *testing.T, p *process.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the process does not end")
	}
}

// isolations are those that this machine allows.
func isolations(t *testing.T) map[string]process.Isolation {
	t.Helper()
	all := map[string]process.Isolation{"session": {}}
	if process.CanSeparate(self(t)) {
		all["namespace"] = process.Isolation{PIDNamespace: true}
	}
	return all
}

// self is this executable: the launcher is in it.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// grandchild waits for the number that the script wrote into the file.
func grandchild(t *testing.T, dir string) int {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		raw, _ := os.ReadFile(filepath.Join(dir, "pid"))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			return pid
		}
		if time.Now().After(deadline) {
			t.Fatal("the script does not begin")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, iso := range isolations(t) {
		p, _ := shell(t, iso, nil, "exit 3")
		ended(t, p)
		if p.ExitCode() != 3 {
			t.Errorf("%s: exit code %d, want 3", name, p.ExitCode())
		}
		if process.Alive(p.ID()) {
			t.Errorf("%s: still alive", name)
		}
	}
}

// A tool that the engine started, and that ignores all signals, dies with it.
func TestKillTakesEverything(t *testing.T) {
	t.Parallel()
	for name, iso := range isolations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := fmt.Sprintf("31%d", time.Now().UnixNano()%1e9)
			p, dir := shell(t, iso, nil, "(trap '' TERM INT; echo 1 > pid; exec sleep "+marker+") & wait; sleep 1000")
			grandchild(t, dir)
			p.Kill()
			ended(t, p)
			if pid, found := findSleep(marker); found {
				t.Errorf("%s: process %d was left behind", name, pid)
			}
		})
	}
}

// findSleep looks for a `sleep` with this argument.
func findSleep(marker string) (int, bool) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		id, found := process.Find(marker)
		if !found || time.Now().After(deadline) {
			return id.PID, found
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestStopGivesGrace(t *testing.T) {
	t.Parallel()
	p, dir := shell(t, process.Isolation{}, nil, "trap 'exit 9' TERM; echo 1 > pid; while :; do sleep 0.01; done")
	grandchild(t, dir)
	p.Stop(20 * time.Second)
	ended(t, p)
	if p.ExitCode() != 9 {
		t.Errorf("exit code %d, want the script's own 9", p.ExitCode())
	}
	p, dir = shell(t, process.Isolation{}, nil, "trap '' TERM; echo 1 > pid; while :; do sleep 0.01; done")
	grandchild(t, dir)
	p.Stop(50 * time.Millisecond)
	ended(t, p)
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	// Not a child of ours that Go waits for: a process that somebody else began.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.01; done", "adopt-me")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait()
	}()
	id, found := process.Find("-c", "trap 'exit 0' TERM; while :; do sleep 0.01; done", "adopt-me")
	if !found || id.PID != cmd.Process.Pid {
		t.Fatalf("Find = %+v, %v; want %d", id, found, cmd.Process.Pid)
	}
	for name, wrong := range map[string]process.ID{
		"another start":   {PID: id.PID, StartTime: id.StartTime + 1, BootID: id.BootID},
		"another boot":    {PID: id.PID, StartTime: id.StartTime, BootID: "x"},
		"no such process": {PID: 1 << 30, StartTime: id.StartTime, BootID: id.BootID},
	} {
		if _, found, err := process.Adopt(wrong, process.Isolation{}, nil); found || err != nil {
			t.Errorf("%s: adopted %v, %v", name, found, err)
		}
	}
	p, found, err := process.Adopt(id, process.Isolation{}, nil)
	if err != nil || !found {
		t.Fatalf("Adopt: %v, %v", found, err)
	}
	p.Stop(20 * time.Second)
	ended(t, p)
	<-reaped
	if p.ExitCode() != -1 {
		t.Errorf("exit code %d of an adopted process, want -1", p.ExitCode())
	}
	p.Kill() // harmless afterwards
}

func TestGroupLimits(t *testing.T) {
	t.Parallel()
	limits := process.Limits{PIDs: 24}
	if err := process.CanLimit(limits); err != nil {
		t.Skip(err)
	}
	group, err := process.NewGroup(fmt.Sprintf("test-%d", os.Getpid()), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.Remove)
	// It forks at once: what came before its being limited would show.
	p, dir := shell(t, process.Isolation{}, group, "for i in $(seq 40); do sleep 5 & done; wait")
	ended(t, p)
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ToLower(string(out)), "fork") {
		t.Errorf("forty processes fit into 24:\n%s", out)
	}
}

// What the kernel does not take is no limit: there is no group then.
func TestLimitsThatCannotBeSet(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if err := process.CanLimit(process.Limits{PIDs: 8}); err != nil {
		t.Skip(err)
	}
	name := fmt.Sprintf("test-refused-%d", os.Getpid())
	// More processes than the kernel can count.
	group, err := process.NewGroup(name, process.Limits{PIDs: 1 << 62})
	if err == nil {
		t.Errorf("group %+v with a limit that the kernel refuses", group)
	}
	if left := process.FindGroup(name); left != nil {
		t.Errorf("left behind: %+v", left)
	}
	if group, err := process.NewGroup(name, process.Limits{}); err != nil || group != nil {
		t.Errorf("without limits: %+v, %v", group, err)
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "berth-reach-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	inner := filepath.Join(base, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	const stranger = 65000
	if err := process.Reachable(filepath.Join(inner, "x"), stranger, stranger); err == nil || !strings.Contains(err.Error(), base) {
		t.Errorf("through a closed directory: %v, want it named", err)
	}
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := process.Reachable(filepath.Join(inner, "x"), stranger, stranger); err != nil {
		t.Errorf("through open directories: %v", err)
	}
	if err := process.Reachable("/root/secret/x", 0, 0); err != nil {
		t.Errorf("the agent's own user: %v", err)
	}
}

// A process without a network has no interface that is up, not even to this machine; or
// the loopback of its own alone, on which nobody else listens.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	look := func(loopback bool) string {
		iso := process.Isolation{NoNetwork: true, Loopback: loopback}
		if os.Geteuid() != 0 {
			iso.OwnUsers, iso.PIDNamespace = true, loopback
		}
		out, err := os.CreateTemp(t.TempDir(), "out")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Close() }()
		executable, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p, err := process.Start(process.Spec{
			Path: executable, Args: []string{l.Addr().String()}, Dir: "/", Stdout: out, Stderr: out,
			Env: []string{"PROCESS_TEST_NETWORK=1"}, Isolation: iso, Launcher: executable,
		})
		if err != nil {
			t.Skipf("no namespaces: %v", err)
		}
		<-p.Done()
		said, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(said)
	}
	if got := look(false); got != "has lo; unreachable; itself unreachable\n" {
		t.Errorf("without a network: %q", got)
	}
	if got := look(true); got != "has lo, up; unreachable; itself reachable\n" {
		t.Errorf("with a loopback: %q", got)
	}
}

// tellNetwork says what there is of a network, and whether an address of the machine and
// one of its own can be reached.
func tellNetwork(address string) string {
	text := "has"
	all, err := net.Interfaces()
	if err != nil {
		return err.Error()
	}
	for _, i := range all {
		if text += " " + i.Name; i.Flags&net.FlagUp != 0 {
			text += ", up"
		}
	}
	reached := func(address string) string {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return "unreachable"
		}
		_ = conn.Close()
		return "reachable"
	}
	text += "; " + reached(address) + "; itself "
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return text + err.Error()
	}
	defer l.Close()
	return text + reached(l.Addr().String())
}
