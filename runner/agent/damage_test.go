package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/process"
)

// damages are what may become of a file.
var damages = map[string]func(raw []byte) []byte{
	"cut off": func(raw []byte) []byte { return raw[:len(raw)/2] },
	"garbage": func(raw []byte) []byte { return []byte(strings.Repeat("garbage\n", len(raw)/8+1)) },
}

// damage spoils a file; restore puts it back as it was.
func damage(t *testing.T, path string, spoil func([]byte) []byte) (restore func()) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, spoil(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ended is a change that was applied by an agent which has ended since, so that
// each file of the data directory is there.
func ended(t *testing.T) *change {
	t.Helper()
	var stop func() error
	c := newChange(t, func(r *runner) { stop = r.start() })
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	c.gone(job)
	c.records(2)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Without these files the runner may not work. It ends with an error that names
// the file and what to do, and leaves the file as it is.
func TestDamagedFilesThatStop(t *testing.T) {
	t.Parallel()
	c := ended(t)
	if err := datadir.WriteJSON(c.dir.Hosts(), map[string]string{"log_url": c.plane.URL}); err != nil {
		t.Fatal(err)
	}
	c.accept(jobspec.Script{Action: *script("print hello").Action, TimeoutSeconds: 60})
	for _, tc := range []struct {
		path string
		// names is what the error says in addition to the path.
		names string
		// cut: the end of this file may be missing after a crash.
		cut bool
	}{
		{path: c.dir.Trust()},
		{path: filepath.Join(c.dir.Path(), "identity")},
		{path: filepath.Join(c.dir.Path(), "seal-identity")},
		{path: filepath.Join(c.dir.Path(), "salt")},
		{path: c.dir.Runner()},
		{path: c.dir.Chain(), names: "record 1", cut: true},
		{path: c.dir.Nonces(), cut: true},
		{path: c.dir.Fences()},
		{path: c.dir.Orders(), cut: true},
		{path: c.dir.Hosts(), names: "remove it"},
		{path: c.dir.Scripts(), names: "deploy again"},
	} {
		for name, spoil := range damages {
			if tc.cut && name == "cut off" {
				continue
			}
			t.Run(filepath.Base(tc.path)+" "+name, func(t *testing.T) {
				restore := damage(t, tc.path, spoil)
				defer restore()
				spoiled, err := os.ReadFile(tc.path)
				if err != nil {
					t.Fatal(err)
				}
				err = agent.Run(t.Context(), agent.Config{Data: c.dir.Path(), Engine: c.binary, Executable: c.binary, EngineUID: c.uid, Version: "1.2.0"})
				if !errors.Is(err, agent.ErrDamaged) {
					t.Fatalf("err = %v, want ErrDamaged", err)
				}
				for _, want := range []string{tc.path, tc.names, "docs/reference/runner.md"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q does not name %q", err, want)
					}
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("the error has several lines; only the last one is shown:\n%v", err)
				}
				if left, err := os.ReadFile(tc.path); err != nil || string(left) != string(spoiled) {
					t.Errorf("the damaged file was touched: %v", err)
				}
			})
		}
	}
	t.Run("one record in the middle of the chain", func(t *testing.T) {
		defer damage(t, c.dir.Chain(), func(raw []byte) []byte {
			lines := strings.SplitAfter(string(raw), "\n")
			lines[1] = strings.Replace(lines[1], `"what":"`, `"what":"no `, 1)
			return []byte(strings.Join(append(lines[:2], lines[1]), ""))
		})()
		err := agent.Run(t.Context(), agent.Config{Data: c.dir.Path(), Engine: c.binary, Executable: c.binary, EngineUID: c.uid, Version: "1.2.0"})
		if !errors.Is(err, agent.ErrDamaged) || !strings.Contains(err.Error(), "record 3") || !strings.Contains(err.Error(), "berth-runner chain") {
			t.Errorf("err = %v, want the record and the command", err)
		}
	})
}

// The runner goes on without these files. What was there is set aside, and told.
func TestDamagedFilesThatAreSetAside(t *testing.T) {
	t.Parallel()
	c := ended(t)
	for path, text := range map[string]string{
		c.dir.Schedule():    `{"check": "2026-01-01T00:00:00Z"}`,
		c.dir.ScriptRuns():  `{"seen": {}, "count": 0, "failed": 0, "since": "2026-01-01T00:00:00Z"}`,
		c.dir.Settings():    `{"payloadType": "x", "payload": "eA==", "signatures": []}`,
		c.dir.Claim():       `{"claim_id": "0123456789abcdef"}`,
		c.dir.StackReport(): `{"secret": "bph_example", "outputs": {}}`,
		filepath.Join(c.dir.Runs(), id.New(id.ActionRun)+".json"): `{"action": "check", "state": "missed"}`,
		filepath.Join(c.dir.Artifacts(), "index.json"):            "",
		c.dir.Status(): "",
	} {
		for name, spoil := range damages {
			t.Run(filepath.Base(path)+" "+name, func(t *testing.T) {
				if text != "" {
					if err := datadir.Write(path, []byte(text)); err != nil {
						t.Fatal(err)
					}
				}
				restore := damage(t, path, spoil)
				defer func() {
					if path == filepath.Join(c.dir.Artifacts(), "index.json") {
						restore()
					}
				}()
				before, err := c.dir.SetAsideFiles()
				if err != nil {
					t.Fatal(err)
				}
				stop := c.start()
				if result := c.plane.result(t, c.plane.give(script("print hello"))); result.Outcome != jobspec.OutcomeSucceeded {
					t.Errorf("result = %+v", result)
				}
				if path == c.dir.Status() { // written again, nothing is lost
					if err := stop(); err != nil {
						t.Error(err)
					}
					return
				}
				c.aside(len(before)+1, filepath.Base(path))
				if err := stop(); err != nil {
					t.Error(err)
				}
				if isEvent := c.event(filepath.Base(path)); !isEvent && filepath.Dir(path) != c.dir.Runs() {
					t.Errorf("the chain does not say that %s was set aside", path)
				}
			})
		}
	}
}

// aside waits until so many files were set aside, the last of this name.
func (r *runner) aside(n int, name string) {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		files, err := r.dir.SetAsideFiles()
		if err != nil {
			r.t.Fatal(err)
		}
		if len(files) >= n && slices.ContainsFunc(files, func(path string) bool { return strings.HasPrefix(filepath.Base(path), name+".damaged-") }) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("set aside are %v, want %d with %s", files, n, name)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// event reports whether the chain has an event that names something.
func (r *runner) event(names string) bool {
	r.t.Helper()
	raw, err := os.ReadFile(r.dir.Chain())
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		record, err := chain.ParseRecord([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			r.t.Fatal(err)
		}
		if record.Kind == chain.Event && strings.Contains(record.What+" "+record.Detail, names) {
			return true
		}
	}
	return false
}

// A plan whose record is damaged is not applied, and has to be made again.
func TestDamagedRecordOfAPlan(t *testing.T) {
	t.Parallel()
	for name, spoil := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChange(t, here)
			damage(t, c.dir.Plan(c.id), spoil)
			if result := c.plane.result(t, c.order(asItIs)); result.Outcome == jobspec.OutcomeSucceeded || result.Outcome == jobspec.OutcomeUncertain {
				t.Errorf("result = %+v", result)
			}
			if got := c.effects(); len(got) > 0 {
				t.Errorf("it had effects: %v", got)
			}
		})
	}
}

// undelivered is an attempt whose report an agent could not hand in before it
// ended.
func undelivered(t *testing.T) (r *runner, job, stream string) {
	t.Helper()
	r = newRunner(t, runnerapi.RunnerKindInstall)
	stop := r.start()
	job = r.plane.give(script("print first", "touch "+r.file("began"), "wait "+r.file("go"), "print last"))
	r.appears(r.file("began"))
	stream = r.plane.streamOf(job)
	r.plane.until(t, "the first line", func() bool {
		s := r.plane.streams[stream]
		return s != nil && slices.Contains(s.lines, "first")
	})
	r.plane.change(func() { r.plane.away = true })
	r.touch("go")
	r.appears(filepath.Join(r.dir.Jobs(), job+".1", "report.json"))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.plane.change(func() { r.plane.away = false })
	return r, job, stream
}

// The log spool of an attempt is damaged. The attempt goes on, its report is
// delivered, and who reads the log knows.
func TestDamagedSpool(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, dir, segment string)
		want  string // in the log
		event bool
	}{
		"garbage": {spoil: func(t *testing.T, _, segment string) { damage(t, segment, damages["garbage"]) }, want: "lines are missing here", event: true},
		"cut off": {spoil: func(t *testing.T, _, segment string) { damage(t, segment, damages["cut off"]) }, want: "may be missing"},
		"emptied": {spoil: func(t *testing.T, _, segment string) { damage(t, segment, func([]byte) []byte { return nil }) }, want: "may be missing"},
		"gone": {spoil: func(t *testing.T, dir, _ string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, want: "may be missing"},
		"a file instead": {spoil: func(t *testing.T, dir, _ string) {
			if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, want: "lines are missing here", event: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, job, stream := undelivered(t)
			dir := r.dir.Spool(job + ".1")
			segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
			if err != nil || len(segments) != 1 {
				t.Fatalf("spool has %v, %v", segments, err)
			}
			tc.spoil(t, dir, segments[0])
			r.start()
			if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("result = %+v", result)
			}
			lines := r.plane.log(t, stream)
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, tc.want) }) {
				t.Errorf("log has no line with %q:\n%s", tc.want, strings.Join(lines, "\n"))
			}
			if slices.Index(lines, "first") < 0 {
				t.Errorf("what the log had is gone:\n%s", strings.Join(lines, "\n"))
			}
			r.gone(job)
			if tc.event {
				r.aside(1, job+".1")
				if !r.event("damaged log spool") {
					t.Error("the chain does not say that the spool was set aside")
				}
			}
		})
	}
}

// The report of an attempt is damaged: what the engine left says the same.
func TestDamagedReport(t *testing.T) {
	t.Parallel()
	for name, spoil := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, job, _ := undelivered(t)
			damage(t, filepath.Join(r.dir.Jobs(), job+".1", "report.json"), spoil)
			r.start()
			if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("result = %+v", result)
			}
			r.gone(job)
			r.aside(1, "report.json")
		})
	}
}

// Of a damaged job directory nothing can be reported. It is set aside, the
// session does not name it, and the runner works on.
func TestDamagedJobDirectory(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func([]byte) []byte{
		"cut off": damages["cut off"], "garbage": damages["garbage"], "another document": func([]byte) []byte { return []byte("{}") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, job, _ := undelivered(t)
			damage(t, filepath.Join(r.dir.Jobs(), job+".1", "attempt.json"), spoil)
			r.start()
			if result := r.plane.result(t, r.plane.give(script("print hello"))); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("result = %+v", result)
			}
			r.gone(job)
			r.aside(1, job+".1")
			r.plane.mu.Lock()
			defer r.plane.mu.Unlock()
			if last := r.plane.sessions[len(r.plane.sessions)-1]; len(last.Running) > 0 {
				t.Errorf("the session still names %v", last.Running)
			}
		})
	}
}

// An engine still works in the directory that is damaged: it is stopped before
// the directory is moved.
func TestDamagedJobDirectoryOfALivingEngine(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	cmd := r.startProcess()
	job := r.plane.give(script("touch "+r.file("began"), "wait "+r.file("go")))
	r.appears(r.file("began"))
	var attempt struct {
		Process process.ID `json:"process"`
	}
	path := filepath.Join(r.dir.Jobs(), job+".1", "attempt.json")
	// The engine may be quicker than the agent that notes its process.
	for deadline := time.Now().Add(10 * time.Second); attempt.Process.PID == 0; time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(path); err != nil || json.Unmarshal(raw, &attempt) != nil || time.Now().After(deadline) {
			t.Fatalf("no process on record: %v", err)
		}
	}
	_ = cmd.Process.Kill()
	_, _ = cmd.Process.Wait()
	damage(t, path, damages["garbage"])
	r.startProcess()
	r.gone(job)
	r.aside(1, job+".1")
	if process.Alive(attempt.Process) {
		t.Error("the engine still runs")
	}
}
