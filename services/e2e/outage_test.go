package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// outage is three leases long.
const outage = 3 * time.Minute

var services = []string{"ctl-api", "runner-api", "log-ingest", "builder"}

// TestOutage takes the control plane away for 3 minutes, in the middle of an
// apply. The install goes on: its check runs each minute, the apply comes to
// its end. Afterwards everything is known, each thing once.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()

	// The check leaves a trace of its own of each time that it really ran, and
	// the apply takes a good part of the outage.
	edit(t, filepath.Join(in.app, "actions", "alive.toml"), "echo alive", `echo \"$BERTH_JOB_ID $(date -u +%FT%H:%M:%SZ)\" >>\"$DIR/ran\" && echo alive`)
	edit(t, filepath.Join(in.app, "components", "one.toml"), `lines  = "20"`, `lines  = "600"`)
	in.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "one", "two", "three").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	var first time.Time
	in.eventually(2*time.Minute, "the check ran by its schedule and was reported", func() error {
		if len(in.ran()) == 0 {
			return errors.New("it did not run")
		}
		return db.QueryRow(t.Context(), `select max(scheduled_at) from berth.action_runs
			where action = 'alive' and trigger = 'cron' and state = 'succeeded' having max(scheduled_at) > now() - interval '1 minute'`).Scan(&first)
	})

	in.change("through the outage")
	w := in.deploy(true, "one")
	in.sinceEffect("begin one through the outage")
	began := time.Now()
	in.stopParts(services...)
	t.Logf("the control plane went away at %s, after the tick of %s", began.UTC().Format(time.TimeOnly), first.UTC().Format(time.TimeOnly))
	last := first.Add(outage)
	in.eventually(outage+2*time.Minute, "the check goes on without the control plane for 3 minutes", func() error {
		if left := outage - time.Since(began); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		if err := in.tickIs("alive", last); err != nil {
			return err
		}
		// The book is written first, then the check runs.
		if !slices.ContainsFunc(in.ran(), func(at string) bool { return strings.HasPrefix(at, last.UTC().Format("2006-01-02T15:04")) }) {
			return errors.New("its check has not run yet")
		}
		return nil
	})
	if err := in.call(http.MethodGet, "/me", nil, nil); err == nil {
		t.Fatal("the control plane was there all the time")
	}
	// Only the runner's own scheduler can have run the check up to here; once the
	// control plane is back, the deploy runs it too.
	ran := in.ran()
	in.signal(in.up.Process.Pid, syscall.SIGCONT)
	for _, name := range services {
		in.back(name)
	}

	t.Run("each tick of the check is there exactly once", func(t *testing.T) {
		in := in.in(t)
		var want []string
		for at := first; !at.After(last); at = at.Add(time.Minute) {
			want = append(want, at.UTC().Format(time.RFC3339)+" succeeded")
		}
		var got []string
		in.eventually(goOnTimeout, "the ticks of the outage are reported", func() error {
			got = in.ticks(db, first, last)
			if !slices.Equal(got, want) {
				return fmt.Errorf("there are %v, want %v", got, want)
			}
			return nil
		})
		// What the rows say is what happened: the check counted for itself.
		perMinute := map[string]int{}
		for _, at := range ran {
			perMinute[at[:len("2006-01-02T15:04")]]++
		}
		for at := first; !at.After(last); at = at.Add(time.Minute) {
			if n := perMinute[at.UTC().Format("2006-01-02T15:04")]; n != 1 {
				t.Errorf("at %s the check ran %d times: %v", at, n, ran)
			}
		}
	})

	t.Run("the apply that was under way ended well, once", func(t *testing.T) {
		in := in.in(t)
		got := in.finished(w.ID, time.Minute)
		if got.State != "succeeded" {
			t.Fatalf("workflow: %s", in.explain(got))
		}
		for _, effect := range []string{"begin one through the outage", "end one through the outage"} {
			if n := count(in.effects(), effect); n != 1 {
				t.Errorf("effect %q is there %d times: %v", effect, n, in.effects())
			}
		}
		if slices.Contains(in.effects(), "DOUBLE one") {
			t.Errorf("two engines at once: %v", in.effects())
		}
		c := step(got, "component/one").Change
		var change ctlapi.Change
		in.get("/changes/"+c.ID, &change)
		for _, stream := range streams(change) {
			in.eventually(goOnTimeout, "its log is complete", func() error {
				if _, complete := in.log(stream); !complete {
					return errors.New("lines are missing")
				}
				return nil
			})
		}
		lines, _ := in.log(streams(change)[len(streams(change))-1])
		for i := 1; i <= 600; i++ {
			want := fmt.Sprintf("one through the outage line %d of 600", i)
			if n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasSuffix(l, want) })); n != 1 {
				t.Fatalf("line %q is there %d times", want, n)
			}
		}
	})

	t.Run("no job was dispatched twice", func(t *testing.T) {
		var jobs int
		if err := db.QueryRow(t.Context(), `select count(*) from berth.runner_jobs where state = 'succeeded'`).Scan(&jobs); err != nil || jobs < 5 {
			t.Errorf("%d jobs succeeded (%v)", jobs, err)
		}
		for _, twice := range column(t, db, `select j.id || ' ' || j.operation || ' ' || j.state || ', attempt ' || j.attempt || ', leases ' || count(l.id)
			from berth.runner_jobs j left join berth.leases l on l.job_id = j.id
			group by j.id having j.attempt <> 1 or count(l.id) <> 1`) {
			t.Errorf("job %s", twice)
		}
		for _, late := range column(t, db, `select id from berth.runner_jobs where result ? 'late'`) {
			t.Errorf("job %s got a second report", late)
		}
	})

	t.Run("the install is healthy again", func(t *testing.T) {
		in := in.in(t)
		in.eventually(goOnTimeout, "health", func() error {
			var h ctlapi.Health
			if err := in.call(http.MethodGet, "/installs/acme/health", nil, &h); err != nil || h.Verdict != "healthy" {
				return fmt.Errorf("%s %v", h.Verdict, err) //nolint:errorlint // there may be none
			}
			return nil
		})
	})
}

// stopParts ends parts of the system in a way that nobody starts them again:
// who would is stopped first.
func (s *system) stopParts(names ...string) {
	s.t.Helper()
	pids := map[string]int{}
	for _, name := range names {
		pids[name] = s.pid(name)
	}
	s.signal(s.up.Process.Pid, syscall.SIGSTOP)
	// A stopped supervisor could not be asked to go down.
	s.t.Cleanup(func() { _ = s.up.Process.Signal(syscall.SIGCONT) })
	for _, pid := range pids {
		s.signal(pid, syscall.SIGKILL)
	}
}

// ran are the times at which the check ran by its schedule, by its own account.
// A workflow that asks for the check does so by a job.
func (in *install) ran() []string {
	raw, err := os.ReadFile(filepath.Join(in.files, "ran"))
	if err != nil {
		return nil
	}
	var times []string
	for line := range strings.Lines(string(raw)) {
		if id, at, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(id, "arn_") {
			times = append(times, at)
		}
	}
	return times
}

// tickIs asks the runner's own book whether it is past a tick of an action.
func (in *install) tickIs(action string, want time.Time) error {
	raw, err := os.ReadFile(filepath.Join(in.dir, "runners", in.runner, "schedule.json"))
	if err != nil {
		return err
	}
	var book map[string]time.Time
	if err := json.Unmarshal(raw, &book); err != nil {
		return err
	}
	if book[action].Before(want) {
		return fmt.Errorf("the last tick was that of %s", book[action])
	}
	return nil
}

// ticks are the scheduled runs of a span, with how they ended.
func (in *install) ticks(db *pgxpool.Pool, from, to time.Time) []string {
	in.t.Helper()
	return column(in.t, db, `select to_char(scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' ' || state from berth.action_runs
		where install_id = $1 and action = 'alive' and trigger = 'cron' and scheduled_at between $2 and $3 order by scheduled_at, id`, in.id, from, to)
}

// column reads a query of one text column.
func column(t *testing.T, db *pgxpool.Pool, query string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// in is the same install, reporting to a sub-test.
func (in *install) in(t *testing.T) *install {
	sub := *in
	sub.system = in.with(t)
	return &sub
}
