package agent_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/power"
)

// The clocks of these tests begin a few seconds before a tick: an agent needs a
// moment to come up on a busy machine, and a tick that it has not lived through
// is a missed one.

// minute is a time on the day of these tests.
func minute(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-11-20 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// schedule signs settings with one action that runs each minute.
func (r *runner) schedule(version int64, healthCheck bool, lines ...string) {
	r.t.Helper()
	action := script(lines...).Action
	scheduled := jobspec.Scheduled{Action: *action, Cron: "* * * * *", TimeoutSeconds: 30, HealthCheck: healthCheck}
	r.accept(scheduled.Script())
	r.publish(version, scheduled)
}

// publish signs settings.
func (r *runner) publish(version int64, scheduled ...jobspec.Scheduled) {
	r.t.Helper()
	r.publishOn(minute("00:00:00"), version, scheduled...)
}

// publishOn signs settings that are good for a day.
func (r *runner) publishOn(day time.Time, version int64, scheduled ...jobspec.Scheduled) {
	r.t.Helper()
	env, err := capsule.Sign(r.dispatch.key, r.dispatch.id, capsule.SettingsType, jobspec.Settings{
		Version: version, OrgID: r.plane.orgID, InstallID: r.plane.installID,
		IssuedAt: day, ExpiresAt: day.Add(24*time.Hour - time.Second),
		Schedule: scheduled,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.plane.change(func() { r.plane.settings = &runnerapi.SettingsVersion{Version: version, Envelope: env} })
}

// ran waits for the end of a run and returns it.
func (r *runner) ran(clock string) jobspec.Run {
	r.t.Helper()
	key := jobspec.RunKey("check", minute(clock))
	var end jobspec.Run
	r.plane.until(r.t, "the run of "+clock, func() bool {
		for _, run := range r.plane.runs[key] {
			if run.State != "running" && run.State != "queued" {
				end = run
				return true
			}
		}
		return false
	})
	return end
}

// count is how often the action really ran.
func (r *runner) count() int {
	raw, err := os.ReadFile(r.file("effects"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

func TestEachTickIsOneRunOverRestarts(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.schedule(1, true, "append "+r.file("effects"), "print checked")

	r.clock = minute("10:00:54")
	stop := r.start()
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		t.Fatalf("run = %+v", run)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	// The same minute again: it was run.
	r.clock = minute("10:01:10")
	stop = r.start()
	r.plane.until(t, "the second session", func() bool { return len(r.plane.sessions) == 2 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	// Two ticks were slept through, the next one is run.
	r.clock = minute("10:03:54")
	r.start()
	if run := r.ran("10:04:00"); run.State != "succeeded" {
		t.Errorf("run = %+v", run)
	}
	for _, clock := range []string{"10:02:00", "10:03:00"} {
		if run := r.ran(clock); run.State != "missed" {
			t.Errorf("run of %s = %+v, want it missed", clock, run)
		}
	}
	if got := r.count(); got != 2 {
		t.Errorf("the action ran %d times, want 2", got)
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	if got := len(r.plane.runs); got != 4 {
		t.Errorf("%d runs were reported, want 4: %v", got, r.plane.runs)
	}
}

func TestRunSurvivesTheAgent(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.schedule(1, true, "append "+r.file("effects"), "touch "+r.file("begun"), "wait "+r.file("go"), "print checked")
	r.clock = minute("10:00:54")
	agent := r.startProcess()
	r.appears(r.file("begun"))
	_ = agent.Process.Signal(syscall.SIGKILL)
	_ = agent.Wait()

	r.clock = minute("10:01:10")
	r.startProcess()
	r.touch("go")
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		t.Errorf("run = %+v", run)
	}
	if got := r.count(); got != 1 {
		t.Errorf("the action ran %d times, want 1", got)
	}
}

// With the control plane away nothing changes but the reporting.
func TestScheduleGoesOnInAnOutage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.schedule(1, true, "append "+r.file("effects"), "touch "+r.file("begun"))
	r.runsInAnOutage()
}

// runsInAnOutage starts the agent with the control plane away, until the script of
// 10:01 has touched the file begun and its run was reported.
func (r *runner) runsInAnOutage() {
	r.t.Helper()
	r.clock = minute("10:00:30")
	stop := r.start()
	r.appears(r.dir.Settings())
	if err := stop(); err != nil {
		r.t.Fatal(err)
	}
	r.plane.change(func() { r.plane.away = true })
	r.clock = minute("10:00:54")
	r.start()
	r.appears(r.file("begun"))
	r.plane.change(func() { r.plane.away = false })
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		r.t.Errorf("run = %+v", run)
	}
}

func TestPauseKeepsHealthChecks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		mode        power.Mode
		healthCheck bool
		want        string
	}{
		{"a health check goes on in a pause", power.Pause, true, "succeeded"},
		{"another action does not", power.Pause, false, "missed"},
		{"both do when only reading is allowed", power.ReadOnly, false, "succeeded"},
		{"nothing begins after stop now", power.StopNow, true, "missed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			r.schedule(1, tc.healthCheck, "print checked")
			r.turn(tc.mode)
			r.clock = minute("10:00:54")
			r.start()
			if run := r.ran("10:01:00"); run.State != tc.want {
				t.Errorf("run = %+v, want it %s", run, tc.want)
			}
		})
	}
}

func TestSettingsHaveNoWayBack(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.schedule(7, true, "print seven")
	r.clock = minute("10:00:30")
	stop := r.start()
	r.appears(r.dir.Settings())
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(r.dir.Settings())
	if err != nil {
		t.Fatal(err)
	}
	// A control plane that was taken over hands out an older document under a
	// higher number.
	r.schedule(6, true, "print six")
	r.plane.change(func() { r.plane.settings.Version = 8 })
	r.start()
	r.plane.until(t, "the record of the refusal", func() bool {
		for _, line := range r.plane.chain {
			if strings.Contains(string(line.Body), "settings were refused") {
				return true
			}
		}
		return false
	})
	after, err := os.ReadFile(r.dir.Settings())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("settings changed (-before +after):\n%s", diff)
	}
}

// The head of the org's chain, which comes with the settings, is recorded in the
// install's: once, and only when the org's key signed it.
func TestSettingsAnchorTheOrgsChain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.clock = minute("10:00:30")
	head := func(signer chain.Signer, seq int64) *chain.SignedHead {
		signed := chain.SignHead(chain.Head{Seq: seq, Hash: "sha256:" + strings.Repeat("0", 64)}, signer)
		return &signed
	}
	_, forged, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	vendor := chain.Signer{Chain: r.plane.orgID, Key: r.dispatch.key}
	give := func(version int64, head *chain.SignedHead) {
		env, err := capsule.Sign(r.dispatch.key, r.dispatch.id, capsule.SettingsType, jobspec.Settings{
			Version: version, OrgID: r.plane.orgID, InstallID: r.plane.installID, OrgHead: head,
			IssuedAt: minute("00:00:00"), ExpiresAt: minute("23:59:59"), Schedule: []jobspec.Scheduled{},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.plane.change(func() { r.plane.settings = &runnerapi.SettingsVersion{Version: version, Envelope: env} })
	}
	recorded := func(what string) {
		t.Helper()
		r.plane.until(t, what, func() bool {
			return slices.ContainsFunc(r.plane.chain, func(line runnerapi.ChainRecord) bool { return strings.Contains(string(line.Body), what) })
		})
	}
	give(1, head(vendor, 9))
	r.start()
	recorded(`"kind":"anchor"`)
	give(2, head(chain.Signer{Chain: r.plane.orgID, Key: forged}, 10))
	recorded("the head of the org's chain was refused")
	give(3, head(vendor, 3))
	recorded("the head of the org's chain went back")
}
