//go:build linux

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asBerth makes this test executable the program itself, for shells to run.
const asBerth = "BERTH_TEST_AS_BERTH"

func TestMain(m *testing.M) {
	if os.Getenv(asBerth) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// What is suggested after a space, and after the first letters.
func TestCompletion(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BERTH_URL": vendor(t).URL, "BERTH_TOKEN": "brt_x"}
	for line, want := range map[string][]string{
		"deploy ":              {"acme", "globex"},
		"deploy g":             {"globex"},
		"deploy acme/":         {"acme/web"},
		"deploy acme ":         {"web"},
		"deploy acme --to ":    {"2", "1"},
		"rollback acme --to ":  {"2", "1"},
		"approve ":             {"acme/web", "acme", "globex"},
		"approve chg_":         {"chg_01aaa"},
		"approve --all ":       {"acme/web", "acme", "globex"},
		"deny acme/":           {"acme/web"},
		"workflows cancel ":    {"acme", "globex"},
		"workflows watch wfl_": {"wfl_01aaa"},
		"apps show ":           {"hello"},
		"releases list ":       {"hello"},
		"releases show ":       {"hello@2", "hello@1"},
		"installs toggle acme": {"acme"},
		"installs list --app ": {"hello"},
		"installs create ":     nil,
		"logs ":                {"acme", "globex"},
		"installs stack acme ": nil,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := berth(t, env, append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
			lines := strings.Split(strings.TrimSpace(stdout), "\n")
			var got []string
			got = append(got, lines[:len(lines)-1]...) // the last says what the shell is to do
			if diff := cmp.Diff(want, got); diff != "" || code != 0 {
				t.Errorf("exit code %d (-want +got):\n%s\n%s", code, diff, stderr)
			}
		})
	}
}

// Somebody who presses Tab does not wait for a control plane that does not
// answer.
func TestCompletionDoesNotWait(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(never) })
	began := time.Now()
	code, stdout, stderr := berth(t, map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}, "__complete", "deploy", "")
	if took := time.Since(began); took > 10*time.Second || code != 0 || strings.HasPrefix(stdout, "acme") || strings.Contains(stderr, "waiting for Berth") {
		t.Errorf("after %s: exit code %d\n%s\n%s", took, code, stdout, stderr)
	}
}

// TestCompletionInShells presses Tab in the shells themselves.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		shell   string
		needs   string // a file that is there when completion works
		args    []string
		prepare string
	}{
		{"bash", "/usr/share/bash-completion/bash_completion", []string{"--norc", "--noprofile", "-i"}, ". /usr/share/bash-completion/bash_completion; . <(berth completion bash)"},
		{"zsh", "", []string{"-f", "-i"}, "autoload -U compinit; compinit -D -u; . <(berth completion zsh)"},
		{"fish", "", []string{"--no-config", "-i"}, "berth completion fish | source"},
	} {
		t.Run(tc.shell, func(t *testing.T) {
			t.Parallel()
			shell, err := exec.LookPath(tc.shell)
			if err == nil && tc.needs != "" {
				_, err = os.Stat(tc.needs)
			}
			if err != nil {
				t.Skip(err)
			}
			tab(t, shell, tc.args, tc.prepare)
		})
	}
}

// tab types what is to be completed into a shell on a terminal, and lets the shell
// print the line that came of it.
func tab(t *testing.T, shell string, args []string, prepare string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", asBerth, self)
	if err := os.WriteFile(filepath.Join(dir, "berth"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	screen, person := pty(t, 40)
	var seen reading
	go seen.from(person)
	cmd := exec.CommandContext(t.Context(), shell, args...)
	cmd.Env = []string{
		"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "LC_ALL=C.UTF-8",
		"BERTH_URL=" + vendor(t).URL, "BERTH_TOKEN=brt_x",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // fish wants a terminal of its own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	say := func(text string) {
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	say(prepare + "\r")
	say("echo rea''dy\r")
	seen.waitFor(t, "\nready")
	for begun, want := range map[string]string{
		"berth deploy g\t":        "berth deploy globex",
		"berth deploy acme \t":    "berth deploy acme web",
		"berth apps show \t":      "berth apps show hello",
		"berth approve acme/\t":   "berth approve acme/web",
		"berth releases list h\t": "berth releases list hello",
	} {
		say(begun)
		say("\x01echo 'GOT '\r") // in front of it, so that the line is printed, not run
		seen.waitFor(t, "\nGOT "+want)
	}
}
