package alertwatch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// Somebody is told in the last quarter of a life, and not earlier than a day before its end.
func TestOfEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what          string
		age, left     time.Duration
		seen          alerts.Seen
		turns         time.Duration // from now
		subject, text string
	}{
		{"settings", 5 * 24 * time.Hour, 48 * time.Hour, alerts.Good, 24 * time.Hour, "settings it", ""},
		{"settings", 6 * 24 * time.Hour, 24 * time.Hour, alerts.Bad, 0, "settings it", "the runner's signed settings end at 2026-11-28T12:00:00Z, and were not renewed"},
		{"role", 40 * time.Minute, 20 * time.Minute, alerts.Good, 5 * time.Minute, "role it", ""},
		{"role", 45 * time.Minute, 15 * time.Minute, alerts.Bad, 0, "role it", "the role it goes off at 2026-11-27T12:15:00Z"},
		{"role", 2 * time.Hour, -time.Hour, alerts.Bad, 0, "role it", ""},
		{"enrolment", time.Hour, 0, alerts.Bad, 0, "enrolment it", "no machine has enrolled, and the enrolment secret ends at 2026-11-27T12:00:00Z"},
		{"consent", time.Hour, 0, alerts.Bad, 0, "consent it", "the customer's consent to it, which is not carried out yet, ends at 2026-11-27T12:00:00Z"},
		{"override", time.Hour, 0, alerts.Bad, 0, "override it", "the override of policies for it, which is not carried out yet, ends at 2026-11-27T12:00:00Z"},
		{"statement", time.Hour, 0, alerts.Bad, 0, "statement it", "what the vendor signed of it ends at 2026-11-27T12:00:00Z"},
	} {
		got := ofEnd(ctldb.EndsToAlertRow{What: tt.what, Name: "it", Starts: now.Add(-tt.age), Ends: now.Add(tt.left)}, now)
		turns := time.Time{}
		if tt.turns != 0 {
			turns = now.Add(tt.turns)
		}
		if got.Seen != tt.seen || !got.Turns.Equal(turns) || got.Subject != tt.subject || tt.text != "" && got.Text != tt.text {
			t.Errorf("%s, %s old, %s left: %+v", tt.what, tt.age, tt.left, got)
		}
	}
}

func TestOfWorkflow(t *testing.T) {
	t.Parallel()
	denied := model.EndedDenied
	for _, tt := range []struct {
		state model.WorkflowState
		ended *model.Ended
		want  alerts.Seen
	}{
		{model.WorkflowSucceeded, nil, alerts.Good},
		{model.WorkflowFailed, nil, alerts.Bad},
		{model.WorkflowFailed, &denied, alerts.Good}, // nothing broke
		{model.WorkflowRunning, nil, alerts.Unknown}, // a retry
		{model.WorkflowWaiting, nil, alerts.Unknown},
		{model.WorkflowQueued, nil, alerts.Unknown},
		{model.WorkflowCancelled, nil, alerts.Unknown},
	} {
		row := ctldb.WorkflowsToAlertRow{About: "changes", Number: 4, Kind: "input_update", State: tt.state, Ended: tt.ended, ReleaseID: "rel_1", FailedStep: "component/web", FinishedAt: &now}
		want := alerts.Observation{
			Kind: model.AlertWorkflowFailed, Subject: "changes", Seen: tt.want, Since: now, Text: "input update #4 failed at component/web",
			Cause: alerts.Cause{Of: "component/web", ReleaseID: "rel_1"},
		}
		if row.Superseded = true; tt.want == alerts.Bad && ofWorkflow(row).Seen != alerts.Unknown {
			t.Error("one that gave way to a newer one failed")
		}
		row.Superseded = false
		if diff := cmp.Diff(want, ofWorkflow(row)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.state, diff)
		}
	}
}

// Each workflow has one alert, about the step that has waited longest.
func TestOfWaits(t *testing.T) {
	t.Parallel()
	wait := func(number int32, step string, reason model.WaitReason, ago time.Duration) ctldb.WaitsToAlertRow {
		return ctldb.WaitsToAlertRow{Number: number, Kind: "deploy", Name: step, WaitReason: &reason, Since: now.Add(-ago)}
	}
	got := ofWaits([]ctldb.WaitsToAlertRow{
		wait(4, "component/a", model.WaitDecision, time.Hour), wait(4, "component/b", model.WaitConsent, 2*time.Hour), wait(5, "secrets", model.WaitSecret, time.Minute),
	})
	var text []string
	for _, o := range got {
		text = append(text, o.Subject+": "+o.Text)
	}
	if diff := cmp.Diff([]string{
		"deploy #4: deploy #4 waits at component/b for the customer's consent since 2026-11-27T10:00:00Z",
		"deploy #5: deploy #5 waits at secrets for the customer to set a secret since 2026-11-27T11:59:00Z",
	}, text); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestOfVerdict(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[model.Verdict]alerts.Seen{model.Healthy: alerts.Good, model.Unhealthy: alerts.Bad, model.Unknown: alerts.Unknown} {
		if got := ofVerdict(ctldb.VerdictsToAlertRow{Name: "answers", Verdict: verdict}, "rel_1"); got.Seen != want || got.Cause.ReleaseID != "rel_1" {
			t.Errorf("%s: %+v", verdict, got)
		}
	}
	// What is live in the component counts, and not what the install is to have.
	if got := ofVerdict(ctldb.VerdictsToAlertRow{Name: "component/web", Verdict: model.Unhealthy, ReleaseID: "rel_0"}, "rel_1"); got.Cause != (alerts.Cause{Of: "component/web", ReleaseID: "rel_0"}) {
		t.Errorf("the cause is %+v", got.Cause)
	}
}

// Names are of customers and of apps: whatever they are, the rows take them, and one subject
// has one alert.
func TestDistinct(t *testing.T) {
	t.Parallel()
	role := func(name string, seen alerts.Seen) alerts.Observation {
		return alerts.Observation{Kind: model.AlertExpiring, Subject: name, Text: strings.Repeat("é", 2000), Seen: seen, Cause: alerts.Cause{Of: name}}
	}
	got := distinct([]alerts.Observation{role("a", alerts.Good), role("a", alerts.Bad), role("a", alerts.Unknown), role(strings.Repeat("é", 501), alerts.Bad), role(strings.Repeat("é", 502), alerts.Bad)})
	if len(got) != 2 || got[0].Seen != alerts.Bad {
		t.Fatalf("%d observations: %+v", len(got), got)
	}
	for _, o := range got {
		if n := len([]rune(o.Subject)); n > 500 {
			t.Errorf("a subject of %d characters", n)
		}
		if n := len([]rune(o.Text)); n != 1000 {
			t.Errorf("a text of %d characters", n)
		}
		if n := len([]rune(o.Key())); n > 1000 {
			t.Errorf("a cause of %d characters", n)
		}
	}
}
