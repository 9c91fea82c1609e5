package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit/buildkittest"
	"github.com/berth-dev/berth/runner/engine/terraform/terraformtest"
)

// executable is the engine as it is shipped: of `make build` when there is one,
// else built now.
var executable = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("BERTH_LIBEXEC"); dir != "" {
		return filepath.Join(dir, "berth-engine"), nil
	}
	path := filepath.Join(buildDir, "berth-engine")
	out, err := exec.Command("go", "build", "-o", path, "github.com/berth-dev/berth/runner/cmd/engine").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the engine: %w\n%s", err, out)
	}
	return path, nil
})

var buildDir string

// busyMachine is how long a job may take that an idle machine does in seconds.
const busyMachine = 4 * time.Minute

// atOnce is how many tests run at the same time: they wait for the cluster more
// than they work. -parallel on the command line wins.
const atOnce = "8"

func TestMain(m *testing.M) {
	buildkittest.IfKeeper()
	terraformtest.IfProvider()
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce) // a number: cannot fail
	}
	dir, err := os.MkdirTemp("", "berth-engine-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func terraformPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("BERTH_TERRAFORM"); path != "" {
		return path
	}
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Fatal("there is no terraform: set BERTH_TERRAFORM, or put one on PATH; `make test` finds or installs one")
	}
	return path
}

// A jobDir is a job directory as the agent makes it.
type jobDir struct {
	path string
	spec jobspec.Spec
	env  map[string]string
	// prefix is a command that becomes the engine.
	prefix []string
}

func newJob(t *testing.T, spec jobspec.Spec) *jobDir {
	t.Helper()
	spec.Version, spec.OrgID = jobspec.Version, "org_1"
	if spec.JobID == "" {
		spec.JobID = "job_1"
	}
	if spec.Operation != jobspec.OperationBuild {
		spec.InstallID = "ins_1"
	}
	if spec.Operation == jobspec.OperationPlan || spec.Operation == jobspec.OperationApply {
		spec.ChangeID = "chg_1"
	}
	if spec.Operation == jobspec.OperationApply {
		spec.Pinned = "sha256:0"
	}
	if spec.TimeoutSeconds == 0 {
		spec.TimeoutSeconds = int(busyMachine.Seconds())
	}
	j := &jobDir{path: t.TempDir(), spec: spec, env: map[string]string{
		"PATH":              os.Getenv("PATH"),
		"BERTH_INSTALL_DIR": t.TempDir(),
		"GORACE":            os.Getenv("GORACE"),
	}}
	for _, dir := range []string{"in", "work/home", "work/tmp", "out"} {
		if err := os.MkdirAll(filepath.Join(j.path, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	j.env["HOME"], j.env["TMPDIR"] = filepath.Join(j.path, "work/home"), filepath.Join(j.path, "work/tmp")
	return j
}

func (j *jobDir) write(t *testing.T, name, contents string) {
	t.Helper()
	path := filepath.Join(j.path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (j *jobDir) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(j.path, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (j *jobDir) readJSON(t *testing.T, name string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(j.read(t, name)), v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// log is what the engine and its tools wrote, both streams.
func (j *jobDir) log(t *testing.T) string {
	t.Helper()
	return j.read(t, "stdout.log") + j.read(t, "stderr.log")
}

// start starts the engine in the directory, as the agent does.
func (j *jobDir) start(t *testing.T) *exec.Cmd {
	t.Helper()
	engine, err := executable()
	if err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(j.spec)
	if err != nil {
		t.Fatal(err)
	}
	j.write(t, "job.json", string(order))
	args := slices.Concat(j.prefix, []string{engine, "run", j.path})
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = j.path
	cmd.Env = []string{}
	for name, v := range j.env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	cmd.Stdout, cmd.Stderr = j.create(t, "stdout.log"), j.create(t, "stderr.log")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func (j *jobDir) create(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(j.path, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// finish waits for a started engine and returns its result.
func (j *jobDir) finish(t *testing.T, cmd *exec.Cmd) jobspec.Result {
	t.Helper()
	_ = cmd.Wait()
	var r jobspec.Result
	j.readJSON(t, "out/result.json", &r)
	if got, want := cmd.ProcessState.ExitCode(), exitCodes[r.Outcome]; got != want {
		t.Errorf("outcome %s ended with exit code %d, want %d", r.Outcome, got, want)
	}
	return r
}

var exitCodes = map[jobspec.Outcome]int{
	jobspec.OutcomeSucceeded:  jobspec.ExitFinished,
	jobspec.OutcomeFailed:     jobspec.ExitFailed,
	jobspec.OutcomeCancelled:  jobspec.ExitFailed,
	jobspec.OutcomeRefused:    jobspec.ExitRefused,
	jobspec.OutcomeStale:      jobspec.ExitRefused,
	jobspec.OutcomeNotStarted: jobspec.ExitRefused,
}

func (j *jobDir) run(t *testing.T) jobspec.Result {
	t.Helper()
	return j.finish(t, j.start(t))
}

// must runs the engine and expects it to succeed.
func (j *jobDir) must(t *testing.T) jobspec.Result {
	t.Helper()
	r := j.run(t)
	if r.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("%s %s: %s: %s\n%s", j.spec.Operation, j.spec.JobID, r.Outcome, r.Error, j.log(t))
	}
	return r
}

// stop asks a running engine to stop.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a condition holds, and fails after a while.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func contains(path, text string) func() bool {
	return func() bool {
		data, err := os.ReadFile(path)
		return err == nil && bytes.Contains(data, []byte(text))
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, tree map[string]any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func wantContains(t *testing.T, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s does not contain %q:\n%s", what, want, text)
	}
}

func with(env, more map[string]string) map[string]string {
	out := maps.Clone(env)
	maps.Copy(out, more)
	return out
}
