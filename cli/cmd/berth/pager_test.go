//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// pty is a terminal: what is written to the one end comes out of the other.
func pty(t *testing.T, rows uint16) (screen, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return screen, person
}

// reading collects what is on a screen.
type reading struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *reading) from(f *os.File) {
	buffer := make([]byte, 4096)
	for {
		n, err := f.Read(buffer)
		r.mu.Lock()
		r.text.Write(buffer[:n])
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (r *reading) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.ReplaceAll(r.text.String(), "\r\n", "\n")
}

func (r *reading) waitFor(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(r.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not on the screen:\n%s", text, r)
		}
	}
}

// TestApprovingOnATerminal: what does not fit goes through the pager, whole; the
// digest and the question are in sight after it; the answer approves that digest.
func TestApprovingOnATerminal(t *testing.T) {
	t.Parallel()
	const effect = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for _, tc := range []struct {
		name    string
		lines   int
		missing int64
		env     map[string]string
		args    []string
		paged   bool
		asked   string
	}{
		{name: "long", lines: 100, paged: true, asked: "\nApprove? [y]es"},
		{name: "short", lines: 3, asked: "\nApprove? [y]es"},
		{name: "long, with --no-pager", lines: 100, args: []string{"--no-pager"}, asked: "\nApprove? [y]es"},
		{name: "long, with NO_PAGER", lines: 100, env: map[string]string{"NO_PAGER": "1"}, asked: "\nApprove? [y]es"},
		{name: "a pager that is not there", lines: 100, env: map[string]string{"PAGER": "/no/such/pager"}, asked: "\nApprove? [y]es"},
		{name: "not all is shown", lines: 100, missing: 77, paged: true, asked: "\n77 bytes of it are not shown. Approve anyway?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := strings.Repeat("echo line\x1b[2J\n", tc.lines) + "echo last\n"
			change := ctlapi.Change{
				ID: "chg_1", State: ctlapi.ChangeStateProposed, Kind: ctlapi.ChangeKindScript, Install: ctlapi.Ref{Name: "acme"}, EffectDigest: new(string),
				Plan: &ctlapi.PlanSummary{NotShownBytes: tc.missing, Objects: []ctlapi.ObjectChange{{Address: "db/migrate", Action: "run", Fields: []ctlapi.FieldChange{{Path: "script", After: text}}}}},
			}
			*change.EffectDigest = effect
			decided := make(chan ctlapi.DecisionRequest, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodPost {
					var body ctlapi.DecisionRequest
					_ = json.NewDecoder(r.Body).Decode(&body)
					decided <- body
					w.WriteHeader(http.StatusCreated)
				}
				_ = json.NewEncoder(w).Encode(change)
			}))
			t.Cleanup(server.Close)
			// A pager that keeps what it was given, and needs nobody to leave it.
			env := map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "bat_x", "HOME": dir, "NO_COLOR": "1", "PAGER": "cat > " + filepath.Join(dir, "paged")}
			for name, value := range tc.env {
				env[name] = value
			}
			screen, person := pty(t, 40)
			var seen reading
			go seen.from(person)
			code := make(chan int, 1)
			go func() {
				args := append([]string{"approve", "chg_1"}, tc.args...)
				code <- run(t.Context(), args, command.Streams{In: screen, Out: screen, Err: screen}, func(name string) string { return env[name] })
			}()
			seen.waitFor(t, tc.asked)
			if ahead, _, _ := strings.Cut(seen.String(), tc.asked); !strings.HasSuffix(strings.TrimRight(ahead, "\n"), "  effect "+effect) {
				t.Errorf("the digest is not right before the question:\n%s", ahead)
			}
			whole := seen.String()
			if tc.paged {
				paged, err := os.ReadFile(filepath.Join(dir, "paged"))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(whole, "echo last") {
					t.Error("it was paged, and printed too")
				}
				whole = string(paged)
			}
			if n := strings.Count(whole, "echo line⟨U+001B⟩[2J\n"); n != tc.lines || !strings.Contains(whole, "│ echo last\n") || strings.Contains(whole, "\x1b") {
				t.Errorf("%d of %d lines are shown:\n%s", n, tc.lines, whole)
			}
			if _, err := person.WriteString("y\n"); err != nil {
				t.Fatal(err)
			}
			if body := <-decided; body.EffectDigest != effect || body.Answer != ctlapi.DecisionAnswerApprove {
				t.Errorf("decided %+v", body)
			}
			if got := <-code; got != command.ExitOK {
				t.Errorf("exit code %d:\n%s", got, seen.String())
			}
		})
	}
}
