package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestRehearsal installs an app that is written for AWS on one machine: what needs
// the cloud is rehearsed and says so, the rest is real, and all of it can be removed.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	s := start(t)
	recorded := t.TempDir()
	if err := os.WriteFile(filepath.Join(recorded, "sandbox.json"), []byte(`{"cluster": {"name": "prod-1"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(recorded, "report.json")
	out := s.must("rehearse", "testdata/rehearsal", "--app", "cloudy", "--name", "trial", "--stack-output", "vpc_id=vpc-mine", "--recorded", recorded, "--report", file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Kinds map[string]map[string]int `json:"totals_by_kind"`
		Lines []struct{ Name, Kind, Verdict, Why, Plan string }
		Hosts []struct{ Name string }
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	// The note and the script are real; the bucket is mocked or not planned, by whether
	// the provider can be had.
	n := map[string]int{}
	for _, kind := range []string{"sandbox", "component", "action"} {
		for verdict, count := range report.Kinds[kind] {
			n[verdict] += count
		}
	}
	if n["real"] != 2 || n["mocked"]+n["not planned"] != 2 || n["failed"] != 0 || !strings.Contains(out, " real, ") {
		t.Errorf("the report says %s\n%s", out, raw)
	}
	if !slices.ContainsFunc(report.Hosts, func(h struct{ Name string }) bool { return h.Name == "registry.terraform.io" }) {
		t.Errorf("hosts %v", report.Hosts)
	}
	for _, line := range report.Lines {
		if works := line.Kind == "sandbox" || line.Kind == "component"; works && line.Verdict != "real" && (line.Why == "" || !strings.HasPrefix(line.Plan, "Rehearsed (")) {
			t.Errorf("%s is %s: %q\n%s", line.Name, line.Verdict, line.Why, line.Plan)
		}
	}
	var in ctlapi.Install
	s.get("/installs/trial", &in)
	if in.State != ctlapi.InstallStateRehearsed || in.Rehearsal == nil || in.Rehearsal.Platform != ctlapi.RehearsalPlatformAws {
		t.Fatalf("the install is %s, %+v", in.State, in.Rehearsal)
	}
	for path, want := range map[string]string{
		"install_stack.outputs.vpc_id": `given "vpc-mine"`, "sandbox.outputs.cluster.name": `recorded "prod-1"`,
		"cloud_account.aws.region": `made_up "us-west-2"`, "install_stack.outputs.account_id": `made_up "000000000000"`,
	} {
		at := slices.IndexFunc(in.Rehearsal.Outputs, func(o ctlapi.RehearsalOutput) bool { return o.Path == path })
		if at < 0 {
			t.Errorf("nothing is said of %s", path)
		} else if o := in.Rehearsal.Outputs[at]; string(o.Source)+" "+string(o.Value) != want {
			t.Errorf("%s is %s %s, want %s", path, o.Source, o.Value, want)
		}
	}
	var page ctlapi.ResourcePage
	s.get("/installs/trial/resources", &page)
	for _, r := range page.Items {
		var outputs map[string]struct{ Value json.RawMessage }
		if err := json.Unmarshal(r.Outputs, &outputs); err != nil {
			t.Fatal(err)
		}
		switch r.Name {
		case "sandbox":
			if r.State != ctlapi.ResourceStateRehearsed || r.Rehearsed == nil || r.Rehearsed.How != ctlapi.RehearsedHowStandIn {
				t.Errorf("the sandbox is %s, %+v", r.State, r.Rehearsed)
			}
		case "bucket": // mocked where the provider can be had
			if r.State != ctlapi.ResourceStateRehearsed || r.Rehearsed == nil || !slices.Equal(r.Rehearsed.Providers, []string{"hashicorp/aws"}) ||
				r.Rehearsed.How == ctlapi.RehearsedHowNotPlanned && !slices.Equal(r.Rehearsed.Unreachable, []string{"hashicorp/aws"}) {
				t.Errorf("the bucket is %s, %+v", r.State, r.Rehearsed)
			}
		case "note":
			if want := `"prod-1 3 arn:aws:s3:::rehearsal-bucket-arn vpc-mine"`; r.State != ctlapi.ResourceStateLive || r.Rehearsed != nil || string(outputs["text"].Value) != want {
				t.Errorf("the note is %s, %+v: %s, want %s", r.State, r.Rehearsed, outputs["text"].Value, want)
			}
		}
	}
	if out := s.must("installs", "state", "trial"); !strings.Contains(out, `"source": "made_up"`) {
		t.Errorf("the state is\n%s", out)
	}
	if out := s.must("installs", "show", "trial"); !strings.Contains(out, "this is a rehearsal, of an app for aws") || !strings.Contains(out, "◇ rehearsed") {
		t.Errorf("it is shown as\n%s", out)
	}
	if out := s.must("status"); !strings.Contains(out, "◇ rehearsed") {
		t.Errorf("its status is\n%s", out)
	}
	var w ctlapi.Workflow
	s.post("/installs/trial/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": "trial"}, &w)
	i := &install{system: s, name: "trial", id: in.ID}
	if got := i.finished(w.ID, time.Minute); got.State != "succeeded" {
		t.Fatalf("deprovision: %s", i.explain(got))
	}
	s.get("/installs/trial", &in)
	if in.State != ctlapi.InstallStateDeprovisioned {
		t.Errorf("at the end it is %s", in.State)
	}
}
