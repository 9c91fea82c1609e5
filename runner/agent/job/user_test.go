package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/users"
)

const engineUser = 84001

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// attemptIn is a job as far as its folder goes.
func attemptIn(t *testing.T) *job {
	t.Helper()
	j := &job{deps: &Deps{}, dir: jobdir.Folder{Path: filepath.Join(t.TempDir(), "job_a.1")}}
	j.attempt.Assignment = runnerapi.Assignment{JobID: "job_" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "_")), Attempt: 1}
	if err := os.Mkdir(j.dir.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := j.dir.Renew(); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *job) put(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(j.dir.Engine(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

type ownership struct {
	Mode     string
	UID, GID int
}

// What the engine was given is root's and its group's to read, what it is to
// write to is its own, and a symlink is not followed.
func TestExpose(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	j := attemptIn(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.put(t, "job.json", "{}", 0o600)
	j.put(t, "in/kubeconfig", "", 0o600)
	j.put(t, "in/pinned/plan", "", 0o600)
	j.put(t, "in/artifact/run.sh", "", 0o755)
	if err := os.Symlink(outside, filepath.Join(j.dir.In("artifact"), "link")); err != nil {
		t.Fatal(err)
	}
	j.attempt.Isolation = process.Isolation{UID: engineUser, GID: engineUser, Hidden: true}
	if err := j.expose(); err != nil {
		t.Fatal(err)
	}
	given := func(mode string) ownership { return ownership{Mode: mode, GID: engineUser} }
	own := func(mode string) ownership { return ownership{Mode: mode, UID: engineUser, GID: engineUser} }
	want := map[string]ownership{
		".": given("drwxr-x---"), "job.json": given("-rw-r-----"), "in": given("drwxr-x---"), "in/kubeconfig": own("-rw-------"),
		"in/pinned": given("drwxr-x---"), "in/pinned/plan": given("-rw-r-----"),
		"in/artifact": given("drwxr-x---"), "in/artifact/run.sh": given("-rwxr-x---"), "in/artifact/link": given("Lrwxrwxrwx"),
		"out": own("drwx------"), "work": own("drwx------"), "work/home": own("drwx------"), "work/tmp": own("drwx------"),
	}
	got := map[string]ownership{}
	for name := range want {
		got[name] = ownershipOf(t, filepath.Join(j.dir.Engine(), name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	if got := ownershipOf(t, outside); got.GID != os.Getgid() || got.UID != 0 {
		t.Errorf("what a symlink leads to now belongs to %+v", got)
	}
}

func ownershipOf(t *testing.T, path string) ownership {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, _ := info.Sys().(*syscall.Stat_t)
	return ownership{Mode: info.Mode().String(), UID: int(stat.Uid), GID: int(stat.Gid)}
}

// Whatever an engine put in the place of its folders, what is taken from them is
// in its own, and what is removed too.
func TestFoldersThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	j := attemptIn(t)
	outside := t.TempDir()
	precious := filepath.Join(outside, "pinned", "precious")
	if err := os.MkdirAll(filepath.Dir(precious), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, []byte(`{"outcome":"succeeded"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(j.dir.Engine(), "out")
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, out); err != nil {
		t.Fatal(err)
	}
	if dir, err := j.dir.OpenOut("out/pinned"); err == nil {
		t.Errorf("out/pinned is %s, outside of the engine's folder", dir.Name())
	}
	if data, _, err := j.dir.ReadOut("out/pinned/precious", 100); err == nil {
		t.Errorf("read %q outside of the engine's folder", data)
	}
	for _, do := range []func() error{j.dir.Renew, j.dir.Remove} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(precious); err != nil {
			t.Fatalf("something outside was removed: %v", err)
		}
	}
	if _, err := os.Lstat(j.dir.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// Limits that the kernel does not take end the job before anything is used up,
// with a word on what to do.
func TestNoEngineWithoutItsLimits(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	if err := process.CanLimit(process.Limits{PIDs: 8}); err != nil {
		t.Skip(err)
	}
	pool, err := users.Open(t.TempDir(), users.Range{First: 84100, Size: 2}, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := attemptIn(t)
	j.deps.Engine = Engine{Isolation: process.Isolation{Hidden: true, PIDNamespace: true}, Users: pool, Limits: process.Limits{PIDs: 1 << 62}}
	var refused *refusal
	if err := j.confine(); !errors.As(err, &refused) || refused.result.Outcome != jobspec.OutcomeFailed || !strings.Contains(refused.result.Remedy, "--engine-limits") {
		t.Errorf("confine: %v (%+v), want it failed with a remedy", err, refused)
	}
	if j.group != nil {
		t.Errorf("there is a group without its limits: %+v", j.group)
	}
	j.release()

	// The user came back; with limits that can be set, the job has it and them.
	j.deps.Engine.Limits = process.Limits{PIDs: 100}
	if err := j.confine(); err != nil {
		t.Fatal(err)
	}
	if j.attempt.Isolation.UID != 84101 || j.group == nil {
		t.Errorf("user %d, group %+v", j.attempt.Isolation.UID, j.group)
	}
	other := attemptIn(t)
	other.deps = j.deps
	if err := other.confine(); !errors.As(err, &refused) || refused.result.Outcome != jobspec.OutcomeNotStarted {
		t.Errorf("a second job of one user: %v, want it given back", err)
	}
	j.release()
	if process.FindGroup(j.attempt.Name()) != nil {
		t.Error("the group is still there")
	}
}
