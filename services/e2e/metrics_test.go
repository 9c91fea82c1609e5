package e2e_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestMetrics runs an action of an app twice and a script of no release once: what they
// write to BERTH_METRICS is what the command line and the API show, without the secret in it,
// and what is wrong with it fails nothing.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	err := os.WriteFile(filepath.Join(in.app, "actions", "count.toml"), []byte(`# action
name    = "count"
timeout = "20s"

[[triggers]]
type = "manual"

[[steps]]
name            = "rows"
inline_contents = """
echo run >> "$BERTH_INSTALL_DIR/counted"
cat >> "$BERTH_METRICS" <<END
# HELP rows Rows of a table.
# TYPE rows gauge
rows{table="a"} $(wc -l < "$BERTH_INSTALL_DIR/counted")
rows{table="b"} 7 1700000000000
# TYPE took histogram
took_bucket{le="+Inf"} 1
took_sum 0.25
took_count 1
END
"""

[[steps]]
name            = "secret"
inline_contents = """
echo "login{token=\\"$TOKEN\\"} 1" >> "$NUON_METRICS"
echo "this is $TOKEN and no number" >> "$BERTH_METRICS"
echo "ratio NaN" >> "$BERTH_METRICS"
"""

[steps.env_vars]
TOKEN = "{{ .nuon.inputs.inputs.canary }}"
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if out := s.must("metrics", "acme"); !strings.Contains(out, `echo 'queue_length 12' >> "$BERTH_METRICS"`) {
		t.Errorf("an install without numbers does not say how to write one:\n%s", out)
	}
	in.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "one").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	began := time.Now().UTC()
	for range 2 {
		s.must("actions", "run", "acme", "count", "--auto-approve")
	}
	file := filepath.Join(t.TempDir(), "disk.sh")
	if err := os.WriteFile(file, []byte(`echo 'disk_used_percent 42.5' > "$BERTH_METRICS"; exit 3`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errOut, code := s.run("actions", "run-script", "acme", file, "--auto-approve")
	if code == 0 || !strings.Contains(errOut, "numbers written: 1; see berth actions show arn_") {
		t.Errorf("a script that writes a number and fails: exit %d\n%s", code, errOut)
	}

	// The series, newest values first of all.
	var page ctlapi.MetricPage
	s.get("/installs/acme/metrics?recent=5", &page)
	got := map[string]float64{}
	for _, m := range page.Items {
		got[m.Series+" "+string(m.Kind)+" "+m.Action] = m.Value
		if m.At.Before(began.Add(-time.Minute)) || m.At.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s is of %s, want the time of its run", m.Series, m.At)
		}
	}
	want := map[string]float64{
		`rows{table="a"} gauge count`: 2, `rows{table="b"} gauge count`: 7, `login{token="(redacted)"} untyped count`: 1,
		`took_bucket{le="+Inf"} counter count`: 1, "took_sum counter count": 0.25, "took_count counter count": 1,
		"disk_used_percent untyped script/disk": 42.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if out := s.must("metrics", "acme", "--name", "rows"); !strings.Contains(out, `rows{table="a"}`) || !strings.Contains(out, "▁█") || strings.Contains(out, "disk") {
		t.Errorf("berth metrics:\n%s", out)
	}

	// The points of one, by its name with labels, and as steps.
	rows, err := csv.NewReader(strings.NewReader(s.must("metrics", "acme", `rows{table="a"}`, "-o", "csv"))).ReadAll()
	if err != nil || len(rows) != 3 || !slices.Equal(rows[0], []string{"at", "value", "run"}) || rows[1][1] != "2" || rows[2][1] != "1" {
		t.Errorf("points as CSV: %v, %v", rows, err)
	}
	if out := s.must("metrics", "acme", `rows{table="a"}`, "--step", "744h"); !strings.Contains(out, "rows{table=\"a\"}, gauge of action count: 2") || !strings.Contains(out, "Rows of a table.") {
		t.Errorf("steps:\n%s", out)
	}
	if out, errOut, code := s.run("metrics", "acme", "rows"); code != 64 || !strings.Contains(errOut, `rows{table="b"} of action count: ser_`) {
		t.Errorf("a name of two series: exit %d\n%s%s", code, out, errOut)
	}

	// The run says what it wrote, and what was left out.
	var runs ctlapi.ActionRunPage
	s.get("/action-runs?install=acme&action=count", &runs)
	if len(runs.Items) != 2 || rows[1][2] != runs.Items[0].ID {
		t.Fatalf("%d runs, the newest point is of %s", len(runs.Items), rows[1][2])
	}
	first := s.must("actions", "show", runs.Items[1].ID[:20]) // as a narrow table shows it
	for _, part := range []string{
		"numbers            6, some left out", `rows{table="a"}`, "a label of login has a secret in it, which was redacted",
		`step "secret": line 2 is not in the Prometheus text format; ratio is not a finite number`,
	} {
		if !strings.Contains(first, part) {
			t.Errorf("the run does not show %q:\n%s", part, first)
		}
	}
	var run ctlapi.ActionRun
	s.get("/action-runs/"+runs.Items[1].ID, &run)
	for _, m := range *run.Metrics {
		if m.Series == `rows{table="a"}` && m.Value != 1 {
			t.Errorf("the first run shows %v, which a later one wrote", m.Value)
		}
	}
	if run.State != "succeeded" {
		t.Errorf("the run is %s", run.State)
	}
	if log := s.must("logs", run.ID); !strings.Contains(log, "times in the file are not used") {
		t.Errorf("the log does not say that times are not used:\n%s", log)
	}
	for _, args := range [][]string{{"metrics", "acme", "-o", "json"}, {"metrics", "acme", "-o", "wide"}, {"logs", run.ID}} {
		if out := s.must(args...); strings.Contains(out, canary) {
			t.Errorf("%v shows the secret:\n%s", args, out)
		}
	}
}
