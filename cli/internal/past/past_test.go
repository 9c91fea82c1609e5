package past

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.FixedZone("CET", 3600))

func TestVersionOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"7": "7", "1h": "2026-11-26T10:00:00Z", "": ""} {
		if got, err := versionOf("--at", text, noon); err != nil || got != want {
			t.Errorf("%q is version or time %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestBeforeFailureText(t *testing.T) {
	t.Parallel()
	entry := func(text, actor string, ago time.Duration) ctlapi.TimelineEntry {
		e := ctlapi.TimelineEntry{Text: text, At: noon.Add(-ago)}
		if actor != "" {
			e.Actor = &actor
		}
		return e
	}
	failure, good := entry("deploy of api failed: exit status 1", "", time.Minute), entry("deploy #4 (release 2) succeeded", "ada", 3*time.Hour)
	inputs := entry("inputs set, version 3: size", "bob", time.Hour)
	found := &ctlapi.BeforeFailure{Failure: &failure, Good: &good, Suspects: []ctlapi.Suspect{
		{Text: "release 2 became 3: api", Why: "it changes api, which failed", Weight: 95, At: &failure.At},
		{Text: inputs.Text, Why: "a workflow that followed took them", Weight: 80, At: &inputs.At, Entry: &inputs, Changes: &[]ctlapi.TreeChange{
			{Path: "inputs.values.size", Op: "changed", Old: new(json.RawMessage(`"1"`)), New: new(json.RawMessage(`"2"`))},
		}},
	}}
	p := printing{install: "acme", age: func(at time.Time) string { return noon.Sub(at).String() }}
	var text strings.Builder
	for _, f := range []*ctlapi.BeforeFailure{found, {Failure: &failure, Suspects: []ctlapi.Suspect{}}, {Suspects: []ctlapi.Suspect{}}} {
		if err := writeBeforeFailure(&text, f, p); err != nil {
			t.Fatal(err)
		}
		text.WriteString("\n")
	}
	goldentest.File(t, "testdata/before_failure.txt", text.String())
}

func TestSnapshotText(t *testing.T) {
	t.Parallel()
	s := &ctlapi.Snapshot{
		At: noon, Release: &ctlapi.NumberRef{Number: 3}, Config: new(5), StateVersion: 7,
		Install: ctlapi.SnapshotInstall{Name: "acme", State: "live", ApprovalOption: "prompt", ApprovalHours: 720, Labels: ctlapi.Labels{"tier": "gold"},
			ComponentToggles: map[string]bool{"cache": false, "api": true}},
		Inputs:    ctlapi.SnapshotInputs{Version: 2, SetBy: new("ada"), Values: map[string]string{"size": "1", "key": "(sealed)"}},
		Runner:    &ctlapi.SnapshotRunner{Online: true, Version: "v1", Switch: "pause", SwitchReason: new("month end")},
		Approvals: []ctlapi.SnapshotApproval{{ChangeID: "chg_1", Kind: "deploy", Resource: new("api")}},
	}
	var text strings.Builder
	writeSnapshot(&text, s)
	goldentest.File(t, "testdata/snapshot.txt", text.String())
}

func TestSides(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		diff bool
		ok   bool
	}{
		{[]string{"acme"}, false, true},
		{[]string{"acme", "1"}, false, false},
		{[]string{"acme"}, true, false},
		{[]string{"acme", "1"}, true, true},
		{[]string{"acme", "1", "2"}, true, true},
	} {
		if diff := cmp.Diff(tc.ok, sides(tc.args, tc.diff) == nil); diff != "" {
			t.Errorf("%v --diff=%v:\n%s", tc.args, tc.diff, diff)
		}
	}
}
