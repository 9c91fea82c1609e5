package table_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// statuses is an install of each kind that a vendor meets in a day.
func statuses() []table.InstallStatus {
	number := func(n int) *ctlapi.NumberRef { return &ctlapi.NumberRef{Number: n} }
	install := func(name string, health ctlapi.HealthVerdict, release *ctlapi.NumberRef) ctlapi.Install {
		return ctlapi.Install{Name: name, App: ctlapi.Ref{Name: "shop"}, Customer: ctlapi.Ref{Name: "Acme Corp"}, Health: health, Release: release}
	}
	workflow := func(kind ctlapi.WorkflowKind, state ctlapi.WorkflowState, finished time.Duration) *ctlapi.WorkflowBrief {
		w := &ctlapi.WorkflowBrief{ID: "wfl_1", Kind: kind, State: state, CreatedBy: "ada"}
		if finished > 0 {
			w.FinishedAt = new(ago(finished))
		}
		return w
	}
	runner := func(mode ctlapi.RunnerSwitch) *ctlapi.RunnerBrief {
		return &ctlapi.RunnerBrief{ID: "rnr_1", Online: true, Switch: mode, LastSeenAt: new(ago(time.Second))}
	}
	failed := workflow("provision", "failed", 3*time.Minute)
	failed.Step, failed.Error = new("component/db"), new("terraform apply: exit status 1: Error: creating S3 Bucket (shop-globex): BucketAlreadyExists: the requested bucket name is not available\nwith aws_s3_bucket.data")
	superseded := workflow("deploy", "failed", 5*time.Minute)
	superseded.Superseded, superseded.Step, superseded.Error = true, new("component/api"), new("superseded by chg_2")
	denied := workflow("provision", "failed", 4*time.Minute)
	denied.Step, denied.Error, denied.Ended, denied.EndedBy = new("component/db"), new("denied by alice: not before Monday"), new(ctlapi.EndedDenied), new("alice")
	expired := workflow("deploy", "failed", 5*time.Minute)
	expired.Step, expired.Error, expired.Ended = new("component/api"), new("nobody decided in time"), new(ctlapi.EndedExpired)
	waits := workflow("deploy", "waiting", 0)
	waits.Wait = &ctlapi.Waiting{Reason: "decision"}
	paused := runner("pause")
	paused.SwitchReason, paused.SwitchSince = new("change freeze until Monday"), new(ago(2*time.Hour))
	away := runner("run")
	away.Online, away.LastSeenAt = false, new(ago(26*time.Hour))
	alarmed := install("umbrella", "healthy", number(5))
	alarmed.OpenAlarms = 2
	return []table.InstallStatus{
		{Install: install("acme", "healthy", number(5)), Standing: "live", NewestRelease: number(5), Last: workflow("deploy", "succeeded", 2*time.Hour), Runner: runner("run")},
		{Install: install("behind", "healthy", number(3)), Standing: "live", NewestRelease: number(5), Pending: []ctlapi.InstallStatusPending{"release", "inputs", "toggles"}, Workflow: waits, Runner: runner("run")},
		{Install: install("globex", "unknown", nil), Standing: "provision_failed", NewestRelease: number(5), Last: failed, Runner: runner("run")},
		{Install: install("denied", "unknown", nil), Standing: "provision_failed", NewestRelease: number(5), Last: denied, Runner: runner("run")},
		{Install: install("expired", "healthy", number(4)), Standing: "live", NewestRelease: number(5), Last: expired, Runner: runner("run")},
		{Install: install("gone", "unknown", number(2)), Standing: "deprovisioned", NewestRelease: number(5), Last: workflow("deprovision", "succeeded", 96*time.Hour), Runner: away},
		{Install: install("initech", "healthy", number(5)), Standing: "live", NewestRelease: number(5), Workflow: workflow("deploy", "running", 0), Runner: paused},
		{Install: install("new", "unknown", nil), Standing: "not_provisioned"},
		{Install: install("overtaken", "unhealthy", number(5)), Standing: "live", NewestRelease: number(5), Last: superseded, Runner: away},
		{Install: alarmed, Standing: "live", NewestRelease: number(5), Last: workflow("deploy", "cancelled", 2*time.Minute), Runner: runner("run")},
	}
}

func TestStatusTable(t *testing.T) {
	t.Parallel()
	const columns = 80
	show := func(o output.Options) string {
		var shown strings.Builder
		if err := output.List(&shown, o, statuses(), table.Status(now)); err != nil {
			t.Fatal(err)
		}
		text := shown.String() + "\n" + strings.Join(table.StatusNotes(statuses(), now, o.Columns), "\n") + "\n"
		const layout = "2006-01-02 15:04" // times are shown as they are where the reader is
		return strings.ReplaceAll(text, ago(2*time.Hour).Local().Format(layout), ago(2*time.Hour).Format(layout))
	}
	narrow := show(output.Options{Format: output.Table, Columns: columns})
	for line := range strings.SplitSeq(narrow, "\n") {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d columns, more than %d: %s", n, columns, line)
		}
	}
	goldentest.File(t, "testdata/status_on_a_terminal.txt", narrow)
	goldentest.File(t, "testdata/status.txt", show(output.Options{Format: output.Table})+"\n"+show(output.Options{Format: output.Wide}))
}
