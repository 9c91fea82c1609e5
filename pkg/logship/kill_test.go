package logship_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
)

// With these set, the test binary is an agent that ships one file. Its standard
// input is open as long as the engine writes.
const (
	envSpool = "LOGSHIP_TEST_SPOOL"
	envFile  = "LOGSHIP_TEST_FILE"
	envURL   = "LOGSHIP_TEST_URL"
)

func TestMain(m *testing.M) {
	if os.Getenv(envSpool) == "" {
		os.Exit(m.Run())
	}
	if err := agent(); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func agent() error {
	client, err := logapi.NewClientWithResponses(os.Getenv(envURL))
	if err != nil {
		return err
	}
	spool, err := logship.OpenSpool(os.Getenv(envSpool), logship.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	shipped := make(chan error, 1)
	go func() {
		sink := logship.HTTPSink{Client: client, Stream: "str_test", Token: func() string { return "blt_test" }}
		shipped <- logship.Shipper{Spool: spool, Sink: sink, Interval: time.Millisecond}.Run(ctx)
	}()
	if !spool.Position().Final {
		ended := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(ended) }()
		if err := (logship.Tail{Spool: spool, Path: os.Getenv(envFile), Source: logship.Stdout}).Run(ctx, ended); err != nil {
			return err
		}
		if err := spool.Finish(); err != nil {
			return err
		}
	}
	if err := <-shipped; err != nil {
		return err
	}
	return spool.Remove()
}

// An agent that is killed again and again while it follows a growing file
// brings every line exactly once, also when replies get lost.
func TestKilledAgentBringsEveryLineOnce(t *testing.T) {
	t.Parallel()
	const lines, kills = 40_000, 12
	to := newStream()
	to.fault = func(call int) (error, bool) {
		switch call % 7 {
		case 2:
			return errors.New("reply lost"), true
		case 5:
			return errors.New("away"), false
		}
		return nil, false
	}
	server := httptest.NewServer(to)
	defer server.Close()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	start := func() (*exec.Cmd, io.Closer) {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envSpool+"="+filepath.Join(dir, "spool"), envFile+"="+file.Name(), envURL+"="+server.URL)
		cmd.Stderr = os.Stderr
		engine, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, engine
	}

	var rest []byte
	written := 0
	write := func(upTo int) {
		t.Helper()
		for ; written < upTo; written++ {
			rest = fmt.Appendf(rest, "line %d\n", written+1)
		}
		for len(rest) > 0 { // in pieces that respect no line end
			n := min(1+rand.IntN(3000), len(rest))
			if upTo < lines && n == len(rest) {
				n = max(1, n-3) // leave the end of a line for later
			}
			if _, err := file.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			if rest = rest[n:]; upTo < lines && len(rest) <= 3 {
				return
			}
		}
	}

	for kill := range kills {
		cmd, engine := start()
		share := lines / (kills + 1)
		write(kill*share + share/2)
		to.wait(t, kill*share+rand.IntN(share/2)) // somewhere in the middle of its work
		write((kill + 1) * share)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		_ = engine.Close()
	}
	write(lines)
	cmd, engine := start()
	_ = engine.Close() // the engine has ended while no agent looked
	if err := cmd.Wait(); err != nil {
		t.Fatalf("last agent: %v", err)
	}

	wantLines(t, to.texts(), lines)
	if to.end == nil || to.end.TotalLines != lines || to.end.Hash != to.head.Hash {
		t.Errorf("end: got %+v, want %d lines and hash %v", to.end, lines, to.head.Hash)
	}
	if _, err := os.Stat(filepath.Join(dir, "spool")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("spool after the end: got %v, want none", err)
	}
}
