package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// drillReport is as much as the tests read of `berth-runner drill -o json`.
type drillReport struct {
	Isolated bool `json:"isolated"`
	Attacks  []struct {
		Name, Verdict, Rule, Error string
	} `json:"attacks"`
	Allowed []struct {
		Name, Verdict, Rule, Error string
	} `json:"allowed"`
}

// drill runs the drill of a berth-runner.
func drill(t *testing.T, runner string, env []string, args ...string) (r drillReport, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), runner, append([]string{"drill", "--output", "json", "--scratch", home(t)}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if bad := json.Unmarshal(out.Bytes(), &r); bad != nil {
		t.Fatalf("%v, %v: %s%s", err, bad, out.Bytes(), errs.Bytes())
	}
	return r, err
}

// TestDrill: the shipped executables refuse every attack of the drill, and do what is
// allowed.
func TestDrill(t *testing.T) {
	t.Parallel()
	report := filepath.Join(home(t), "drill.md")
	r, err := drill(t, filepath.Join(executables(t), "berth-runner"), nil, "--report", report)
	if err != nil {
		t.Error(err)
	}
	for _, a := range r.Attacks {
		if a.Verdict != "refused" || a.Rule == "" {
			t.Errorf("%s: %s %s %s", a.Name, a.Verdict, a.Rule, a.Error)
		}
	}
	for _, a := range r.Allowed {
		if a.Verdict != "succeeded" {
			t.Errorf("what is allowed does not work: %s: %s %s", a.Name, a.Rule, a.Error)
		}
	}
	if len(r.Attacks) < 45 || len(r.Allowed) < 10 || !r.Isolated {
		t.Errorf("%d attacks in %d scenes, isolated %v", len(r.Attacks), len(r.Allowed), r.Isolated)
	}
	text, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(text), "| consent-missing |") {
		t.Errorf("the report: %s, %v", text, err)
	}
}

// openDoors are defences that a runner can be built without, each with an attack that then
// has its effect.
var openDoors = map[string]string{
	"order-signature":    "order-by-a-stranger",
	"order-spec":         "order-for-another-spec",
	"order-lifetime":     "order-of-yesterday",
	"order-once":         "order-again",
	"effect-once":        "change-twice",
	"effect-digest":      "change-with-another-effect",
	"fence":              "change-with-another-fence",
	"scripts":            "script-never-accepted",
	"vendor-key":         "release-unsigned",
	"consent":            "consent-missing",
	"guardrails":         "guardrail-asks",
	"roles":              "role-off",
	"switch":             "switch-read-only",
	"hosts":              "host-of-the-logs",
	"seal-purpose":       "seal-of-another-install",
	"redaction":          "secret-in-the-log",
	"chain-heads":        "chain-cut",
	"settings-signature": "settings-by-a-stranger",
	"settings-version":   "settings-of-before",
}

// TestDrillFindsOpenDoors: with one defence turned off, in an executable that is built for
// that, the attack that it refuses has its effect, and the drill says so.
func TestDrillFindsOpenDoors(t *testing.T) {
	t.Parallel()
	bin := home(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", "weakened", "-o", filepath.Join(bin, "berth-runner"), "./cmd/runner")
	build.Dir, build.Env = filepath.Join("..", "..", "runner"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"berth-engine", "berth-policy"} {
		from, err := filepath.Abs(filepath.Join(executables(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for defence, attack := range openDoors {
		t.Run(defence, func(t *testing.T) {
			t.Parallel()
			r, err := drill(t, filepath.Join(bin, "berth-runner"), []string{"BERTH_WEAKENED=" + defence}, "--only", attack)
			if err == nil || len(r.Attacks) != 1 || r.Attacks[0].Verdict != "succeeded" {
				t.Errorf("%s: %+v, %v; want it to succeed, and the drill to say so", attack, r.Attacks, err)
			}
		})
	}
}
