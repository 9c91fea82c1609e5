package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// reportsBudget is how long it may take at p99 until the verdict on a check has taken
	// up a report.
	reportsBudget = 2 * time.Second
	// reportsEvery is how often each install reports.
	reportsEvery = time.Minute
	// badReports is the share of reports that are bad, in percent. They come in rows of
	// some, so that verdicts change.
	badReports = 5
)

// checkApp is an app with a health check and nothing else that runs.
const checkApp = `# action
name    = "answers"
timeout = "30s"

[berth.health_check]
unhealthy_after = 3
healthy_after   = 2

[[triggers]]
type          = "cron"
cron_schedule = "* * * * *"

[[steps]]
name            = "answers"
inline_contents = "true"
`

const checkName = "answers"

// fleet are installs of one app whose runners report a check each minute.
type fleet struct {
	*cluster
	waiters  []*waiter
	minutes  int
	accepted *figures // from the report until runner-api has stored it
	judged   *figures // from then on until the verdict has taken it up

	mu     sync.Mutex
	failed int
}

// runReports starts a system, has n installs report for some minutes, prints how long it
// took until each report counted, and what the database and the services had to do.
func runReports(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	fmt.Fprintln(progress, "starting Berth")
	s, err := startSystem(ctx, opts.bin)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return err
	}
	c := &cluster{system: s, progress: progress}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.store.Close()
	n := opts.components[len(opts.components)-1]
	f := &fleet{
		cluster: c, minutes: opts.rounds,
		accepted: &figures{what: "report → stored", waiting: n}, judged: &figures{what: "stored → verdict", waiting: n},
	}
	if err := f.enrol(ctx, n); err != nil {
		return err
	}
	before, cpu, began, busy := load(), s.processor(), time.Now(), f.database(ctx)
	fmt.Fprintf(progress, "%d installs report each minute, for %d minutes\n", n, f.minutes)
	if err := f.report(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	after := f.database(ctx)
	fmt.Fprintf(out, "\nReports of checks. %d installs, one each minute for %d minutes; %d CPUs, load %s before and %s after; %s, %s/%s.\n\n",
		n, f.minutes, runtime.NumCPU(), before, load(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := table(out, []*figures{f.accepted, f.judged}); err != nil {
		return err
	}
	reports := float64(len(f.judged.took))
	fmt.Fprintf(out, "\nAll processes, Postgres included: %.0f %% of a core. Database: %.1f transactions, %.1f rows written and %.1f KiB of WAL for each report; %.1f MiB larger after %.0f reports.\n",
		100*float64(s.processor()-cpu)/float64(took), float64(after.commits-busy.commits)/reports, float64(after.rows-busy.rows)/reports,
		float64(after.wal-busy.wal)/1024/reports, float64(after.size-busy.size)/(1<<20), reports)
	verdict := "kept"
	if f.judged.percentile(99) > reportsBudget {
		verdict = "missed"
	}
	_, err = fmt.Fprintf(out, "Budget: p99 ≤ %s until the verdict has taken a report up: %s. %d reports were not taken.\n", reportsBudget, verdict, f.failed)
	return err
}

// enrol makes the app with its release, and n live installs of it with a runner each, and
// waits until all of them have settings that schedule the check.
func (f *fleet) enrol(ctx context.Context, n int) error {
	folder := filepath.Join(f.system.dir, "app")
	if err := writeApp(folder, kind{}, 0, ""); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, "actions"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "actions", "answers.toml"), []byte(checkApp), 0o644); err != nil {
		return err
	}
	if err := f.system.berth(ctx, "sync", folder, "--app", "bench-checks", "--wait"); err != nil {
		return err
	}
	runners, err := seed(ctx, f.store, n, f.org)
	if err != nil {
		return err
	}
	err = f.store.Tx(ctx, f.org, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.DB().Exec(ctx, `UPDATE installs SET state = 'live', app_id = r.app_id, release_id = r.id FROM releases r JOIN apps a ON a.id = r.app_id
			WHERE a.name = 'bench-checks' AND installs.created_by = $1`, madeBy)
		return err
	})
	if err != nil {
		return fmt.Errorf("make installs live: %w", err)
	}
	fmt.Fprintf(f.progress, "enrolling %d runners\n", n)
	base := &http.Transport{MaxIdleConns: n + 1, MaxIdleConnsPerHost: n + 1}
	for _, r := range runners {
		w, err := newWaiter(ctx, base, f.system.runnerAPIURL(), r)
		if err != nil {
			return err
		}
		f.waiters = append(f.waiters, w)
	}
	for {
		var ready int
		err := f.store.Tx(ctx, f.org, func(ctx context.Context, tx *store.Tx) error {
			return tx.DB().QueryRow(ctx, `SELECT count(DISTINCT install_id) FROM settings_versions`).Scan(&ready)
		})
		if err != nil || ready >= n {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// report has each install report each minute, spread over it.
func (f *fleet) report(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, w := range f.waiters {
		group.Go(func() error {
			if err := pause(ctx, reportsEvery*time.Duration(i)/time.Duration(len(f.waiters))); err != nil {
				return err
			}
			bad := 0 // how many more reports are bad
			for range f.minutes {
				began := time.Now()
				if bad == 0 && rand.IntN(100) < badReports { //nolint:gosec // any
					bad = 1 + rand.IntN(4) //nolint:gosec // any
				}
				if err := f.once(ctx, w, bad > 0); err != nil {
					return err
				}
				bad = max(bad-1, 0)
				if err := pause(ctx, reportsEvery-time.Since(began)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// once is one report, and the wait until the check has taken it up.
func (f *fleet) once(ctx context.Context, w *waiter, bad bool) error {
	now := time.Now().UTC()
	run := jobspec.Run{Action: checkName, ScheduledAt: now.Truncate(time.Minute), State: "succeeded", StartedAt: now, FinishedAt: now, Outputs: map[string]any{}}
	if bad {
		run.State, run.ExitCode, run.Error = "failed", 1, "exit code 1"
	}
	runID := id.New(id.ActionRun)
	answer, err := w.api.PutRunWithResponse(ctx, runID, run)
	stored := time.Now()
	if err := expect(answer, err, "report"); err != nil {
		f.mu.Lock()
		f.failed++
		f.mu.Unlock()
		fmt.Fprintln(f.progress, err)
		return ctx.Err()
	}
	for {
		var taken bool
		err := f.store.Tx(ctx, f.org, func(ctx context.Context, tx *store.Tx) error {
			return tx.DB().QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM checks WHERE install_id = $1 AND recent @> jsonb_build_array(jsonb_build_object('run_id', $2::text)))`, w.installID, runID).Scan(&taken)
		})
		if err != nil {
			return err
		}
		if taken {
			break
		}
		if err := pause(ctx, lookEvery); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted.add(stored.Sub(now))
	f.judged.add(time.Since(stored))
	return nil
}

// work is what the database has done until now.
type work struct{ commits, rows, wal, size int64 }

func (f *fleet) database(ctx context.Context) (w work) {
	// What cannot be read is left at 0: the figures say so.
	_ = f.store.Pool().QueryRow(ctx, `SELECT xact_commit, tup_inserted + tup_updated + tup_deleted, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_database_size(datname)
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&w.commits, &w.rows, &w.wal, &w.size)
	return w
}
