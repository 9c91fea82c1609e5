package up

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
)

// A part that dies at each start is started ever more slowly, is never called
// ready, and its status has the error that it ended with.
func TestCrashLoopShowsTheError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := openLedger(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	k := keep(Part{
		Name: "runner acme", Path: "/bin/sh", Args: []string{"-c", "echo 'berth-runner: chain.jsonl: record 7 is damaged' >&2; exit 7"},
		Dir: dir, Log: filepath.Join(dir, "runner.log"), Polite: syscall.SIGTERM, Grace: time.Second,
		Ready: func(context.Context) error { return nil },
	}, l, func(string) {})
	defer k.stop()
	began := time.Now()
	deadline := began.Add(30 * time.Second)
	for !k.Status().Looping && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	status := k.Status()
	if !status.Looping || !strings.HasPrefix(status.Last, "exit status 7") || !strings.Contains(status.LastLine, "record 7 is damaged") {
		t.Errorf("status = %+v, want a crash loop with the error", status)
	}
	if took := time.Since(began); took < 700*time.Millisecond { // 100 + 200 + 400
		t.Errorf("%d restarts within %s", status.Restarts, took)
	}
	s := &supervisor{keepers: []*keeper{k}, ledger: l}
	if got := s.status(t.Context()); got.Parts[0].Ready || got.Parts[0].Why == "" {
		t.Errorf("a part that keeps dying is called ready: %+v", got.Parts[0])
	}
}

// A restart ends the process before the next one starts, at once and without
// counting it as a death; it ends a crash loop's wait, and comes too late for a
// part that was stopped.
func TestRestartOfAPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := openLedger(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "part")
	write := func(script string) {
		t.Helper()
		if err := durable.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("exec sleep 600")
	k := keep(Part{
		Name: "ctl-api", Path: program, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Log: filepath.Join(dir, "ctl-api.log"),
		Polite: syscall.SIGTERM, Grace: 10 * time.Second, Ready: func(context.Context) error { return nil },
	}, l, func(string) {})
	defer k.stop()
	ready := func() int {
		t.Helper()
		if err := k.waitReady(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		return k.Status().PID
	}
	first := ready()
	if old := replaced([]*keeper{k}, l.read().Parts); len(old) != 0 {
		t.Error("just started, and its executable counts as replaced")
	}
	write("exec sleep 601")
	if old := replaced([]*keeper{k}, l.read().Parts); len(old) != 1 {
		t.Error("the executable was replaced, and it does not count")
	}
	if !k.restart(t.Context()) {
		t.Fatal("no new process")
	}
	if Alive(first) {
		t.Errorf("the old process (pid %d) runs on", first)
	}
	second := ready()
	if status := k.Status(); second == first || status.Restarts != 0 || status.Looping {
		t.Errorf("status = %+v, want another pid than %d and no death", status, first)
	}

	write("exit 1")
	if !k.restart(t.Context()) {
		t.Fatal("no new process")
	}
	for deadline := time.Now().Add(30 * time.Second); !k.Status().Looping; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never a crash loop")
		}
	}
	write("exec sleep 602")
	if !k.restart(t.Context()) {
		t.Fatal("no new process out of the crash loop")
	}
	ready()

	k.stop()
	if k.restart(t.Context()) {
		t.Error("a stopped part was restarted")
	}
}
