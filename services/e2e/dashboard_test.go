package e2e_test

import (
	"context"
	"encoding/json"
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
)

// TestDashboard goes through the dashboard with a real browser (web/journeys): against a
// Berth with an app, an install and changes that wait. BERTH_JOURNEYS names files of
// journeys; without it the short ones run.
func TestDashboard(t *testing.T) {
	t.Parallel()
	chromium := chromiumOf(t)
	var s *system
	app := ""
	if os.Getenv("BERTH_SCREENSHOTS") != "" {
		s = start(t, "TF_CLI_CONFIG_FILE="+worldMirror(t))
		s.fleet()
	} else {
		s = start(t)
		in := s.probe("acme")
		in.change("seen in a browser")
		in.deploy(false, "one", "two", "three")
		app = in.app
	}
	bin, err := exec.Command("../../dev/scripts/npm.sh", "web").Output()
	if err != nil {
		t.Fatal(err)
	}
	vitest := filepath.Join(strings.TrimSpace(string(bin)), "vitest")
	stage := httptest.NewServer(s.stage())
	defer stage.Close()
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"run", "--config", "journeys/vitest.config.ts", "--reporter=default", "--reporter=json", "--outputFile.json=" + report}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, vitest, append(args, strings.Fields(os.Getenv("BERTH_JOURNEYS"))...)...)
	cmd.Dir = "../../web"
	cmd.Env = append(os.Environ(),
		"BERTH_URL="+s.api, "BERTH_TOKEN="+s.token(), "BERTH_BIN="+filepath.Join(s.bin, "berth"), "BERTH_CONTEXT=", "BERTH_ORG=",
		"BERTH_STAGE="+stage.URL, "BERTH_CHROMIUM="+chromium, "BERTH_APP="+app)
	out, failed := cmd.CombinedOutput()
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("vitest: %v\n%s", failed, out)
	}
	var files struct {
		TestResults []struct {
			Name             string
			Message          string
			AssertionResults []journey
		}
	}
	if err := json.Unmarshal(raw, &files); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files.TestResults {
		if len(file.AssertionResults) == 0 {
			t.Errorf("%s: %s", filepath.Base(file.Name), file.Message)
		}
		for _, j := range file.AssertionResults {
			ran++
			t.Run(strings.TrimSuffix(filepath.Base(file.Name), ".journey.ts")+"/"+j.Title, j.report)
		}
	}
	if failed != nil && !t.Failed() {
		t.Errorf("vitest: %v\n%s", failed, out)
	}
	t.Logf("%d journeys\n%s", ran, out) // with what they measured
}

// journey is how one of them went.
type journey struct {
	Title           string
	Status          string
	Duration        float64 // milliseconds
	FailureMessages []string
}

func (j journey) report(t *testing.T) {
	if j.Status != "passed" {
		t.Errorf("%s after %.1f s:\n%s", j.Status, j.Duration/1000, strings.Join(j.FailureMessages, "\n"))
	}
}

// chromiumOf finds the browser; a machine without one skips.
func chromiumOf(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("BERTH_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium: install it, or name one by BERTH_CHROMIUM")
	return ""
}

// stage stops and starts parts of the system for who asks: POST /stop/PART, /start/PART.
// A part that is stopped is frozen: its connections stay, and nobody answers; those of a
// part that is killed break, and the supervisor starts it again.
func (s *system) stage() http.Handler {
	mux := http.NewServeMux()
	for verb, sig := range map[string]syscall.Signal{"stop": syscall.SIGSTOP, "start": syscall.SIGCONT, "kill": syscall.SIGKILL} {
		mux.HandleFunc("POST /"+verb+"/{part}", func(w http.ResponseWriter, r *http.Request) {
			part, found := s.part(r.PathValue("part"))
			if !found {
				http.Error(w, "there is no such part", http.StatusNotFound)
				return
			}
			if err := syscall.Kill(part.PID, sig); err != nil {
				http.Error(w, fmt.Sprint(err), http.StatusInternalServerError)
			}
		})
	}
	return mux
}
