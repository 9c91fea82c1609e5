package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// faultsInstalls deploy at the same time, each an app of its own.
	faultsInstalls = 3
	// faultsSlice is how long the slice of every run of the tests takes.
	faultsSlice = 20 * time.Second
	// faultsGoOn is within which a deploy comes to its end, faults included that
	// hit it several times.
	faultsGoOn = 4 * time.Minute
)

// TestFaults deploys to three installs again and again while everything is
// killed at random, and the disk is full or slow for a while. In the end each
// deploy has happened, each effect as often as somebody can know, every line of
// every log is there once, every chain holds, nothing is locked, and nobody had
// to do anything but to ask for a retry where one was offered.
//
// A run of every test takes a slice of it. `make faults` runs it for long:
// BERTH_FAULTS_SECONDS, BERTH_FAULTS_SEED, and BERTH_FAULTS_REPORT, a file that
// gets a line of the outcome.
func TestFaults(t *testing.T) {
	t.Parallel()
	f := &faults{
		seed:   uint64(number(t, "BERTH_FAULTS_SEED", 1)),
		during: time.Duration(number(t, "BERTH_FAULTS_SECONDS", int(faultsSlice/time.Second))) * time.Second,
	}
	dir := filepath.Join(home(t), "disk")
	var lacks string
	if f.disk, lacks = mountDisk(t, dir); f.disk == nil {
		t.Logf("NO DISK OF ITS OWN, so none is full or slow: %s", lacks)
	}
	f.system = at(t, dir, executables(t))
	f.begin()
	for i := range faultsInstalls {
		f.installs = append(f.installs, f.victim(fmt.Sprintf("acme-%d", i+1), "probe"))
	}
	ctx, stop := context.WithTimeout(t.Context(), f.during)
	defer stop()
	var workers sync.WaitGroup
	for _, in := range f.installs {
		workers.Go(func() { f.deployAgain(ctx, in) })
	}
	f.strike(ctx)
	workers.Wait()
	f.judge()
	f.report()
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%q is not a number", name, text)
	}
	return n
}

// faults is one run.
type faults struct {
	*system
	seed     uint64
	during   time.Duration
	disk     *disk // nil when this machine has none for tests
	installs []*victim

	struck  map[string]int // by the kind of fault
	effects int
	lines   int

	mu      sync.Mutex
	deploys int
	retries int
	slowest time.Duration // that a deploy took
}

// victim is an install that is deployed to again and again.
type victim struct {
	*install
	appName string
	values  []string // that were deployed, in order
	flows   []string // their workflows
}

// victim makes an install with an app of its own, a copy of one in testdata, and brings
// it up.
func (f *faults) victim(name, app string) *victim {
	f.t.Helper()
	v := &victim{appName: app + "-" + name, install: &install{system: f.system, name: name, app: folder(f.t, "testdata/"+app)}}
	f.sync(v.appName, v.app)
	var made ctlapi.Install
	f.post("/installs", map[string]any{
		"name": name, "app": v.appName, "customer": name, "create_customer": true, "stack": "local",
		"inputs": ctlapi.InputValues{"canary": canary}, "provision": true, "approve_all": true,
	}, &made)
	v.id = made.ID
	if w := v.finished(*made.WorkflowID, 2*time.Minute); w.State != "succeeded" {
		f.t.Fatalf("provision of %s: %s", name, v.explain(w))
	}
	var stack ctlapi.Stack
	f.get("/installs/"+name+"/stack", &stack)
	v.runner = stack.Runner.ID
	v.files = filepath.Join(f.dir, "runners", v.runner, "install", "probe")
	return v
}

// deployAgain changes the app and deploys it until ctx ends.
func (f *faults) deployAgain(ctx context.Context, v *victim) {
	for n := 1; ctx.Err() == nil; n++ {
		value := fmt.Sprintf("%s-%d", v.name, n)
		began := time.Now()
		if err := f.deployOnce(v, value); err != nil {
			f.t.Errorf("deploy %s: %v", value, err)
			return
		}
		f.deployed(time.Since(began))
	}
}

func (f *faults) deployed(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deploys++
	f.slowest = max(f.slowest, took)
}

func (f *faults) deployOnce(v *victim, value string) error {
	if err := f.syncValue(v, value); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	var w ctlapi.Workflow
	err := f.insist(http.MethodPost, "/installs/"+v.name+"/workflows", "deploy "+value,
		map[string]any{"kind": "deploy", "components": []string{"one"}, "approve_all": true}, &w)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	v.values, v.flows = append(v.values, value), append(v.flows, w.ID)
	deadline := time.Now().Add(faultsGoOn)
	for try := 0; ; {
		if err := f.insist(http.MethodGet, "/workflows/"+w.ID, "", nil, &w); err != nil {
			return err
		}
		switch w.State {
		case "succeeded":
			return nil
		case "cancelled":
			return fmt.Errorf("workflow %s: %s", w.ID, v.explain(w))
		case "failed":
			try++
			i := slices.IndexFunc(w.Steps, func(s ctlapi.Step) bool { return s.State == "failed" })
			if i < 0 || try > 10 {
				return fmt.Errorf("workflow %s offers no retry that helps: %s", w.ID, v.explain(w))
			}
			f.mu.Lock()
			f.retries++
			f.mu.Unlock()
			f.t.Logf("%s is tried again: %s", value, v.explain(w))
			if err := f.insist(http.MethodPost, "/steps/"+w.Steps[i].ID+"/retry", fmt.Sprintf("retry %s %d", value, try), nil, nil); err != nil {
				return fmt.Errorf("retry: %w", err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("workflow %s does not end within %s: %s", w.ID, faultsGoOn, v.explain(w))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

var valueOfOne = regexp.MustCompile(`(?m)^value  = ".*"$`)

// syncValue is install.change that insists.
func (f *faults) syncValue(v *victim, value string) error {
	file := filepath.Join(v.app, "components", "one.toml")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, valueOfOne.ReplaceAll(data, fmt.Appendf(nil, "value  = %q", value)), 0o600); err != nil {
		return err
	}
	fsys := os.DirFS(v.app)
	app, _ := check.Folder(fsys, appconfig.LoadOptions{})
	packed, err := bundle.Make(fsys, nil)
	if err != nil {
		return err
	}
	req := ctlapi.SyncRequest{BundleDigest: packed.Index.Digest}
	for _, pack := range packed.All() {
		if err := f.insist(http.MethodPut, "/blobs/"+pack.Digest, "", pack.Bytes, nil); err != nil {
			return err
		}
	}
	for _, source := range appconfig.Sources(app) {
		if !source.Uploaded() {
			continue
		}
		archive, digest, err := bundle.ArchiveSource(fsys, source)
		if err != nil {
			return err
		}
		if err := f.insist(http.MethodPut, "/blobs/"+digest, "", archive, nil); err != nil {
			return err
		}
		component := source.Name
		if source.Block == appconfig.BlockSandbox {
			component = "sandbox"
		}
		req.Sources = append(req.Sources, ctlapi.SyncSource{Component: component, Digest: digest})
	}
	var result ctlapi.SyncResult
	if err := f.insist(http.MethodPost, "/apps/"+v.appName+"/configs", "sync "+value, req, &result); err != nil {
		return err
	}
	deadline := time.Now().Add(faultsGoOn)
	for {
		var config ctlapi.Config
		if err := f.insist(http.MethodGet, "/configs/"+result.Config.ID, "", nil, &config); err != nil {
			return err
		}
		if config.Release != nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("config %s has no release within %s", config.ID, faultsGoOn)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// insist calls the public API until it answers. key makes a repeated POST the
// same one.
func (f *faults) insist(method, path, key string, body, out any) error {
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(faultsGoOn)
	for {
		status, answer, err := f.ask(method, path, key, raw, isRaw)
		switch {
		case err == nil && status < 300:
			if out == nil {
				return nil
			}
			return json.Unmarshal(answer, out)
		case err == nil && status < 500 && status != http.StatusTooManyRequests && !inProgress(status, answer):
			return fmt.Errorf("%s %s: %d: %s", method, path, status, answer)
		case time.Now().After(deadline):
			return fmt.Errorf("%s %s: no good answer within %s: %d %s: %w", method, path, faultsGoOn, status, answer, err)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// inProgress tells of a request whose first try, cut off by a kill, is still
// being worked on as far as the control plane knows.
func inProgress(status int, answer []byte) bool {
	return status == http.StatusConflict && bytes.Contains(answer, []byte("idempotency"))
}

func (f *faults) ask(method, path, key string, body []byte, isRaw bool) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d%s", f.port, path), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+f.token())
	req.Header.Set("Content-Type", "application/json")
	if isRaw {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", strings.ReplaceAll(key, " ", "-"))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// strike lets one thing after the other go wrong until ctx ends. What and when
// follows from the seed; what it meets does not.
func (f *faults) strike(ctx context.Context) {
	f.struck = map[string]int{}
	rng := rand.New(rand.NewPCG(f.seed, 0)) // the same seed, the same faults
	for {
		pause := time.Duration(1500+rng.IntN(5000)) * time.Millisecond
		kind := faultKinds[rng.IntN(len(faultKinds))]
		during := time.Duration(3+rng.IntN(6)) * time.Second
		which := rng.IntN(1 << 20)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		name, err := f.one(kind, which, during)
		if err != nil {
			f.t.Logf("fault %s: %v", kind, err)
			continue
		}
		f.struck[name]++
		f.t.Logf("fault: %s", name)
	}
}

// faultKinds are drawn from; what stands here twice comes twice as often.
var faultKinds = []string{
	"engine", "engine", "agent", "agent", "ctl-api", "runner-api", "builder", "log-ingest", "postgres", "build runner", "disk full", "disk slow",
}

func (f *faults) one(kind string, which int, during time.Duration) (string, error) {
	sig := syscall.SIGKILL
	var pids []int
	switch kind {
	case "disk full", "disk slow":
		if f.disk == nil {
			return "", errors.New("there is no disk of its own")
		}
		if kind == "disk full" {
			return kind, f.disk.fill(during)
		}
		return kind, f.disk.slow(during)
	case "engine":
		pids = f.processes("berth-engine run")
	case "agent":
		pids = f.pids("runner " + f.installs[which%len(f.installs)].name)
	case "build runner":
		pids = f.pids("build runner")
	case "postgres":
		sig, pids = syscall.SIGQUIT, f.pids(kind) // its immediate shutdown: it recovers from its log
	default:
		pids = f.pids(kind)
	}
	if len(pids) == 0 {
		return "", errors.New("it does not run just now")
	}
	return kind, syscall.Kill(pids[which%len(pids)], sig)
}

func (f *faults) pids(name string) []int {
	if p, ok := f.part(name); ok && p.PID > 0 {
		return []int{p.PID}
	}
	return nil
}

// judge looks at what all the faults have left.
func (f *faults) judge() {
	for _, v := range f.installs {
		effects := v.effects()
		if slices.ContainsFunc(effects, func(e string) bool { return strings.HasPrefix(e, "DOUBLE") }) {
			f.t.Errorf("%s: two engines at once: %v", v.name, effects)
		}
		uncertain := map[string]int{}
		for _, c := range v.changes("uncertain") {
			uncertain[c.WorkflowID]++
		}
		for i, value := range v.values {
			begun := count(effects, "begin one "+value)
			f.effects += begun
			if begun < 1 || begun > 1+uncertain[v.flows[i]] {
				f.t.Errorf("%s: effect %s is there %d times, with %d uncertain outcomes", v.name, value, begun, uncertain[v.flows[i]])
			}
		}
		f.countLines(v)
		f.chainHolds(v)
	}
	f.nothingIsHeld()
	f.nobodyIsDisputed()
}

// countLines counts the numbered lines of all logs: those of one stream follow
// one on the other.
func (f *faults) countLines(v *victim) {
	for _, state := range []string{"applied", "uncertain", "failed"} {
		for _, c := range v.changes(state) {
			for _, stream := range streams(c) {
				v.eventually(goOnTimeout, "the log "+stream+" is complete", func() error {
					if _, complete := v.log(stream); !complete {
						return errors.New("lines are missing")
					}
					return nil
				})
				lines, _ := v.log(stream)
				next := 1
				for _, line := range lines {
					_, rest, ok := strings.Cut(line, " line ")
					var n, of int
					if _, err := fmt.Sscanf(rest, "%d of %d", &n, &of); !ok || err != nil {
						continue
					}
					if n != next {
						f.t.Errorf("stream %s: line %d where %d was due", stream, n, next)
					}
					next, f.lines = n+1, f.lines+1
				}
			}
		}
	}
}

// chainHolds has the verifier that customers have look at the runner's record.
func (f *faults) chainHolds(v *victim) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(f.bin, "berth-verify"), "chain", filepath.Join(f.dir, "runners", v.runner, "chain.jsonl")).CombinedOutput()
	if err != nil {
		f.t.Errorf("chain of %s: %v\n%s", v.name, err, out)
	}
}

// nothingIsHeld looks for locks and leases that are left.
func (f *faults) nothingIsHeld() {
	db := f.database()
	for what, query := range map[string]string{
		"locked resources": `select count(*) from berth.resources where locked_by is not null`,
		"terraform locks":  `select count(*) from berth.tf_locks`,
		"open leases":      `select count(*) from berth.leases l join berth.runner_jobs j on j.id = l.job_id where l.state in ('active', 'lost') and j.build_id is null`,
	} {
		f.eventually(time.Minute, "no "+what, func() error {
			var n int
			if err := db.QueryRow(f.t.Context(), query).Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
	}
}

// report tells what the run saw, and adds it to a file when one is wanted.
func (f *faults) report() {
	var struck []string
	all := 0
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(faultKinds))) {
		struck = append(struck, fmt.Sprintf("%s %d", kind, f.struck[kind]))
		all += f.struck[kind]
	}
	outcome := "held"
	if f.t.Failed() {
		outcome = "FAILED"
	}
	line := fmt.Sprintf("| %d | %s | %d: %s | %d | %d | %s | %d | %d | %s |", f.seed, f.during, all, strings.Join(struck, ", "), f.deploys,
		f.retries, f.slowest.Round(time.Second), f.effects, f.lines, outcome)
	f.t.Logf("| seed | time | faults | deploys | retries | slowest | effects | lines | outcome |\n%s", line)
	addLine(f.t, os.Getenv("BERTH_FAULTS_REPORT"), line)
}

// addLine adds a line to a file, if one is named.
func addLine(t *testing.T, path, line string) {
	t.Helper()
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(file, line); errors.Join(err, file.Close()) != nil {
		t.Fatal(err)
	}
}
