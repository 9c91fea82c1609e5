package localpg_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/localpg"
)

// newCluster is in a folder that the server's user can reach.
func newCluster(t *testing.T) localpg.Cluster {
	t.Helper()
	bin, err := localpg.Find(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	as, err := localpg.ServerUser()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "berth-localpg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return localpg.Cluster{Bin: bin, Data: filepath.Join(dir, "data"), Socket: filepath.Join(dir, "socket"), User: as, Scratch: true}
}

func TestClusterFromNothingToKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)

	// What a killed initdb left is not taken for a data folder.
	if err := os.MkdirAll(c.Data+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Data+".new", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if fresh, err := c.Init(t.Context()); err != nil || fresh != want {
			t.Fatalf("Init: fresh %t, %v; want %t", fresh, err, want)
		}
	}
	if err := c.Ready(); err == nil {
		t.Error("ready before it was started")
	}

	server := c.Command("max_connections=10")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	for deadline := time.Now().Add(time.Minute); c.Ready() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%v\n%s", c.Ready(), text)
		}
	}
	if pid, ok := c.PID(); !ok || pid != server.Process.Pid {
		t.Errorf("PID: %d, %t; want %d", pid, ok, server.Process.Pid)
	}
	if err := server.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	if pid, ok := c.PID(); ok {
		t.Errorf("PID: %d after it was killed", pid)
	}
	if _, err := os.Stat(filepath.Join(c.Data, "postmaster.pid")); err != nil {
		t.Errorf("the case is not the one meant: %v", err)
	}
}

func TestDataOfAnotherVersionIsAProblem(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := os.Mkdir(c.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Data, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := c.Init(t.Context())
	var known *localpg.Problem
	if !errors.As(err, &known) || !strings.Contains(known.What, "is of Postgres 9") || !strings.Contains(known.Advice, "install Postgres 9") {
		t.Errorf("got %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name    string
		env     map[string]string
		want    string
		problem string
	}{
		{"the folder that is named", map[string]string{"BERTH_PG_BIN": dir, "PATH": "/bin"}, dir, ""},
		{"on PATH", map[string]string{"PATH": "/nowhere:" + dir}, dir, ""},
		{"what is named and not there is not replaced", map[string]string{"BERTH_PG_BIN": "/nowhere", "PATH": dir}, "", "BERTH_PG_BIN=/nowhere has no Postgres in it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := localpg.Find(func(name string) string { return tc.env[name] })
			var known *localpg.Problem
			if got != tc.want || errors.As(err, &known) != (tc.problem != "") {
				t.Fatalf("got %q, %v; want %q", got, err, tc.want)
			}
			if known != nil && (known.What != tc.problem || known.Advice == "") {
				t.Errorf("got %q, %q; want %q and what to do", known.What, known.Advice, tc.problem)
			}
		})
	}
}
