package look_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/runner-api/internal/look"
)

func TestRead(t *testing.T) {
	t.Parallel()
	clean := func(edit ...func(*jobspec.Drift)) *jobspec.Drift {
		d := &jobspec.Drift{Change: "chg_1", Looked: 3}
		for _, e := range edit {
			e(d)
		}
		return d
	}
	for _, tc := range []struct {
		name    string
		run     jobspec.Run
		bad     string // in the error
		failed  string
		nothing bool
	}{
		{name: "clean", run: jobspec.Run{State: "succeeded", Drift: clean()}},
		{name: "drifted", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) { d.Class, d.Digest, d.AtOnce = "real", "sha256:1", true })}},
		{name: "failed", run: jobspec.Run{State: "failed", Error: "no cluster"}, failed: "no cluster"},
		{name: "failed without a word", run: jobspec.Run{State: "failed"}, failed: "the look failed"},
		{name: "nothing found out", run: jobspec.Run{State: "succeeded"}, failed: "the runner found nothing out"},
		{name: "begun", run: jobspec.Run{State: "running"}, nothing: true},
		{name: "missed", run: jobspec.Run{State: "missed", Error: "asleep"}, nothing: true},
		{name: "drift of a failure", run: jobspec.Run{State: "failed", Drift: clean()}, bad: "found nothing"},
		{name: "of an action", run: jobspec.Run{Action: "nightly", State: "succeeded", Drift: clean()}, bad: "only a look"},
		{name: "no change", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) { d.Change = "" })}, bad: "which change"},
		{name: "another class", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) { d.Class, d.Digest = "controller", "sha256:1" })}, bad: "no drift is"},
		{name: "a class alone", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) { d.Class = "real" })}, bad: "not both"},
		{name: "at once without drift", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) { d.AtOnce = true })}, bad: "is drift"},
		{name: "too long", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) {
			d.Objects = []jobspec.DriftObject{{Address: strings.Repeat("x", jobspec.MaxDrift)}}
		})}, bad: "bytes, more than"},
		{name: "many counts", run: jobspec.Run{State: "succeeded", Drift: clean(func(d *jobspec.Drift) {
			d.Counts = map[string]int{}
			for i := range 100 {
				d.Counts[strings.Repeat("x", i)] = 1
			}
		})}, bad: "cannot be"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.run.Action == "" {
				tc.run.Action = "drift/web"
			}
			found, err := look.Read(tc.run)
			switch {
			case tc.bad != "":
				if err == nil || !strings.Contains(err.Error(), tc.bad) {
					t.Errorf("got %v", err)
				}
			case err != nil:
				t.Error(err)
			case (found == nil) != tc.nothing:
				t.Errorf("got %+v", found)
			case found != nil && found.Error != tc.failed || found != nil && tc.failed == "" && found.Change != "chg_1":
				t.Errorf("got %+v", found)
			}
		})
	}
}
