package tfstates_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/services/ctl-api/internal/tfstates"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestMayFree(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		held tfstates.Held
		want string // part of the refusal
	}{
		{"the job runs", tfstates.Held{JobID: "j", JobState: model.JobLeased}, "job j, which holds the lock, is still running"},
		{"the job waits to be given out again", tfstates.Held{JobID: "j", JobState: model.JobQueued}, "waits for the runner"},
		{"the job has failed", tfstates.Held{JobID: "j", JobState: model.JobFailed}, ""},
		{"the job was cancelled", tfstates.Held{JobID: "j", JobState: model.JobCancelled}, ""},
		{"its change is not settled yet", tfstates.Held{JobID: "j", JobState: model.JobSucceeded, LockedBy: "chg"}, "change chg is being applied"},
	} {
		err := tfstates.MayFree(tc.held)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !errors.Is(err, fault.ErrConflict)) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestHolder(t *testing.T) {
	t.Parallel()
	who, operation := tfstates.Holder([]byte(`{"ID":"x","Who":"berth@machine","Operation":"OperationTypeApply"}`))
	if who != "berth@machine" || operation != "OperationTypeApply" {
		t.Errorf("%q, %q", who, operation)
	}
	if who, _ := tfstates.Holder([]byte(`{"Who":"` + strings.Repeat("x", 5000) + `"}`)); len(who) > 200 {
		t.Errorf("%d bytes are shown", len(who))
	}
	if who, _ := tfstates.Holder([]byte(`[]`)); who != "" {
		t.Errorf("%q", who)
	}
}

// A runner of an earlier version counts only; one that writes nonsense tells nothing.
func TestRead(t *testing.T) {
	t.Parallel()
	if s := tfstates.Read([]byte(`{"resources":{"a":2}}`)); s.Level != tfstate.Counts || s.Resources["a"] != 2 {
		t.Errorf("%+v", s)
	}
	if s := tfstates.Read([]byte(`{"resources":1}`)); s.Level != tfstate.Counts || s.Resources != nil {
		t.Errorf("%+v", s)
	}
	if s := tfstates.Read([]byte(`{"level":"attributes","objects":[{"address":"a.b"}]}`)); s.Level != tfstate.Attributes || len(s.Objects) != 1 {
		t.Errorf("%+v", s)
	}
	if s := tfstates.Read([]byte(`{"level":"everything"}`)); s.Level != tfstate.Counts {
		t.Errorf("%+v", s)
	}
}
