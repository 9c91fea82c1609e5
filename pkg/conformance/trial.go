package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

const (
	defaultTimeout = 60 * time.Second
	defaultGrace   = 20 * time.Second
	// maxLogShown is how much of a log an error repeats, in bytes.
	maxLogShown = 2000
)

// trial is the test of one rule: a world, and the jobs that ran in it.
type trial struct {
	Subject
	ctx   context.Context //nolint:containedctx // it lives as long as one test
	dir   string
	world World
	jobs  int
	fence int64
}

func newTrial(ctx context.Context, s Subject, dir string) (*trial, error) {
	t := &trial{Subject: s, ctx: ctx, dir: dir}
	if t.Timeout == 0 {
		t.Timeout = defaultTimeout
	}
	if t.Grace == 0 {
		t.Grace = defaultGrace
	}
	return t, t.renew()
}

// renew gives the trial a new world.
func (t *trial) renew() error {
	t.jobs++
	dir := filepath.Join(t.dir, "world"+strconv.Itoa(t.jobs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var err error
	t.world, err = t.NewWorld(dir)
	return err
}

// job is one that ran.
type job struct {
	dir  string
	spec jobspec.Spec
	// result is nil when the engine left none.
	result *jobspec.Result
	exit   int // -1 when a signal ended it
	took   time.Duration
	log    string
}

// a says how a job is run.
type a struct {
	Order
	plan     *job // whose pinned files an apply gets
	previous *job // an apply that was cut short, which a plan follows
	change   func(*jobspec.Spec)
	damage   func(pinned string) error
	signal   syscall.Signal // sent after a time; 0 for none
	after    time.Duration
}

// run runs a job and checks what holds for all: it ends, and its result, exit code
// and files fit together.
func (t *trial) run(how a) (*job, error) {
	j, err := t.start(how)
	if err != nil {
		return nil, err
	}
	if err := j.check(how); err != nil {
		return j, fmt.Errorf("%s: %w%s", name(how), err, j.tail())
	}
	return j, nil
}

// must is run of a job that has to succeed.
func (t *trial) must(how a) (*job, error) {
	j, err := t.run(how)
	if err == nil && j.result.Outcome != jobspec.OutcomeSucceeded {
		err = fmt.Errorf("%s: %s: %s%s", name(how), j.result.Outcome, j.result.Error, j.tail())
	}
	return j, err
}

func name(how a) string {
	text := string(how.Operation)
	if how.Destroy {
		text += " of a teardown"
	}
	return text
}

// prepare makes the directory of a job.
func (t *trial) prepare(how a) (j *job, env []string, err error) {
	t.jobs++
	j = &job{dir: filepath.Join(t.dir, "job"+strconv.Itoa(t.jobs)), exit: -1}
	for _, dir := range []string{"in", "work/home", "work/tmp", "out"} {
		if err := os.MkdirAll(filepath.Join(j.dir, dir), 0o700); err != nil {
			return nil, nil, err
		}
	}
	if how.Operation == jobspec.OperationApply {
		t.fence++
		how.Fence = t.fence
	}
	if j.spec, env, err = t.world.Job(j.dir, how.Order); err != nil {
		return nil, nil, err
	}
	j.spec.Version, j.spec.JobID, j.spec.Operation, j.spec.Destroy = jobspec.Version, "job_"+strconv.Itoa(t.jobs), how.Operation, how.Destroy
	j.spec.TimeoutSeconds = int(t.Timeout.Seconds())
	if how.plan != nil {
		j.spec.Pinned, j.spec.Fence = "sha256:"+strings.Repeat("0", 64), t.fence
		pinned := filepath.Join(j.dir, "in", "pinned")
		if err := os.CopyFS(pinned, os.DirFS(filepath.Join(how.plan.dir, "out", "pinned"))); err != nil {
			return nil, nil, err
		}
		if how.damage != nil {
			if err := how.damage(pinned); err != nil {
				return nil, nil, err
			}
		}
	}
	if how.previous != nil {
		j.spec.Continues = "chg_0"
		if err := os.CopyFS(filepath.Join(j.dir, "in", "previous"), os.DirFS(filepath.Join(how.previous.dir, "in", "pinned"))); err != nil {
			return nil, nil, err
		}
	}
	if how.change != nil {
		how.change(&j.spec)
	}
	raw, err := json.Marshal(j.spec)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(j.dir, "job.json")
	_ = os.Remove(path) // the world may have left a draft
	return j, env, os.WriteFile(path, raw, 0o400)
}

// start runs a job to its end.
func (t *trial) start(how a) (*job, error) {
	j, env, err := t.prepare(how)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(t.dir, filepath.Base(j.dir)+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	before, err := tree(filepath.Join(j.dir, "in"))
	if err != nil {
		return nil, err
	}
	cmd, err := t.command(j.dir, env)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	late := t.end(cmd, how)
	j.took, j.exit = time.Since(began), cmd.ProcessState.ExitCode()
	if raw, err := os.ReadFile(log.Name()); err == nil {
		j.log = string(raw)
	}
	if late != nil {
		return j, fmt.Errorf("%s: %w%s", name(how), late, j.tail())
	}
	after, err := tree(filepath.Join(j.dir, "in"))
	if err != nil {
		return nil, err
	}
	if before != after {
		return j, fmt.Errorf("%s: it changed files below in/", name(how))
	}
	return j, j.read()
}

// command is that of a job, in a process group of its own.
func (t *trial) command(dir string, env []string) (*exec.Cmd, error) {
	if t.Start != nil {
		return t.Start(dir, env)
	}
	cmd := exec.Command(t.Command[0], append(t.Command[1:len(t.Command):len(t.Command)], "run", dir)...) //nolint:noctx // it is ended as the agent ends it
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, env, &syscall.SysProcAttr{Setpgid: true}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	return cmd, nil
}

// end waits for the end of an engine, and sends it a signal on the way.
func (t *trial) end(cmd *exec.Cmd, how a) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	kill := func() {
		killTree(cmd.Process.Pid)
		<-done
	}
	limit, late := t.Timeout, fmt.Errorf("it did not end within %s", t.Timeout)
	if how.signal != 0 {
		select {
		case <-done: // it was faster
			return nil
		case <-time.After(how.after):
		}
		if how.signal == syscall.SIGKILL {
			kill()
			return nil
		}
		_ = cmd.Process.Signal(how.signal)
		limit, late = t.Grace, fmt.Errorf("it did not end within %s after SIGTERM", t.Grace)
	}
	select {
	case <-done:
		// What it left running ends with it.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return nil
	case <-t.ctx.Done():
		kill()
		return context.Cause(t.ctx)
	case <-time.After(limit):
		kill()
		return late
	}
}

// read reads the result; one that is not there is not an error here.
func (j *job) read() error {
	raw, err := os.ReadFile(filepath.Join(j.dir, "out", "result.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j.result = &jobspec.Result{}
	if err := json.Unmarshal(raw, j.result); err != nil {
		return fmt.Errorf("out/result.json: %w", err)
	}
	return nil
}

// exitCodes says how outcomes and exit codes fit together.
var exitCodes = map[jobspec.Outcome]int{
	jobspec.OutcomeSucceeded: jobspec.ExitFinished, jobspec.OutcomeFailed: jobspec.ExitFailed, jobspec.OutcomeCancelled: jobspec.ExitFailed,
	jobspec.OutcomeRefused: jobspec.ExitRefused, jobspec.OutcomeStale: jobspec.ExitRefused, jobspec.OutcomeNotStarted: jobspec.ExitRefused,
}

// check is what holds for every job.
func (j *job) check(how a) error {
	if j.result == nil {
		if how.signal != 0 && j.exit != jobspec.ExitFinished {
			return nil // it was cut short
		}
		return fmt.Errorf("it ended with exit code %d and left no out/result.json", j.exit)
	}
	r := *j.result
	want, known := exitCodes[r.Outcome]
	switch {
	case !known:
		return fmt.Errorf("out/result.json: outcome %q is none that an engine may say", r.Outcome)
	case j.exit != want && (how.signal == 0 || j.exit >= 0):
		return fmt.Errorf("outcome %s ended with exit code %d, want %d", r.Outcome, j.exit, want)
	case r.JobID != "" && r.JobID != j.spec.JobID:
		return fmt.Errorf("out/result.json is of job %q, this is %q", r.JobID, j.spec.JobID)
	case r.Outcome != jobspec.OutcomeSucceeded && r.Error == "":
		return fmt.Errorf("outcome %s without an error that says why", r.Outcome)
	case strings.ContainsAny(r.Error, "\n\r"):
		return errors.New("out/result.json: the error has more than one line")
	}
	if r.Outcome != jobspec.OutcomeSucceeded {
		return nil
	}
	if how.Operation == jobspec.OperationPlan {
		return j.checkPlan()
	}
	_, err := j.outputs()
	return err
}

// checkPlan is what holds for every plan that succeeded.
func (j *job) checkPlan() error {
	raw, err := os.ReadFile(filepath.Join(j.dir, "out", "plan.canonical.json"))
	if err != nil {
		return err
	}
	if !json.Valid(raw) {
		return errors.New("out/plan.canonical.json is not JSON")
	}
	s, err := j.summary()
	if err != nil {
		return err
	}
	counts := s.Counts()
	if s.NoChange && (counts.Create+counts.Update+counts.Replace+counts.Delete+counts.Run+counts.Outputs+len(counts.Other) > 0) {
		return fmt.Errorf("the summary says no change, and lists %s", counts)
	}
	if _, err := j.outputs(); err != nil {
		return err
	}
	if s.NoChange || j.result.NoChange {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(j.dir, "out", "pinned"))
	if err != nil || len(entries) == 0 {
		return errors.New("a plan with changes pinned nothing for its apply: out/pinned is empty")
	}
	return nil
}

func (j *job) summary() (jobspec.PlanSummary, error) {
	var s jobspec.PlanSummary
	return s, j.readJSON("plan.summary.json", &s)
}

// outputs are those that the job left, nil without any.
func (j *job) outputs() (jobspec.Outputs, error) {
	var o jobspec.Outputs
	err := j.readJSON("outputs.json", &o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return o, err
}

func (j *job) readJSON(name string, v any) error {
	raw, err := os.ReadFile(filepath.Join(j.dir, "out", name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("out/%s: %w", name, err)
	}
	return nil
}

// noChange says whether a plan has nothing to do.
func (j *job) noChange() (bool, error) {
	s, err := j.summary()
	return s.NoChange || j.result.NoChange, err
}

func (j *job) tail() string {
	text := strings.TrimSpace(j.log)
	if text == "" {
		return ""
	}
	if len(text) > maxLogShown {
		text = "…" + text[len(text)-maxLogShown:]
	}
	return "\nits log:\n" + text
}

// maxShown is how much of a file a tree has as it is, in bytes.
const maxShown = 64 << 10

// tree is the content of a directory as one text, with the digests of large files.
func tree(dir string) (string, error) {
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if len(raw) > maxShown {
			raw = fmt.Appendf(nil, "%d bytes, sha256 %x", len(raw), sha256.Sum256(raw))
		}
		rel, _ := filepath.Rel(dir, path) // it is below dir
		fmt.Fprintf(&b, "%s %q\n", rel, raw)
		return err
	})
	return b.String(), err
}
