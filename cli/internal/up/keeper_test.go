package up

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
