package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

func TestResume(t *testing.T) {
	t.Parallel()
	named := func(job string, attempt int) []session.Attempt {
		return []session.Attempt{{JobID: job, Attempt: attempt}}
	}
	tests := []struct {
		name    string
		leased  session.Leased
		running []session.Attempt
		want    session.Fate
	}{
		{"a plan that still runs is resumed", session.Leased{JobID: "j", Attempt: 1}, named("j", 1), session.Resumed},
		{"an apply that still runs is resumed", session.Leased{JobID: "j", Attempt: 1, Mutates: true}, named("j", 1), session.Resumed},
		{"a dead plan is queued again", session.Leased{JobID: "j", Attempt: 2}, nil, session.Requeued},
		{"a plan that died three times has failed", session.Leased{JobID: "j", Attempt: 3}, nil, session.Exhausted},
		{"a dead plan that was to be cancelled is", session.Leased{JobID: "j", Attempt: 1, CancelRequested: true}, nil, session.Cancelled},
		{"a dead apply is uncertain", session.Leased{JobID: "j", Attempt: 1, Mutates: true}, nil, session.Uncertain},
		{"a dead apply is uncertain also when it was to be cancelled", session.Leased{JobID: "j", Attempt: 1, Mutates: true, CancelRequested: true}, nil, session.Uncertain},
		{"another attempt of the same job proves nothing", session.Leased{JobID: "j", Attempt: 2, Mutates: true}, named("j", 1), session.Uncertain},
		{"another job proves nothing", session.Leased{JobID: "j", Attempt: 1}, named("k", 1), session.Requeued},
		{"an apply whose resource was granted again is not resumed", session.Leased{JobID: "j", Attempt: 1, Mutates: true, Superseded: true}, named("j", 1), session.Uncertain},
		{"a running attempt may still be cancelled later", session.Leased{JobID: "j", Attempt: 1, CancelRequested: true}, named("j", 1), session.Resumed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := session.Resume([]session.Leased{tt.leased}, tt.running)
			if diff := cmp.Diff([]session.Fate{tt.want}, got); diff != "" {
				t.Errorf("Resume(%+v, %v) (-want +got):\n%s", tt.leased, tt.running, diff)
			}
		})
	}
}

func TestResumeKeepsTheOrder(t *testing.T) {
	t.Parallel()
	leased := []session.Leased{{JobID: "a", Attempt: 1}, {JobID: "b", Attempt: 1, Mutates: true}, {JobID: "c", Attempt: 1}}
	got := session.Resume(leased, []session.Attempt{{JobID: "c", Attempt: 1}, {JobID: "unknown", Attempt: 1}})
	want := []session.Fate{session.Requeued, session.Uncertain, session.Resumed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
