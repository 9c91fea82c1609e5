package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/consents"
)

// With the control plane away for days, what the customer agreed to goes on: checks, and a
// repair that runs by itself. When the settings have expired, what changes things stops and
// says so; checks go on. All of it is reported once the control plane is back.
func TestADayWithoutTheControlPlane(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	ada := r.asking(consent.ModeEach)
	check := checkOf(asWritten, "append "+r.file("checked"))
	repair := unattended("append " + r.file("repaired"))
	repair.Action.Name = "repair"
	r.accept(check, repair)
	day := minute("00:00:00")
	env, err := capsule.Sign(r.dispatch.key, r.dispatch.id, capsule.SettingsType, jobspec.Settings{
		Version: 1, OrgID: r.plane.orgID, InstallID: r.plane.installID, IssuedAt: day, ExpiresAt: day.Add(30 * 24 * time.Hour),
		Schedule: []jobspec.Scheduled{scheduledAs(check), scheduledAs(repair)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.plane.change(func() { r.plane.settings = &runnerapi.SettingsVersion{Version: 1, Envelope: env} })
	lines := func(name string) int {
		raw, err := os.ReadFile(r.file(name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(raw), "\n")
	}
	// at starts the agent six seconds before a full minute, and waits for the check of that
	// minute. The repair has as long.
	at := func(after time.Duration, repairs int) {
		t.Helper()
		checks, repaired := lines("checked"), lines("repaired")
		r.clock = minute("10:00:54").Add(after)
		stop := r.start()
		for deadline := time.Now().Add(patience); lines("checked") == checks || lines("repaired") < repaired+repairs; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after %s: %d checks and %d repairs more, want 1 and %d", after, lines("checked")-checks, lines("repaired")-repaired, repairs)
			}
		}
		// The script wrote its line; its engine has yet to say how it ended.
		for deadline := time.Now().Add(patience); r.unreported(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after %s: a run does not end", after)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := lines("repaired") - repaired; n != repairs {
			t.Errorf("after %s: %d repairs, want %d", after, n, repairs)
		}
	}

	at(0, 0) // asks the customer
	digest, err := repair.Digest()
	if err != nil {
		t.Fatal(err)
	}
	store := r.consents()
	asked, err := store.Find(consents.OfScript(digest, "", time.Now()).ID)
	if err != nil {
		t.Fatal(err)
	}
	store.Now = func() time.Time { return asked.PlannedAt }
	payload, err := store.Statement(asked, consent.Approve, "", asked.PlannedAt.Add(90*24*time.Hour)).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := consent.Ed25519Signer(ada).Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Answer(answer); err != nil {
		t.Fatal(err)
	}

	r.plane.change(func() { r.plane.away = true })
	at(time.Hour, 1)
	at(24*time.Hour, 1)
	at(6*24*time.Hour, 1)
	at(7*24*time.Hour, 0) // the settings were issued on that day's midnight
	status, err := os.ReadFile(r.dir.Status())
	if err != nil || !bytes.Contains(status, []byte(`"settings_expire"`)) {
		t.Errorf("the status does not say until when the settings are good: %s, %v", status, err)
	}

	r.plane.change(func() { r.plane.away = false })
	r.clock = minute("10:02:10").Add(7 * 24 * time.Hour)
	r.start()
	r.recorded("settings have expired")
	ended := func(action string, after time.Duration) (run jobspec.Run) {
		t.Helper()
		key := jobspec.RunKey(action, minute("10:01:00").Add(after))
		r.plane.until(t, "the report of "+key, func() bool {
			for _, told := range r.plane.runs[key] {
				if told.State != "running" && told.State != "queued" {
					run = told
				}
			}
			return run.State != ""
		})
		return run
	}
	for _, after := range []time.Duration{time.Hour, 24 * time.Hour, 6 * 24 * time.Hour, 7 * 24 * time.Hour} {
		if run := ended("check", after); run.State != "succeeded" {
			t.Errorf("the check after %s: %+v", after, run)
		}
		want, why := "succeeded", ""
		if after == 7*24*time.Hour {
			want, why = "missed", "the settings have expired"
		}
		if run := ended("repair", after); run.State != want || !strings.Contains(run.Error, why) {
			t.Errorf("the repair after %s: %+v, want it %s %s", after, run, want, why)
		}
	}
}

// unreported says whether an attempt has not ended yet.
func (r *runner) unreported() bool {
	r.t.Helper()
	jobs, err := os.ReadDir(r.dir.Jobs())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, job := range jobs {
		dir := filepath.Join(r.dir.Jobs(), job.Name())
		_, attempt := os.Stat(filepath.Join(dir, "attempt.json"))
		_, report := os.Stat(filepath.Join(dir, "report.json"))
		if attempt == nil && report != nil { // what was told is deleted
			return true
		}
	}
	return false
}
