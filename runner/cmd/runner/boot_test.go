package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/agent/versions"
)

// launchIn, set in the environment, has the test's own executable be an installed
// runner of that data directory.
const launchIn = "BERTH_TEST_LAUNCH"

func TestMain(m *testing.M) {
	if data := os.Getenv(launchIn); data != "" {
		beLauncher(data)
	}
	os.Exit(m.Run())
}

// beLauncher is the installed executable: it says "installed runs" where it is the one
// to run, else it ends as what it watched.
func beLauncher(data string) {
	own, code := launcher{
		store: versions.In(data), installed: os.Args[0], trialTime: 2 * time.Second,
		log: slog.New(slog.DiscardHandler),
	}.boot(context.Background())
	if own {
		fmt.Println("installed runs")
	}
	os.Exit(code)
}

// program installs a version whose runner is a shell script.
func program(t *testing.T, store versions.Store, v, script string) versions.Version {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{versions.RunnerName: "#!/bin/sh\n" + script, versions.EngineName: "engine of " + v} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made := versions.Version{Version: v}
	var err error
	if made.Runner, err = versions.DigestOf(filepath.Join(folder, versions.RunnerName)); err != nil {
		t.Fatal(err)
	}
	if made.Engine, err = versions.DigestOf(filepath.Join(folder, versions.EngineName)); err != nil {
		t.Fatal(err)
	}
	if err := store.Install(made, folder); err != nil {
		t.Fatal(err)
	}
	return made
}

// launch starts the installed executable and returns what it and what it started said.
func launch(t *testing.T, data string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "run")
	cmd.Env = append(os.Environ(), launchIn+"="+data, "DATA="+data)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

func TestLauncher(t *testing.T) {
	t.Parallel()
	const hangs = "exec sleep 60\n"
	for _, tc := range []struct {
		name   string
		trial  string // the program on trial, "" for none
		damage bool   // the trial's program is changed on disk
		boots  int
		said   string
		reason string // why the trial failed
	}{
		{name: "nothing on trial", said: "current runs"},
		{name: "it ends at once, twice", trial: "echo new runs; exit 3\n", said: "new runs\nnew runs\ncurrent runs", reason: "exit code 3"},
		{name: "it lacks something", trial: "no-such-program\n", said: "current runs", reason: "exit code 127"},
		{name: "it hangs", trial: hangs, said: "current runs", reason: "could not take work within 2s"},
		{name: "the machine went down in its only other try", trial: "echo new runs; exit 3\n", boots: 1, said: "new runs\ncurrent runs", reason: "exit code 3"},
		{name: "the machine went down twice", trial: hangs, boots: 2, said: "current runs", reason: "ended 2 times"},
		{name: "its file was changed", trial: hangs, damage: true, said: "current runs", reason: "executables were changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			store := versions.In(data)
			current := program(t, store, "1.4.0", "echo current runs\n")
			if err := errors.Join(store.Begin(current, "job_1", "1.3.0"), store.Confirm(current.Digest())); err != nil {
				t.Fatal(err)
			}
			if tc.trial != "" {
				next := program(t, store, "1.5.0", tc.trial)
				if err := store.Begin(next, "job_2", "1.4.0"); err != nil {
					t.Fatal(err)
				}
				for range tc.boots {
					if err := store.Boot(); err != nil {
						t.Fatal(err)
					}
				}
				if tc.damage {
					path := filepath.Join(store.Folder(next), versions.RunnerName)
					if err := errors.Join(os.Chmod(path, 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho mine runs\n"), 0o755)); err != nil {
						t.Fatal(err)
					}
				}
			}
			said, code := launch(t, data)
			if said != tc.said || code != 0 {
				t.Errorf("it said %q with exit code %d, want %q", said, code, tc.said)
			}
			state, err := store.Read()
			if err != nil {
				t.Fatal(err)
			}
			if _, reason := versions.OutcomeOf(state, "job_2"); state.Trial != nil || !strings.Contains(reason, tc.reason) || (reason == "") != (tc.reason == "") {
				t.Errorf("the trial failed because %q, want %q; state %+v", reason, tc.reason, state)
			}
		})
	}
}

// Whenever everything dies, the next start runs the version before or the new one.
func TestLauncherIsKilled(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	store := versions.In(data)
	current := program(t, store, "1.4.0", "echo current runs\n")
	next := program(t, store, "1.5.0", "echo $$ >\"$DATA/new\"; exec sleep 60\n")
	if err := errors.Join(store.Begin(current, "job_1", "1.3.0"), store.Confirm(current.Digest()), store.Begin(next, "job_2", "1.4.0")); err != nil {
		t.Fatal(err)
	}
	for boot := 1; boot <= versions.MaxBoots; boot++ {
		_ = os.Remove(filepath.Join(data, "new"))
		cmd := exec.CommandContext(t.Context(), os.Args[0], "run")
		cmd.Env = append(os.Environ(), launchIn+"="+data, "DATA="+data)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); ; {
			if _, err := os.Stat(filepath.Join(data, "new")); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the version on trial was not started")
			}
			time.Sleep(time.Millisecond)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		state, err := store.Read()
		if err != nil || state.Trial == nil || state.Trial.Boots != boot || *state.Current != current {
			t.Fatalf("after boot %d: %+v, %v", boot, state, err)
		}
	}
	if said, code := launch(t, data); said != "current runs" || code != 0 {
		t.Errorf("it said %q with exit code %d", said, code)
	}
}
