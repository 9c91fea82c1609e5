package pulumi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/pulumi"
)

// asEngine has the test binary work on the job in the directory that it names.
const asEngine = "BERTH_PULUMI_TEST_JOB"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asEngine); dir != "" {
		os.Exit(engine(dir))
	}
	os.Exit(m.Run())
}

// done is what an engine says at its end.
type done struct {
	Result  jobspec.Result
	Failure *job.Failure
}

// engine works on one job, as package engine has it do.
func engine(dir string) int {
	j, err := job.Open(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	j.Stdout, j.Stderr, j.StartedAt, j.Env = os.Stdout, os.Stderr, time.Now(), map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		j.Env[name] = value
	}
	ctx, stop := context.WithCancelCause(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		stop(job.ErrStopped)
	}()
	do := map[jobspec.Operation]func(context.Context, *job.Job) (jobspec.Result, error){
		jobspec.OperationBuild: pulumi.Build, jobspec.OperationPlan: pulumi.Plan, jobspec.OperationApply: pulumi.Apply,
	}[j.Spec.Operation]
	var d done
	d.Result, err = do(ctx, j)
	if err == nil && j.Spec.Operation == jobspec.OperationPlan {
		err = j.PinNames()
	}
	if err != nil && !errors.As(err, &d.Failure) {
		d.Failure = &job.Failure{Message: err.Error()}
	}
	raw, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(j.Out("done.json"), raw, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// tools are those of dev/scripts/pulumi.sh.
func tools(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BERTH_PULUMI_TOOLS")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../../../.bin/tools/pulumi"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "key")); err != nil {
		t.Skip("there is no pulumi to test with: dev/scripts/pulumi.sh build")
	}
	return dir
}

// stack is one resource: a program, its state, and the files that it keeps.
type stack struct {
	t       *testing.T
	tools   string
	program string // artifact
	files   string // where the program's files are
	backend *backend
	spec    jobspec.Pulumi
	env     map[string]string // of the engine, in addition
	pinned  string            // of the last plan
}

// secretText is what no log may show.
const secretText = "correct-horse-battery"

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, tools: tools(t), program: t.TempDir(), files: t.TempDir(), backend: newBackend(t), env: map[string]string{}}
	s.env["BERTH_PULUMI"] = filepath.Join(s.tools, "pulumi")
	write(t, filepath.Join(s.program, "Pulumi.yaml"), "name: shop\nruntime: {name: go, options: {binary: program}}\n")
	raw, err := os.ReadFile(filepath.Join(s.tools, "program"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.program, "program"), raw, 0o700); err != nil {
		t.Fatal(err)
	}
	s.keeps(map[string]file{"a": {Text: "one"}, "secret": {}})
	s.spec.Config["secret"] = secretText
	return s
}

// file is one of the program's config.
type file struct{ Path, Text, Hold string }

// keeps sets which files the program has; without a path they are in s.files.
func (s *stack) keeps(files map[string]file) {
	s.t.Helper()
	for name, f := range files {
		if f.Path == "" {
			f.Path = s.path(name)
		}
		files[name] = f
	}
	raw, err := json.Marshal(files)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.spec.Config == nil {
		s.spec.Config = map[string]string{}
	}
	s.spec.Config["shop:files"] = string(raw)
}

func (s *stack) path(name string) string { return filepath.Join(s.files, name) }

// content is what a file holds, "" when it is not there.
func (s *stack) content(name string) string {
	s.t.Helper()
	raw, err := os.ReadFile(s.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(raw)
}

// running is an engine at work.
type running struct {
	*stack
	dir string
	cmd *exec.Cmd
	log *bytes.Buffer
}

func (s *stack) start(o jobspec.Operation, edit ...func(*jobspec.Spec)) *running {
	s.t.Helper()
	spec := jobspec.Spec{
		Version: jobspec.Version, OrgID: "org_1", InstallID: "ins_1", JobID: "job_1", ChangeID: "chg_1", TimeoutSeconds: 120,
		Kind: jobspec.KindPulumi, Operation: o, Work: jobspec.Work{Pulumi: &s.spec},
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "stack"},
		Artifact: &jobspec.Artifact{Repository: "org/shop/stack", Digest: "sha256:" + strings.Repeat("0", 64)},
		State:    json.RawMessage(`{"name": "acme"}`),
	}
	if o == jobspec.OperationApply {
		spec.Pinned, spec.State = "sha256:0", nil
	}
	for _, e := range edit {
		e(&spec)
	}
	r := &running{stack: s, dir: s.t.TempDir(), log: &bytes.Buffer{}}
	for _, dir := range []string{"in", "work", "out"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(r.dir, "in/artifact"), os.DirFS(s.program)); err != nil {
		s.t.Fatal(err)
	}
	if o == jobspec.OperationApply {
		if err := os.CopyFS(filepath.Join(r.dir, "in/pinned"), os.DirFS(s.pinned)); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := job.WriteJSON(filepath.Join(r.dir, "job.json"), spec); err != nil {
		s.t.Fatal(err)
	}
	env := map[string]string{asEngine: r.dir, "PATH": "/usr/bin:/bin"}
	maps.Copy(env, s.backend.env())
	maps.Copy(env, s.env)
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = job.Environ(env), r.log, r.log
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// end waits for the engine.
func (r *running) end() done {
	r.t.Helper()
	if err := r.cmd.Wait(); err != nil {
		r.t.Fatalf("engine: %v\n%s", err, r.log)
	}
	var d done
	raw, err := os.ReadFile(filepath.Join(r.dir, "out/done.json"))
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if strings.Contains(r.log.String(), secretText) {
		r.t.Errorf("the log shows the secret:\n%s", r.log)
	}
	return d
}

// plan plans and returns what people are shown.
func (s *stack) plan(edit ...func(*jobspec.Spec)) (jobspec.Result, jobspec.PlanSummary) {
	s.t.Helper()
	r := s.start(jobspec.OperationPlan, edit...)
	d := r.end()
	if d.Failure != nil {
		s.t.Fatalf("plan: %v (%s)\n%s", d.Failure, d.Failure.Remedy, r.log)
	}
	s.pinned = filepath.Join(r.dir, "out/pinned")
	var summary jobspec.PlanSummary
	raw, err := os.ReadFile(filepath.Join(r.dir, "out/plan.summary.json"))
	if err == nil {
		err = json.Unmarshal(raw, &summary)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.Contains(string(raw), secretText) {
		s.t.Errorf("the summary shows the secret:\n%s", raw)
	}
	return d.Result, summary
}

// apply does what was planned last.
func (s *stack) apply(edit ...func(*jobspec.Spec)) jobspec.Result {
	s.t.Helper()
	r := s.start(jobspec.OperationApply, edit...)
	d := r.end()
	if d.Failure != nil {
		s.t.Fatalf("apply: %v (%s)\n%s", d.Failure, d.Failure.Remedy, r.log)
	}
	return d.Result
}

func destroy(s *jobspec.Spec) { s.Destroy = true }

// objects are the lines of a summary, "create lab:index:File::a".
func objects(s jobspec.PlanSummary) (lines []string) {
	for _, o := range s.Objects {
		if !strings.HasPrefix(o.Address, "pulumi:") {
			lines = append(lines, o.Action+" "+o.Address)
		}
	}
	return lines
}

// backend is the agent's, as far as its rules matter: a write needs the lock, the
// same lineage and a higher serial.
type backend struct {
	server *httptest.Server

	mu     sync.Mutex
	state  []byte
	lock   string
	faults []string
	wrote  chan struct{} // has something after each write
}

func newBackend(t *testing.T) *backend {
	b := &backend{wrote: make(chan struct{}, 1)}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/lock":
			b.locks(w, r.Method, body)
		case r.Method == http.MethodPost:
			b.writes(w, r.URL.Query().Get("ID"), body)
		case b.state == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = w.Write(b.state)
		}
	}))
	t.Cleanup(func() {
		b.server.Close()
		if len(b.faults) > 0 {
			t.Errorf("the state backend was used wrongly: %q", b.faults)
		}
	})
	return b
}

func (b *backend) locks(w http.ResponseWriter, method string, body []byte) {
	var info struct{ ID string }
	_ = json.Unmarshal(body, &info)
	switch {
	case method == http.MethodPost && b.lock != "":
		w.WriteHeader(http.StatusLocked)
	case method == http.MethodPost:
		b.lock = info.ID
	case info.ID != b.lock:
		b.faults = append(b.faults, "freed by somebody else")
	default:
		b.lock = ""
	}
}

// kept is what the test reads of a state.
type kept struct {
	Serial    int64
	Lineage   string
	Outputs   map[string]struct{ Sensitive bool }
	Resources []any
	Pulumi    struct {
		Passphrase string
		Deployment struct {
			Pending []struct {
				Type     string
				Resource struct{ URN string }
			} `json:"pending_operations"`
		}
	}
}

func (b *backend) writes(w http.ResponseWriter, id string, body []byte) {
	var was, is kept
	_ = json.Unmarshal(b.state, &was)
	if err := json.Unmarshal(body, &is); err != nil {
		b.faults = append(b.faults, err.Error())
	}
	if id == "" || id != b.lock || is.Serial <= was.Serial || was.Lineage != "" && was.Lineage != is.Lineage {
		b.faults = append(b.faults, fmt.Sprintf("lock %q, serial %d after %d, lineage %s after %s", id, is.Serial, was.Serial, is.Lineage, was.Lineage))
		w.WriteHeader(http.StatusConflict)
		return
	}
	b.state = slices.Clone(body)
	select {
	case b.wrote <- struct{}{}:
	default:
	}
}

func (b *backend) kept(t *testing.T) (k kept) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nil {
		return k
	}
	if err := json.Unmarshal(b.state, &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// until waits for a state that fits.
func (b *backend) until(t *testing.T, fits func(kept) bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !fits(b.kept(t)) {
		select {
		case <-b.wrote:
		case <-deadline:
			t.Fatalf("no such state came: %+v", b.kept(t))
		}
	}
}

func (b *backend) env() map[string]string {
	return map[string]string{
		"TF_HTTP_ADDRESS": b.server.URL + "/state", "TF_HTTP_USERNAME": "u", "TF_HTTP_PASSWORD": "p",
		"TF_HTTP_LOCK_ADDRESS": b.server.URL + "/lock", "TF_HTTP_UNLOCK_ADDRESS": b.server.URL + "/lock",
		"TF_HTTP_LOCK_METHOD": "POST", "TF_HTTP_UNLOCK_METHOD": "DELETE",
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
