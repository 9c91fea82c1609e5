package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	s := start(t)
	in := s.probe("acme")
	in.change("seen in a browser")
	in.deploy(false, "one", "two", "three")
	s.journeys("journeys", "BERTH_CHROMIUM="+chromium)
}

// journeys runs those of a folder of web/ against this system, each as a test of its own.
// BERTH_WEB_REPORT names a file to which it adds a line for each.
func (s *system) journeys(folder string, env ...string) {
	t := s.t
	t.Helper()
	bin, err := exec.Command("../../dev/scripts/npm.sh", "web").Output()
	if err != nil {
		t.Fatal(err)
	}
	vitest := filepath.Join(strings.TrimSpace(string(bin)), "vitest")
	stage := httptest.NewServer(s.stage())
	defer stage.Close()
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"run", "--config", folder + "/vitest.config.ts", "--reporter=default", "--reporter=json", "--outputFile.json=" + report}
	ctx, cancel := context.WithTimeout(t.Context(), journeysTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, vitest, append(args, strings.Fields(os.Getenv("BERTH_JOURNEYS"))...)...)
	cmd.Dir = "../../web"
	cmd.Env = append(slices.Clone(s.env), "BERTH_URL="+s.api, "BERTH_TOKEN="+s.token(), "BERTH_BIN="+filepath.Join(s.bin, "berth"), "BERTH_STAGE="+stage.URL)
	cmd.Env = append(cmd.Env, env...)
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
	var ran []journey
	for _, file := range files.TestResults {
		if len(file.AssertionResults) == 0 {
			t.Errorf("%s: %s", filepath.Base(file.Name), file.Message)
		}
		for _, j := range file.AssertionResults {
			j.file = strings.TrimSuffix(filepath.Base(file.Name), ".journey.ts")
			ran = append(ran, j)
			t.Run(j.file+"/"+j.Title, j.report)
		}
	}
	if failed != nil && !t.Failed() {
		t.Errorf("vitest: %v\n%s", failed, out)
	}
	t.Logf("%d journeys\n%s", len(ran), out) // with what they measured
	if path := os.Getenv("BERTH_WEB_REPORT"); path != "" {
		if err := note(path, folder, ran); err != nil {
			t.Error(err)
		}
	}
}

// note adds lines for journeys to a report (dev/scripts/web-full.sh makes it a page).
func note(path, folder string, ran []journey) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, j := range ran {
		title := strings.ReplaceAll(j.Title, "|", `\|`)
		if _, err := fmt.Fprintf(f, "| %s/%s | %s | %.1f | %s |\n", strings.TrimPrefix(folder, "journeys/"), j.file, title, j.Duration/1000, j.Status); err != nil {
			return err
		}
	}
	return nil
}

// journeysTimeout is for all of a folder: a silent runner alone takes 11 minutes.
const journeysTimeout = 40 * time.Minute

// journey is how one of them went.
type journey struct {
	file            string
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
