package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// registryProcess tells the executable of the registry's tests to be a registry.
const registryProcess = "BERTH_TEST_REGISTRY"

// server is a registry in a process of its own, on loopback.
type server struct {
	host, dir string
	process   *exec.Cmd
}

func serve(ctx context.Context, executable, dir string) (*server, error) {
	contents, err := os.MkdirTemp(dir, "registry-")
	if err != nil {
		return nil, err
	}
	where, err := json.Marshal(map[string]string{"Dir": contents})
	if err != nil {
		return nil, err
	}
	s := &server{dir: contents, process: exec.CommandContext(ctx, executable)}
	s.process.Env = append(os.Environ(), registryProcess+"="+string(where))
	s.process.Stderr = os.Stderr
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening http://"); ok {
			s.host = url
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s is not a registry", executable)
}

func (s *server) close() {
	if s != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// empty deletes everything that was pushed. The registry keeps nothing in memory.
func (s *server) empty() error { return os.RemoveAll(filepath.Join(s.dir, "docker")) }

// clockTick is the unit of processor times in /proc, on all of Linux.
const clockTick = 10 * time.Millisecond

// used is the processor time of the server until now, to 10 ms.
func (s *server) used() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12 // behind the name
	if len(fields) <= system {
		return 0
	}
	var ticks int
	for _, at := range []int{user, system} {
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
