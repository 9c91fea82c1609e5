package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestOrdersThatAreNotAcceptable(t *testing.T) {
	t.Parallel()
	valid := jobspec.ActionStep{Name: "s", Command: "touch $BERTH_INSTALL_DIR/ran"}
	for _, tc := range []struct {
		name   string
		change func(*jobDir)
		want   string
	}{
		{"another version of the contract", func(j *jobDir) { j.spec.Version = 99 }, "version is 99"},
		{"a kind from the future", func(j *jobDir) { j.spec.Kind = "teleport" }, `kind "teleport" is not known`},
		{"an action that changes things, run without a plan", func(j *jobDir) { j.spec.Action.ReadOnly = false }, "only a read-only action runs without a plan"},
		{"a build of an action", func(j *jobDir) {
			j.spec.Operation, j.spec.BuildID, j.spec.Source = jobspec.OperationBuild, "bld_1", &jobspec.Source{Push: "x"}
		}, "this engine cannot build a action"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := actionJob(t, jobspec.OperationRun, valid)
			tc.change(j)
			r := j.run(t)
			wantContains(t, "error", r.Error, tc.want)
			if r.Outcome != jobspec.OutcomeRefused || r.JobID != "job_1" {
				t.Errorf("result %+v", r)
			}
			if _, err := os.Stat(filepath.Join(j.env["BERTH_INSTALL_DIR"], "ran")); !os.IsNotExist(err) {
				t.Error("it ran")
			}
		})
	}
}

func TestResultTellsTimes(t *testing.T) {
	t.Parallel()
	r := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "s", Command: "true"}).must(t)
	if r.FirstInstructionAt.IsZero() || r.FirstInstructionAt.After(r.FinishedAt) || r.StartedAt.IsZero() {
		t.Errorf("times: first instruction %v, started %v, finished %v", r.FirstInstructionAt, r.StartedAt, r.FinishedAt)
	}
}

func TestUsageIsRefused(t *testing.T) {
	t.Parallel()
	engine, err := executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"run"}, {"walk", "x"}} {
		err := exec.CommandContext(t.Context(), engine, args...).Run()
		exit, ok := err.(*exec.ExitError) //nolint:errorlint // Run returns it as it is
		if !ok || exit.ExitCode() != jobspec.ExitRefused {
			t.Errorf("%v: %v, want exit code %d", args, err, jobspec.ExitRefused)
		}
	}
}

func TestSpanBelongsToTheTraceOfTheAgent(t *testing.T) {
	t.Parallel()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "s", Command: "true"})
	j.env["TRACEPARENT"] = "00-" + trace + "-00f067aa0ba902b7-01"
	j.env["OTEL_TRACES_EXPORTER"] = "console"
	j.must(t)
	wantContains(t, "exported span", j.log(t), `"TraceID":"`+trace+`"`)
	wantContains(t, "exported span", j.log(t), `"Name":"engine run"`)
}
