package agent_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// watched is how long the openings of sessions are counted.
const watched = 3 * time.Second

// tiny is the file system of one data directory: 32 MiB, of which new work wants
// 3.2 MiB and the reserve has 2 MiB.
type tiny struct {
	t      *testing.T
	filler string
}

// newTiny returns a runner whose data directory is a small disk of its own.
func newTiny(t *testing.T, minFree string) (*runner, *tiny) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a disk that is small enough to be filled")
	}
	d := &tiny{t: t}
	r := newRunnerOn(t, runnerapi.RunnerKindInstall, func(data string) {
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=32m,mode=700"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
		d.filler = filepath.Join(data, "filler")
		if minFree != "" {
			if err := os.WriteFile(filepath.Join(data, "config.json"), []byte(`{"min_free_bytes": `+minFree+`}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	return r, d
}

// fill leaves so many bytes.
func (d *tiny) fill(left int64) {
	d.t.Helper()
	f, err := os.OpenFile(d.filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(d.filler), &fs); err != nil {
		d.t.Fatal(err)
	}
	_, err = f.Write(make([]byte, max(int64(fs.Bavail)*fs.Bsize-left, 0)))
	if err == nil && left == 0 { // to the last page, even if others write too
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
}

// takeReserve leaves the runner without its reserve, as a disk does on which
// others are quicker.
func (d *tiny) takeReserve() {
	d.t.Helper()
	if err := os.Truncate(filepath.Join(filepath.Dir(d.filler), "reserve"), 0); err != nil {
		d.t.Fatal(err)
	}
}

func (d *tiny) free() {
	d.t.Helper()
	if err := os.Remove(d.filler); err != nil {
		d.t.Fatal(err)
	}
}

// acceptFirst has the runner accept the script of a run now, while its disk has
// room for that, and none later.
func (r *runner) acceptFirst(spec jobspec.Spec) {
	r.t.Helper()
	r.accept(jobspec.Script{Action: *spec.Action, TimeoutSeconds: 60})
	r.plane.accept = nil
}

// runsAlone waits until only this job has files, and its last one before the
// engine ends is written: what is replaced or removed gives room back.
func (r *runner) runsAlone(job string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		jobs, err := os.ReadDir(r.dir.Jobs())
		if err != nil {
			r.t.Fatal(err)
		}
		var attempt struct{ Phase recovery.Phase }
		_, err = datadir.ReadJSON(filepath.Join(r.dir.Jobs(), job+".1", "attempt.json"), &attempt)
		if err == nil && len(jobs) == 1 && attempt.Phase == recovery.Started {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d jobs, phase %q, %v", len(jobs), attempt.Phase, err)
		}
	}
}

// sessionsStay fails when sessions are opened again and again.
func (r *runner) sessionsStay() {
	r.t.Helper()
	count := func() int {
		r.plane.mu.Lock()
		defer r.plane.mu.Unlock()
		return len(r.plane.sessions)
	}
	before := count()
	time.Sleep(watched)
	if opened := count() - before; opened > 2 {
		r.t.Errorf("%d sessions were opened within %s", opened, watched)
	}
}

// says waits until a claim, which asks for nothing, names the full disk.
func (r *runner) saysFull() {
	r.t.Helper()
	r.plane.until(r.t, "a claim that says what is wrong", func() bool {
		if len(r.plane.asked) == 0 {
			return false
		}
		last := r.plane.asked[len(r.plane.asked)-1]
		return last.Slots == 0 && last.Problem != nil && strings.Contains(*last.Problem, "disk full") && strings.Contains(*last.Problem, r.dir.Path())
	})
}

func TestFullDiskBeforeAClaim(t *testing.T) {
	t.Parallel()
	r, d := newTiny(t, "")
	r.start()
	r.plane.until(t, "a session", func() bool { return len(r.plane.sessions) == 1 })
	r.acceptFirst(script("print hello"))
	d.fill(0)
	r.saysFull()
	job := r.plane.give(script("print hello"))
	r.sessionsStay()
	if room, err := agent.Room(r.dir, 0); err != nil || !strings.Contains(room.Problem(), "disk full") {
		t.Errorf("status shows %q, %v", room.Problem(), err)
	}
	r.plane.mu.Lock()
	early := len(r.plane.results[job])
	r.plane.mu.Unlock()
	if early > 0 {
		t.Error("the job was begun on a full disk")
	}
	d.free()
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v, want success once there is room", result)
	}
}

// The disk has room when the job is claimed, and too little for what it brings:
// for its artifact, or even for the job itself.
func TestFullDiskWhilePreparing(t *testing.T) {
	t.Parallel()
	r, d := newTiny(t, "1")
	module, noise := t.TempDir(), make([]byte, 6<<20)
	_, _ = rand.Read(noise)
	if err := os.WriteFile(filepath.Join(module, "main.tf"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: module})
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	r.plane.until(t, "a session", func() bool { return len(r.plane.sessions) == 1 })
	small := script("print hello")
	r.acceptFirst(small)
	d.fill(3 << 20)
	large, heavy := small, small
	large.Artifact = &jobspec.Artifact{Repository: r.plane.orgID + "/shop/api", Digest: packed.Digest.String()}
	heavy.State = json.RawMessage(`{"ballast": "` + strings.Repeat("x", 4<<20) + `"}`)
	for name, spec := range map[string]jobspec.Spec{"the artifact": large, "the job": heavy} {
		job := r.plane.give(spec)
		result := r.plane.result(t, job)
		if result.Outcome != jobspec.OutcomeNotStarted || !strings.Contains(result.Error, "disk full") {
			t.Errorf("%s does not fit: %s %q, want not_started by a full disk", name, result.Outcome, result.Error)
		}
		r.gone(job)
	}
	r.sessionsStay()
	d.free()
	if result := r.plane.result(t, r.plane.give(large)); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v, want success once there is room", result)
	}
}

// The engine is in the middle of its apply when the disk becomes full.
func TestFullDiskDuringAnApply(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		script  string
		greedy  bool // somebody else has taken the reserve
		outcome jobspec.Outcome
	}{
		{name: "the reserve is enough for the report", script: "die", outcome: jobspec.OutcomeUncertain},
		{name: "nothing is left of the reserve", script: "die", greedy: true, outcome: jobspec.OutcomeUncertain},
		{name: "the engine waits for room too", greedy: true, outcome: jobspec.OutcomeSucceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, d := newTiny(t, "")
			script := []string{"touch " + r.file("began"), "wait " + r.file("go")}
			if tc.script != "" {
				script = append(script, tc.script)
			}
			c := newChangeOn(t, r, here, func(spec *jobspec.Spec) {
				if tc.greedy { // so much that no page which something gives back is enough for its attempt
					spec.TerraformModule.Vars["ballast"] = strings.Repeat("x", 300<<10)
				}
			}, script...)
			r.plane.mu.Lock()
			sessions := len(r.plane.sessions)
			r.plane.mu.Unlock()
			job := c.order(asItIs)
			r.appears(r.file("began"))
			r.runsAlone(job)
			if tc.greedy {
				d.takeReserve()
			}
			d.fill(0)
			if tc.greedy {
				r.touch("go")
				r.saysFull()
				r.sessionsStay()
				r.plane.mu.Lock()
				early := len(r.plane.results[job])
				r.plane.mu.Unlock()
				if early > 0 {
					t.Error("a report came from a disk that nothing could be written to")
				}
				d.free()
			} else {
				r.touch("go")
			}
			result := r.plane.result(t, job)
			if result.Outcome != tc.outcome {
				t.Errorf("result = %+v, want %s", result, tc.outcome)
			}
			if !tc.greedy && !strings.Contains(result.Error, "disk full") {
				t.Errorf("the error %q does not say that the disk is full", result.Error)
			}
			var outcomes []string
			for _, record := range c.records(2) {
				if record.Kind == chain.Outcome {
					outcomes = append(outcomes, record.Result)
				}
			}
			if diff := cmp.Diff([]string{string(tc.outcome)}, outcomes); diff != "" {
				t.Errorf("outcomes in the chain (-want +got):\n%s", diff)
			}
			if !tc.greedy {
				d.free()
			}
			r.gone(job) // the lock of the resource with it
			r.plane.mu.Lock()
			defer r.plane.mu.Unlock()
			if len(r.plane.sessions) != sessions || len(r.plane.results[job]) != 1 || r.plane.lock != nil {
				t.Errorf("%d sessions, %d reports, state lock %v; want the same session, one report, no lock",
					len(r.plane.sessions), len(r.plane.results[job]), r.plane.lock)
			}
		})
	}
}

// No record, no effect; and nothing uncertain about it either.
func TestFullDiskWhenTheIntentIsRecorded(t *testing.T) {
	t.Parallel()
	r, d := newTiny(t, "1")
	c := newChangeOn(t, r, here, func(spec *jobspec.Spec) {
		spec.TerraformModule.Vars["ballast"] = strings.Repeat("x", 400<<10)
	})
	// Twice the ballast fits, for the attempt and for the engine, and no third time.
	r.gone("*")
	d.fill(1100 << 10)
	result := c.plane.result(t, c.order(asItIs))
	if result.Outcome != jobspec.OutcomeNotStarted && result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "disk full") {
		t.Errorf("result = %+v, want it not_started or failed by a full disk", result)
	}
	if got := c.effects(); len(got) > 0 {
		t.Errorf("it had effects: %v", got)
	}
}

// Either the release is accepted and the result says so, or neither.
func TestFullDiskDuringAnAcceptance(t *testing.T) {
	t.Parallel()
	// With less than 256 KiB the agent may see by itself that the disk is full, and then
	// leaves the job where it is.
	for name, left := range map[string]int64{"not even the job fits": 300 << 10, "the job fits, not what it brings": 1200 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, d := newTiny(t, "1")
			r.start()
			change, release := id.New(id.Change), jobspec.Release{ID: id.New(id.Release), Number: 1, Scripts: []jobspec.Script{
				checkOf(asWritten, "print "+strings.Repeat("x", 400<<10)),
			}}
			plan := r.review(change, release)
			r.gone("*")
			d.fill(left)
			result := r.plane.result(t, r.acceptance(change, release, plan, func(*jobspec.Spec) {}))
			if result.Outcome != jobspec.OutcomeNotStarted && result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "disk full") {
				t.Errorf("result = %+v, want it not_started or failed by a full disk", result)
			}
			if raw, err := os.ReadFile(r.dir.Scripts()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something was accepted: %.200s %v", raw, err)
			}
			r.sessionsStay()
			d.free()
			r.gone("*")
			change = id.New(id.Change)
			again := r.acceptance(change, release, r.review(change, release), func(*jobspec.Spec) {})
			if result := r.plane.result(t, again); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("result = %+v, want success once there is room", result)
			}
		})
	}
}

// The agent dies, the disk becomes full, and the agent is started again.
func TestFullDiskWhenTheAgentRestarts(t *testing.T) {
	t.Parallel()
	r, d := newTiny(t, "")
	var kill func()
	c := newChangeOn(t, r, func(r *runner) {
		cmd := r.startProcess()
		kill = func() {
			_ = cmd.Process.Kill()
			_, _ = cmd.Process.Wait()
		}
	}, func(*jobspec.Spec) {}, "touch "+r.file("began"), "wait "+r.file("go"))
	job := c.order(asItIs)
	r.appears(r.file("began"))
	kill()
	d.fill(0)
	r.startProcess()
	r.plane.until(t, "the next session", func() bool { return len(r.plane.sessions) == 2 })
	r.plane.mu.Lock()
	second := r.plane.sessions[1]
	r.plane.mu.Unlock()
	if problem, _ := second.Facts["problem"].(string); !strings.Contains(problem, "disk full") || len(second.Running) != 1 {
		t.Errorf("session names the problem %q and %d attempts, want a full disk and one", problem, len(second.Running))
	}
	r.saysFull()
	r.sessionsStay()
	d.free()
	r.touch("go")
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	if diff := cmp.Diff([]string{job}, c.effects()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}
