package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
)

// TestZombie freezes agent and engine in the middle of an apply, until their
// lease is over and another machine has taken their place and changed the same
// resource. When they wake up, nothing that they say counts any more.
func TestZombie(t *testing.T) {
	t.Parallel()
	s := start(t, "BERTH_LEASE_TTL=10s")
	in := s.probe("acme")
	db := s.database()

	in.change("zombie")
	release := in.hold() // however long it takes to freeze them all
	w := in.deploy(true, "one")
	in.sinceEffect("begin one zombie")
	frozen := in.freeze(3)                // agent, engine, Terraform
	t.Cleanup(func() { in.thaw(frozen) }) // a frozen process cannot be asked to go
	release()
	zombie := in.onlyJob(db, `operation = 'apply' and state = 'leased'`)
	c := step(in.workflow(w.ID), "component/one").Change

	in.eventually(time.Minute, "the lease is lost", func() error {
		return in.expect(db, `select state from berth.leases where job_id = $1`, zombie, "lost")
	})
	// Expired is not dead: nobody else gets the job or the resource.
	if err := in.expect(db, `select j.state || ' ' || c.state || ' ' || (r.locked_by = c.id) from berth.runner_jobs j
		join berth.changes c on c.apply_job_id = j.id join berth.resources r on r.id = c.resource_id where j.id = $1`, zombie, "leased executing true"); err != nil {
		t.Errorf("after the lease expired: %v", err)
	}

	in.replaceMachine()
	// It goes on, the check included: the chain says which scripts were accepted.
	if got := in.finished(w.ID, 2*time.Minute); got.State != "succeeded" {
		t.Fatalf("the other machine did not go on: %s", in.explain(got))
	}
	if got := in.changeState(c.ID); got != "uncertain" {
		t.Errorf("the zombie's change is %s, want uncertain", got)
	}
	in.change("living")
	if got := in.finished(in.deploy(true, "one").ID, 2*time.Minute); got.State != "succeeded" {
		t.Fatalf("the other workflow: %s", in.explain(got))
	}

	before := in.snapshot(db, zombie)
	if !strings.HasSuffix(strings.Join(before["streams"], ""), " closed") {
		t.Errorf("the zombie's log is not closed: %v", before["streams"])
	}
	if current := before["states"][len(before["states"])-1]; !strings.HasPrefix(current, "current ") || strings.Contains(current, zombie) {
		t.Errorf("the current state is not the other's: %v", before["states"])
	}
	ended := count(in.effects(), "end one zombie")
	token := in.logToken(zombie)
	in.thaw(frozen)
	in.eventually(time.Minute, "the zombie's engine came to its end", func() error {
		if left := in.enginesOf(in.runnerDir()); len(left) > 0 {
			return fmt.Errorf("%d processes are left", len(left))
		}
		return nil
	})
	in.eventually(time.Minute, "the zombie's agent was told that it is over", func() error {
		raw, err := os.ReadFile(filepath.Join(in.dir, "log", "runner-"+in.runner+".log"))
		if err == nil && !bytes.Contains(raw, []byte("session_void")) {
			err = errors.New("its log does not say so")
		}
		return err
	})
	in.noLinesLost()
	if n := count(in.effects(), "end one zombie"); n != ended+1 {
		t.Errorf("the zombie did not go on where it was frozen: %v", in.effects())
	}
	if err := in.say(db, zombie, token); !errors.Is(err, logship.ErrClosed) {
		t.Errorf("a line with the zombie's token: %v, want %v", err, logship.ErrClosed)
	}
	if diff := cmp.Diff(before, in.snapshot(db, zombie)); diff != "" {
		t.Errorf("the zombie changed what is known (-before +after):\n%s", diff)
	}
	if got := in.output("one")["value"]; got != "living" {
		t.Errorf("the live value is %v", got)
	}
	// What it wanted to store is not lost: its machine has it, sealed.
	var kept []string
	for _, name := range []string{"pending-state.json", "refused-state-*.json"} {
		for _, dir := range []string{"jobs", "evidence"} {
			found, err := filepath.Glob(filepath.Join(in.runnerDir(), dir, zombie+".1", name))
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, found...)
		}
	}
	kept = append(kept, column(t, db, `select id from berth.tf_states where kind = 'orphaned' and job_id = $1`, zombie)...)
	if len(kept) == 0 {
		t.Error("the zombie's state is nowhere kept as evidence")
	}

	// What is live is the other's, also for the next plan.
	if got := in.finished(in.deploy(true, "one").ID, time.Minute); step(got, "component/one").Change.State != "no_change" {
		t.Errorf("the next plan is not empty: %s", in.explain(got))
	}
}

// hold keeps the effects of the probe's modules from ending, until it is
// released.
func (in *install) hold() (release func()) {
	in.t.Helper()
	file := filepath.Join(in.files, "hold")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		in.t.Fatal(err)
	}
	release = func() { _ = os.Remove(file) } // once is enough
	in.t.Cleanup(release)
	return release
}

func (in *install) runnerDir() string { return filepath.Join(in.dir, "runners", in.runner) }

// freeze stops the agent, its engines and all that they started: that many
// processes at least.
func (in *install) freeze(least int) []int {
	in.t.Helper()
	agent := in.pid("runner " + in.name)
	in.signal(agent, syscall.SIGSTOP)
	frozen := []int{agent}
	in.eventually(10*time.Second, "everything of the runner is frozen", func() error {
		for _, pid := range in.enginesOf(in.runnerDir()) {
			if !slices.Contains(frozen, pid) {
				frozen = append(frozen, pid)
			}
			if processState(pid) != 'T' {
				_ = syscall.Kill(pid, syscall.SIGSTOP) // one that is over needs none
				return fmt.Errorf("process %d still runs", pid)
			}
		}
		return nil
	})
	if len(frozen) < least {
		in.t.Fatalf("froze only %v", frozen)
	}
	return frozen
}

func (in *install) thaw(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// noLinesLost checks that a void attempt's log ended without an error.
func (in *install) noLinesLost() {
	in.t.Helper()
	raw, err := os.ReadFile(filepath.Join(in.dir, "log", "runner-"+in.runner+".log"))
	if err != nil {
		in.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, "log line is lost") || strings.Contains(line, "log cannot be ended") || strings.Contains(line, "cannot be followed") {
			in.t.Errorf("the agent says: %s", line)
		}
	}
}

// enginesOf lists the processes that an agent started: all that know its
// directory, but for itself.
func (s *system) enginesOf(runnerDir string) []int {
	var pids []int
	for _, pid := range s.processes("") {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if bytes.Contains(cmdline, []byte("--data\x00")) || processState(pid) == 'Z' {
			continue
		}
		if bytes.Contains(append(cmdline, environ...), []byte(runnerDir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processState is R, S, T (stopped) and so on; 0 when there is no process.
func processState(pid int) byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	return rest[0]
}

// replaceMachine starts another machine in place of the runner's: with the
// customer's consent, the recovery key, and nothing of the first one's disk but
// what the customer wrote there.
func (in *install) replaceMachine() {
	in.t.Helper()
	dir := in.newMachine("-second")
	if out, err := in.onMachine(dir, "replace", "--recovery", in.recoveryFile()).CombinedOutput(); err != nil {
		in.t.Fatalf("replace: %v\n%s", err, out)
	}
	in.startMachine(dir)
}

func (in *install) recoveryFile() string { return filepath.Join(in.dir, "recovery", in.runner+".key") }

// newMachine makes a data directory with what the customer's side puts there for a
// machine that is to replace the runner's.
func (in *install) newMachine(suffix string) (dir string) {
	in.t.Helper()
	var enrolment ctlapi.EnrolmentSecret
	in.post("/installs/"+in.name+"/enrolments", map[string]any{"replaces": true}, &enrolment)
	dir = in.runnerDir() + suffix
	files := map[string][]byte{"secrets/enrolment": []byte(enrolment.Secret + "\n")}
	for _, name := range []string{"trust.json", "config.json"} {
		data, err := os.ReadFile(filepath.Join(in.runnerDir(), name))
		if err != nil && !(name == "config.json" && errors.Is(err, os.ErrNotExist)) {
			in.t.Fatal(err)
		}
		files[name] = data
	}
	if err := os.MkdirAll(filepath.Join(dir, "secrets"), 0o700); err != nil {
		in.t.Fatal(err)
	}
	for name, data := range files {
		if len(data) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			in.t.Fatal(err)
		}
	}
	// The same surroundings as the first one's.
	if in.environ == nil {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", in.pid("runner "+in.name)))
		if err != nil {
			in.t.Fatal(err)
		}
		in.environ = strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00")
	}
	return dir
}

// onMachine is berth-runner on another machine.
func (in *install) onMachine(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(in.bin, "berth-runner"), append([]string{"--data", dir}, args...)...)
	cmd.Env = in.environ
	return cmd
}

// startMachine runs the agent of another machine until the test ends, or until it
// ends by itself.
func (in *install) startMachine(dir string) (ended <-chan struct{}) {
	in.t.Helper()
	log, err := os.Create(filepath.Join(in.dir, "log", filepath.Base(dir)+".log"))
	if err != nil {
		in.t.Fatal(err)
	}
	cmd := in.elsewhere(dir)
	cmd.Env = in.environ
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait()
	}()
	in.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-over
		_ = log.Close()
	})
	return over
}

// elsewhere runs a runner as another machine would: its data are where the first
// one's are, and what lives on in the world, the scratch, is the same. Engines
// see nothing else of a machine's runners.
func (in *install) elsewhere(dir string) *exec.Cmd {
	in.t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "install"), 0o700); err != nil {
		in.t.Fatal(err)
	}
	runner, err := filepath.Abs(filepath.Join(in.bin, "berth-runner"))
	if err != nil {
		in.t.Fatal(err)
	}
	there := `mount --bind "$1/install" "$2/install" && mount --rbind "$2" "$1" && exec "$3" --data "$1"`
	unshare := []string{"--mount"}
	if os.Geteuid() != 0 { // with rights in a user namespace that the runner does not get
		there = strings.Replace(there, "exec", "exec setpriv --inh-caps=-all --ambient-caps=-all", 1)
		unshare = append(unshare, "--map-current-user", "--keep-caps")
	}
	return exec.Command("unshare", append(unshare, "sh", "-c", there, "sh", in.runnerDir(), dir, runner)...)
}

// onlyJob names the one job of the install for which a condition holds.
func (in *install) onlyJob(db *pgxpool.Pool, condition string) string {
	in.t.Helper()
	jobs := column(in.t, db, `select id from berth.runner_jobs where install_id = $1 and `+condition, in.id)
	if len(jobs) != 1 {
		in.t.Fatalf("jobs with %s: %v, want one", condition, jobs)
	}
	return jobs[0]
}

// expect compares one text from the database.
func (in *install) expect(db *pgxpool.Pool, query, id, want string) error {
	var got string
	if err := db.QueryRow(in.t.Context(), query, id).Scan(&got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%q, want %q", got, want)
	}
	return nil
}

func (in *install) changeState(id string) ctlapi.ChangeState {
	in.t.Helper()
	var c ctlapi.Change
	in.get("/changes/"+id, &c)
	return c.State
}

// snapshot is all that is known of a job, and of the resource that it changes.
// Evidence kept next to it is not part of it.
func (in *install) snapshot(db *pgxpool.Pool, job string) map[string][]string {
	in.t.Helper()
	const resource = `(select resource_id from berth.runner_jobs where id = $1)`
	rows := map[string][]string{}
	for what, query := range map[string]string{
		"states":   `select concat_ws(' ', kind, id, serial, lineage, digest, job_id, fence) from berth.tf_states where resource_id = ` + resource + ` and kind <> 'orphaned' order by serial`,
		"locks":    `select concat_ws(' ', lock_id, job_id, fence) from berth.tf_locks where resource_id = ` + resource,
		"resource": `select concat_ws(' ', state, fence, coalesce(locked_by, 'free'), live_change_id, live_effect_digest, outputs) from berth.resources where id = ` + resource,
		"changes":  `select concat_ws(' ', id, state, error, result) from berth.changes where resource_id = ` + resource + ` order by id`,
		"job":      `select concat_ws(' ', state, attempt, error, result - 'late') from berth.runner_jobs where id = $1`,
		"streams":  `select concat_ws(' ', id, next_seq, encode(head_hash, 'hex'), state) from berth.log_streams where job_id = $1`,
		"lines":    `select concat_ws(' ', first_seq, last_seq) from berth.log_chunks where stream_id in (select id from berth.log_streams where job_id = $1) order by last_seq`,
		"leases":   `select concat_ws(' ', id, state, end_reason) from berth.leases where job_id = $1`,
	} {
		result, err := db.Query(in.t.Context(), query, job)
		if err != nil {
			in.t.Fatal(err)
		}
		if rows[what], err = pgx.CollectRows(result, pgx.RowTo[string]); err != nil {
			in.t.Fatalf("%s: %v", what, err)
		}
	}
	return rows
}

// logToken is what the agent was given to store the lines of a job with.
func (in *install) logToken(job string) string {
	in.t.Helper()
	raw, err := os.ReadFile(filepath.Join(in.runnerDir(), "jobs", job+".1", "attempt.json"))
	if err != nil {
		in.t.Fatal(err)
	}
	var attempt struct {
		Assignment struct {
			LogToken string `json:"log_token"`
		} `json:"assignment"`
	}
	if err := json.Unmarshal(raw, &attempt); err != nil || attempt.Assignment.LogToken == "" {
		in.t.Fatalf("attempt.json has no log token (%v)", err)
	}
	return attempt.Assignment.LogToken
}

// say appends a line to the log of a job that would fit.
func (in *install) say(db *pgxpool.Pool, job, token string) error {
	in.t.Helper()
	var stream string
	var hash []byte
	var batch logship.Batch
	err := db.QueryRow(in.t.Context(), `select id, next_seq, head_hash from berth.log_streams where job_id = $1`, job).
		Scan(&stream, &batch.FirstSeq, &hash)
	if err != nil {
		in.t.Fatal(err)
	}
	copy(batch.PrevHash[:], hash)
	batch.Frames = logship.AppendFrame(nil, logship.Record{Time: time.Now(), Source: logship.Stdout, Text: "I am still here"})
	client, err := logapi.NewClientWithResponses("http://127.0.0.1:" + strconv.Itoa(in.port+2))
	if err != nil {
		in.t.Fatal(err)
	}
	_, err = logship.HTTPSink{Client: client, Stream: stream, Token: func() string { return token }}.Append(in.t.Context(), batch)
	return err
}
