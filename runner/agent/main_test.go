package agent_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/cloudcluster"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/engine/terraform/terraformtest"
)

// TestMain lets the test binary be what the agent starts: the job contract is
// any executable, so `<binary> run DIR` is an engine. `<binary> agent CONFIG` is
// an agent that can be killed, `<binary> preflight DATA` asks before there is one.
func TestMain(m *testing.M) {
	terraformtest.IfProvider()
	switch {
	case len(os.Args) == 3 && os.Args[1] == "run":
		os.Exit(engine(os.Args[2]))
	case len(os.Args) == 3 && os.Args[1] == "agent":
		os.Exit(agentProcess(os.Args[2]))
	case len(os.Args) == 3 && os.Args[1] == "preflight":
		for _, f := range agent.Preflight(context.Background(), agent.Config{Data: os.Args[2], Engine: os.Args[0], Executable: os.Args[0]}) {
			fmt.Println(f.What, "-", f.Err)
		}
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == "version":
		os.Exit(0)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce) // a number: cannot fail
	}
	os.Exit(m.Run())
}

// atOnce is how many tests run at the same time: they wait more than they work.
// -parallel on the command line wins.
const atOnce = "6"

// engine works on a job directory. A plan and an apply do what a module would:
// read, lock and write the state, and leave an effect in the install directory.
// An action is a list of commands, one per line. Next to the real engine it
// hands over to that.
func engine(dir string) int {
	var spec jobspec.Spec
	raw, err := os.ReadFile(filepath.Join(dir, "job.json"))
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return jobspec.ExitFailed
	}
	if shipped := filepath.Join(filepath.Dir(os.Args[0]), realEngine); exists(shipped) {
		return handOver(shipped, dir, spec.JobID)
	}
	result := jobspec.Result{JobID: spec.JobID, Outcome: jobspec.OutcomeSucceeded, StartedAt: time.Now(), FirstInstructionAt: time.Now()}
	e := testEngine{dir: dir, spec: spec, result: &result}
	switch {
	case jobspec.Kinds[spec.Kind].OnCluster:
		err = e.onCluster()
	case spec.Kind == jobspec.KindContainerImage:
		err = e.image()
	case spec.Operation == jobspec.OperationPlan:
		err = e.plan()
	case spec.Operation == jobspec.OperationApply:
		err = e.apply()
	case spec.Operation == jobspec.OperationDrift:
		err = e.drift()
	default:
		err = e.script(spec.Action.Steps[0].InlineContents)
	}
	if err != nil {
		result.Outcome, result.Error = jobspec.OutcomeFailed, err.Error()
		fmt.Fprintln(os.Stderr, err)
	}
	if result.Outcome == "" { // as one that died
		return 7
	}
	result.FinishedAt = time.Now()
	e.leave("result.json", result)
	if result.Outcome != jobspec.OutcomeSucceeded {
		return jobspec.ExitFailed
	}
	return jobspec.ExitFinished
}

type testEngine struct {
	dir    string
	spec   jobspec.Spec
	result *jobspec.Result
}

func (e testEngine) leave(name string, v any) {
	path := filepath.Join(e.dir, "out", name)
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	for {
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path+".new", raw, 0o600)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if errors.Is(err, syscall.ENOSPC) { // as the real one does with its result
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if err != nil {
			panic(err)
		}
		return
	}
}

func (e testEngine) plan() error {
	if e.spec.Action != nil {
		return e.planAction()
	}
	state, err := e.backend(http.MethodGet, os.Getenv("TF_HTTP_ADDRESS"), nil)
	if err != nil {
		return err
	}
	fmt.Printf("planning on %d bytes of state\n", len(state))
	e.result.Tool = &jobspec.Tool{Name: "terraform", Version: "1.0.0", Digest: "sha256:claimed"}
	e.leave("plan.canonical.json", map[string]any{"create": e.spec.Resource.Name})
	e.judged()
	e.leave("inputs.json", e.spec.TerraformModule.Vars)
	e.leave("plan.summary.json", jobspec.PlanSummary{Create: 1, Text: "+ " + e.secret()})
	e.leave("pinned/plan", map[string]any{"planned": e.spec.Resource.Name})
	return nil
}

// judged leaves what rules are held against, for a module that replaces something: the kind
// of resource is in its vars. What "exposes" is made for the first time, and public. With "lies" the documents tell of nothing that happens.
func (e testEngine) judged() {
	if kind, ok := e.spec.TerraformModule.Vars["exposes"].(string); ok {
		e.leavePlan([]any{map[string]any{
			"address": kind + "." + e.secret(), "mode": "managed", "type": kind, "provider_name": "registry.terraform.io/hashicorp/aws",
			"change": map[string]any{"actions": []string{"create"}, "before": nil, "after": map[string]any{"publicly_accessible": true, "password": e.secret()}},
		}})
		if e.spec.Continues != "" { // it was made meanwhile; that is no part of the canonical plan
			e.leave("pinned/"+policy.PinnedCase, policy.Case{Documents: []policy.Document{}})
		}
	}
	kind, ok := e.spec.TerraformModule.Vars["replaces"].(string)
	if !ok {
		return
	}
	changes := []any{map[string]any{
		"address": kind + ".main", "mode": "managed", "type": kind,
		"change": map[string]any{"actions": []string{"delete", "create"}, "before": map[string]any{"password": e.secret()}},
	}}
	e.leavePlan(changes)
}

func (e testEngine) leavePlan(changes []any) {
	e.leave("plan.canonical.json", map[string]any{"plan": map[string]any{"resource_changes": changes}})
	if e.spec.TerraformModule.Vars["lies"] != nil {
		changes = []any{}
	}
	body, err := json.Marshal(map[string]any{"format_version": "1.2", "resource_changes": changes})
	if err != nil {
		panic(err)
	}
	e.leave("pinned/"+policy.PinnedCase, policy.Case{Rules: e.spec.Policies, Documents: []policy.Document{
		{Form: policy.FormPlan, Of: string(e.spec.Kind), Component: e.spec.Resource.Name, Name: "plan of component api", Body: body},
	}})
}

// planAction pins the text of a script, which is what its apply runs.
func (e testEngine) planAction() error {
	step := e.spec.Action.Steps[0]
	e.leave("plan.canonical.json", map[string]any{"text": step.InlineContents, "env_vars": step.EnvVars})
	e.leave("inputs.json", step.EnvVars)
	e.leave("plan.summary.json", jobspec.PlanSummary{Text: step.InlineContents + "\n" + e.secret()})
	e.leave("pinned/"+jobspec.PinnedAction, pinnedText{Text: step.InlineContents})
	return nil
}

func (e testEngine) applyAction() error {
	raw, err := os.ReadFile(filepath.Join(e.dir, "in", "pinned", jobspec.PinnedAction))
	if err != nil {
		return err
	}
	var pinned pinnedText
	if err := json.Unmarshal(raw, &pinned); err != nil {
		return err
	}
	return e.script(pinned.Text)
}

// pinnedText is what planAction pins.
type pinnedText struct {
	Text string `json:"text"`
}

// secret is what the template of the test renders: a sealed value of the state.
func (e testEngine) secret() string {
	var state struct {
		Inputs struct {
			Inputs struct {
				Secret string `json:"secret"`
			} `json:"inputs"`
		} `json:"inputs"`
	}
	_ = json.Unmarshal(e.spec.State, &state)
	return state.Inputs.Inputs.Secret
}

func (e testEngine) apply() error {
	if e.spec.Action != nil {
		return e.applyAction()
	}
	if _, err := os.Stat(filepath.Join(e.dir, "in", "pinned", "plan")); err != nil {
		return err
	}
	lock := []byte(`{"ID":"lock-1","Operation":"OperationTypeApply"}`)
	if _, err := e.backend(http.MethodPost, os.Getenv("TF_HTTP_LOCK_ADDRESS"), lock); err != nil {
		return err
	}
	effects, err := os.OpenFile(filepath.Join(os.Getenv("BERTH_INSTALL_DIR"), "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer effects.Close()
	fmt.Fprintln(effects, e.spec.JobID)
	for _, command := range e.spec.TerraformModule.VarFiles { // what the test wants to happen now
		if err := e.script(command); err != nil || e.result.Outcome == "" {
			return err
		}
	}
	state := []byte(`{"version":4,"serial":8,"lineage":"lin","outputs":{"password":{"value":"s3cret-of-output","sensitive":true}},"resources":[]}`)
	if _, err := e.backend(http.MethodPost, os.Getenv("TF_HTTP_ADDRESS")+"?ID=lock-1", state); err != nil {
		return err
	}
	if _, err := e.backend(http.MethodDelete, os.Getenv("TF_HTTP_UNLOCK_ADDRESS"), lock); err != nil {
		return err
	}
	e.leave("outputs.json", jobspec.Outputs{
		"url":      {Value: json.RawMessage(`"http://127.0.0.1"`)},
		"password": {Value: json.RawMessage(`"s3cret-of-output"`), Sensitive: true},
		"dsn":      {Value: json.RawMessage(`"postgres://u:s3cret-of-output@db"`)},
	})
	e.result.Lineage, e.result.Serial = "lin", 8
	return nil
}

// backend is one request to the state backend, repeated like Terraform does.
func (e testEngine) backend(method, address string, body []byte) ([]byte, error) {
	var last error
	for range 20 {
		req, err := http.NewRequestWithContext(context.Background(), method, address, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.SetBasicAuth(os.Getenv("TF_HTTP_USERNAME"), os.Getenv("TF_HTTP_PASSWORD"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			last = err
			time.Sleep(300 * time.Millisecond)
			continue
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return nil, fmt.Errorf("state backend: %s %s", resp.Status, raw)
		}
		return raw, err
	}
	return nil, last
}

// script does commands: print TEXT, secret, env, whoami, read FILE, need FILE, touch FILE,
// append FILE, wait FILE, sh COMMAND, dial SOCKET, swap DIR TARGET UNTIL, hang,
// die, measure NAME NUMBER, output STEP VALUE, fail.
func (e testEngine) script(text string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	defer signal.Stop(stop)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		command, arg, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch command {
		case "print":
			fmt.Println(arg)
		case "secret":
			fmt.Println("the secret is " + e.secret())
		case "env":
			for _, kv := range os.Environ() {
				name, _, _ := strings.Cut(kv, "=")
				fmt.Println("env " + name)
			}
		case "whoami":
			fmt.Printf("uid %d pid %d\n", os.Getuid(), os.Getpid())
		case "read":
			_, err := os.ReadFile(arg)
			fmt.Printf("readable %v\n", err == nil)
		case "need":
			if !exists(arg) {
				return fmt.Errorf("there is no %s", arg)
			}
		case "touch":
			if err := os.WriteFile(arg, nil, 0o600); err != nil {
				return err
			}
		case "append":
			f, err := os.OpenFile(arg, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			fmt.Fprintln(f, e.spec.JobID)
			f.Close()
		case "wait":
			for {
				if _, err := os.Stat(arg); err == nil {
					break
				}
				select {
				case <-stop:
					fmt.Println("stopping at a safe point")
					e.result.Outcome, e.result.Error = jobspec.OutcomeCancelled, "stopped on request"
					return nil
				case <-time.After(10 * time.Millisecond):
				}
			}
		case "sh":
			cmd := exec.Command("/bin/bash", "-c", arg)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				fmt.Println("sh:", err)
			}
		case "dial":
			if conn, err := net.Dial("unix", arg); err == nil {
				fmt.Println("leak: reached", arg)
				conn.Close()
			}
		case "swap":
			words := strings.Fields(arg)
			swap(words[0], words[1], words[2])
		case "hang":
			signal.Ignore(syscall.SIGTERM)
			select {}
		case "die":
			e.result.Outcome = ""
			return nil
		case "measure":
			name, value, _ := strings.Cut(arg, " ")
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			e.result.Metrics = append(e.result.Metrics, jobspec.Metric{Name: name, Kind: jobspec.MetricGauge, Value: number})
		case "output":
			name, value, _ := strings.Cut(arg, " ")
			e.result.Steps = append(e.result.Steps, jobspec.StepResult{Name: name, Outputs: map[string]any{"value": value}})
		case "fail":
			return fmt.Errorf("failed: %s", arg)
		}
	}
	return nil
}

// swap waits for a directory, puts symlinks to target in the place of the last
// directories in it, and goes on until there is a file.
func swap(dir, target, until string) {
	for !exists(until) {
		for n := last; n > last-50; n-- {
			name := filepath.Join(dir, fmt.Sprintf("d%05d", n))
			if os.Rename(name, name+".away") == nil && os.Symlink(target, name) == nil {
				fmt.Println("swapped", name)
			}
		}
	}
}

// last numbers the last of many directories.
const last = 1500

// processConfig is what an agent of its own process is started with.
type processConfig struct {
	Data      string `json:"data"`
	EngineUID int    `json:"engine_uid"`
	// Clock is what the clock says at the start; zero for the real one.
	Clock time.Time `json:"clock,omitzero"`
	// UIDs and PIDs are --engine-uids and --engine-pids.
	UIDs string `json:"uids,omitempty"`
	PIDs int64  `json:"pids,omitempty"`
	// TerraformKey is what releases of Terraform are signed with, "" for the vendor's.
	TerraformKey string `json:"terraform_key,omitempty"`
	// Engine is the engine, "" for the agent itself.
	Engine string `json:"engine,omitempty"`
	// Barred: in the agent's user namespace there are no further ones.
	Barred bool `json:"barred,omitempty"`
}

func agentProcess(text string) int {
	var c processConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 64
	}
	if c.Barred {
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 64
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	err = agent.Run(ctx, agent.Config{
		Data: c.Data, Engine: cmp.Or(c.Engine, self), Executable: self, EngineUID: c.EngineUID, Version: "1.2.0", Grace: 2 * time.Second,
		EngineUIDs: c.UIDs, EnginePIDs: c.PIDs, TerraformDownloads: agent.DownloadsForbid, TerraformKey: c.TerraformKey, Now: clock(c.Clock), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// clock is one that says at now, and goes on from there.
func clock(at time.Time) func() time.Time {
	if at.IsZero() {
		return time.Now
	}
	began := time.Now()
	return func() time.Time { return at.Add(time.Since(began)) }
}

// ground is a place where engines of another user can work, with the test
// binary in it.
type ground struct {
	binary string
	uid    int // of engines; 0 when the tests do not run as root
}

var users atomic.Int64

func newGround(t *testing.T) (dir string, g ground) {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-agent-*") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g.binary = filepath.Join(dir, "engine")
	if os.Link(self, g.binary) != nil { // another user's file, or on another disk
		if out, err := exec.CommandContext(t.Context(), "cp", self, g.binary).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Chmod(g.binary, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		g.uid = 64000 + int(users.Add(1))
	}
	return dir, g
}

// runner is an agent under test with its data directory.
type runner struct {
	t     *testing.T
	plane *plane
	ground
	dir      datadir.Dir
	dispatch dispatch
	clock    time.Time // what the next agent's clock says at its start
	// terraformKey is what releases of Terraform are signed with, "" for the vendor's.
	terraformKey string
	sampleEvery  time.Duration
	engine       string              // "" for the one that the test binary is
	outputs      map[string]any      // of the component that makes a cluster
	begun        bool                // an agent was started, and not stopped by us
	clouds       cloudcluster.Clouds // of an agent in this process
}

// dispatch is the key that the customer's side pinned: the one of orders for an
// install, or for builds.
type dispatch struct {
	id  string
	key []byte
}

func newRunner(t *testing.T, kind runnerapi.RunnerKind) *runner {
	t.Helper()
	return newRunnerOn(t, kind, func(string) {})
}

// newRunnerOn is newRunner with a data directory that prepare has made.
func newRunnerOn(t *testing.T, kind runnerapi.RunnerKind, prepare func(data string)) *runner {
	t.Helper()
	base, g := newGround(t)
	r := &runner{t: t, plane: newPlane(t, kind), ground: g}
	data := filepath.Join(base, "data")
	prepare(data)
	if err := os.MkdirAll(filepath.Join(data, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r.dispatch = dispatch{id: "key_dispatch", key: private}
	r.plane.signer = r.dispatch
	trust := datadir.Trust{RunnerAPIURL: r.plane.URL}
	pinned := []datadir.TrustedKey{{KeyID: r.dispatch.id, PublicKey: capsule.EncodePublicKey(public)}}
	if kind == runnerapi.RunnerKindBuild {
		trust.BuilderKeys = pinned
	} else {
		trust.DispatchKeys = pinned
		trust.LogURL, trust.Registry = r.plane.URL, "http://127.0.0.1:1"
	}
	if r.dir, err = datadir.At(data); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	r.guardrails(guardrail.AnswersFile, `{"only_warn": true, "reason": "a test of something else"}`)
	if err := datadir.Write(r.dir.Enrolment(), []byte("ben_"+strings.Repeat("a", 43)+"\n")); err != nil {
		t.Fatal(err)
	}
	r.plane.accept = func(s jobspec.Script) { r.accept(s) }
	return r
}

// guardrails writes a file of the customer's guardrails; "" removes it.
func (r *runner) guardrails(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir.Guardrails(), name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil && text == "" {
		err = datadir.Remove(path)
	} else if err == nil {
		err = datadir.Write(path, []byte(text))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// start runs the agent in this process until stop is called.
func (r *runner) start() (stop func() error) {
	r.t.Helper()
	r.begun = true
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := agent.Run(ctx, agent.Config{
			Data: r.dir.Path(), Engine: cmp.Or(r.engine, r.binary), Executable: r.binary, EngineUID: r.uid, Version: "1.2.0",
			Grace: 2 * time.Second, TerraformDownloads: agent.DownloadsForbid, TerraformKey: r.terraformKey, SampleEvery: r.sampleEvery, Clouds: r.clouds, Now: r.now(), Log: slog.New(slog.NewTextHandler(r.t.Output(), nil)),
		})
		if err != nil {
			fmt.Fprintln(r.t.Output(), "the agent ended:", err)
		}
		done <- err
	}()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped, r.begun = true, false
		cancel()
		select {
		case err := <-done:
			if r.plane != nil {
				r.plane.change(func() { r.plane.over = len(r.plane.sessions) })
			}
			return err
		case <-time.After(patience):
			r.t.Error("the agent does not stop")
			return nil
		}
	}
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

// slowStart is how long an agent may take until it follows its settings.
const slowStart = 20 * time.Second

// now is the clock of an agent that starts. It stands still until the agent follows its
// settings: on a slow machine it would miss the tick that a test is about.
func (r *runner) now() func() time.Time {
	at, plane := r.clock, r.plane
	if at.IsZero() || plane == nil {
		return clock(at)
	}
	plane.mu.Lock()
	away := plane.away
	plane.mu.Unlock()
	if away {
		return clock(at)
	}
	var mu sync.Mutex
	var goes func() time.Time
	started, followed := time.Now(), plane.followed.Load()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if goes == nil && plane.followed.Load() == followed && time.Since(started) < slowStart {
			return at
		}
		if goes == nil {
			goes = clock(at)
		}
		return goes()
	}
}

// startProcess runs the agent as a process of its own, which can be killed.
func (r *runner) startProcess() *exec.Cmd {
	r.t.Helper()
	return r.startProcessAs(nil)
}

// startProcessAs is startProcess as another user; nil for our own.
func (r *runner) startProcessAs(user *syscall.Credential) *exec.Cmd {
	r.t.Helper()
	cmd := r.process(processConfig{}, user)
	r.run(cmd)
	return cmd
}

// process is an agent of its own, not yet started.
func (r *runner) process(c processConfig, user *syscall.Credential) *exec.Cmd {
	r.t.Helper()
	c.Data, c.EngineUID, c.Clock, c.TerraformKey, c.Engine = r.dir.Path(), r.uid, r.clock, r.terraformKey, r.engine
	config, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(r.binary, "agent", string(config))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	return cmd
}

// run starts an agent's process, which is stopped at the end of the test.
func (r *runner) run(cmd *exec.Cmd) {
	r.t.Helper()
	r.begun = true
	cmd.Stdout, cmd.Stderr = r.t.Output(), r.t.Output()
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// file is a path in the install directory, where engine and test meet.
func (r *runner) file(name string) string { return filepath.Join(r.dir.Install(), name) }

// appears waits until a file is there.
func (r *runner) appears(path string) {
	r.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("waited 60 s for %s", path)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *runner) touch(name string) {
	r.t.Helper()
	if err := os.WriteFile(r.file(name), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func script(lines ...string) jobspec.Spec {
	return jobspec.Spec{
		Kind: jobspec.KindAction, Operation: jobspec.OperationRun,
		Action: &jobspec.Action{Name: "check", ReadOnly: true, Steps: []jobspec.ActionStep{{
			Name: "one", InlineContents: strings.Join(lines, "\n"), EnvVars: map[string]string{"SECRET": "{{ .nuon.inputs.inputs.secret }}"},
		}}},
	}
}
