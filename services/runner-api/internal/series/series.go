// Package series stores the numbers that runs of actions wrote, and those of runners about
// themselves, as points of series. A runner is not trusted with them: they are held to the limits of jobspec again, and
// whose they are follows from the run, never from what the runner says.
package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
)

// Run is a run that has ended, and what it wrote.
type Run struct {
	InstallID, Action, ID string
	EndedAt               time.Time
	Metrics               []jobspec.Metric
	Problem               string // what its runner left out
}

// Writer writes points.
type Writer struct{ Log *slog.Logger }

// Store keeps the numbers of a run. The caller's transaction takes the end of the run,
// which is taken once, and so this is called once for it. What cannot be kept is left
// out, and the run says so; only a database that cannot answer is an error.
func (w Writer) Store(ctx context.Context, tx *database.Tx, run Run) error {
	if len(run.Metrics) == 0 && run.Problem == "" {
		return nil
	}
	if run.EndedAt.IsZero() {
		run.EndedAt = time.Now().UTC()
	}
	kept, problems := jobspec.KeepMetrics(run.Metrics)
	stored, err := put(ctx, tx, run, kept)
	switch {
	case errors.Is(err, fault.ErrInvalid):
		w.Log.ErrorContext(ctx, "numbers of a run cannot be stored", "org_id", tx.OrgID(), "run_id", run.ID, "err", err)
		problems = append(problems, "the control plane could not store the numbers; its log has the reason")
	case err != nil:
		return err
	case stored < len(kept):
		problems = append(problems, fmt.Sprintf("an install keeps %d series, %d new ones were left out", jobspec.MaxMetricSeries, len(kept)-stored))
	}
	said := jobspec.SayProblems(problems)
	if run.Problem != "" {
		said = jobspec.CutMetricsError(strings.TrimSuffix(run.Problem+"; "+said, "; "))
	}
	p := runnerdb.RunnerSetRunMetricsParams{ID: run.ID, MetricsKept: int32(stored), MetricsError: optional.Of(said)}
	if stored > 0 {
		p.MetricsAt = &run.EndedAt
	}
	return tx.RunnerSetRunMetrics(ctx, p)
}

// StoreOwn keeps a runner's own numbers, as series without an action. A sample that is not newer
// than what is known is left out, so a report that comes again changes nothing. What breaks a
// limit is left out too.
func (w Writer) StoreOwn(ctx context.Context, tx *database.Tx, installID string, report jobspec.Samples) error {
	known, err := tx.RunnerNewestSample(ctx, installID)
	if err != nil {
		return fmt.Errorf("read the newest sample: %w", err)
	}
	for _, sample := range report.Newer(known) {
		kept, problems := jobspec.KeepMetrics(sample.Metrics)
		stored, err := put(ctx, tx, Run{InstallID: installID, EndedAt: sample.At}, kept)
		if err != nil {
			return err
		}
		if len(problems) > 0 || stored < len(kept) {
			w.Log.WarnContext(ctx, "numbers of a runner were left out", "org_id", tx.OrgID(), "install_id", installID, "left_out", len(kept)-stored, "err", jobspec.SayProblems(problems))
		}
	}
	return nil
}

// put writes series and points, and says how many: all of them, or none with an error,
// after which the transaction goes on.
func put(ctx context.Context, tx *database.Tx, run Run, kept []jobspec.Metric) (stored int, err error) {
	if len(kept) == 0 {
		return 0, nil
	}
	save, err := tx.Raw().Begin(ctx) // a savepoint: the run's end is taken whatever comes
	if err != nil {
		return 0, fmt.Errorf("begin storing numbers: %w", err)
	}
	if stored, err = insert(ctx, tx, run, kept); err != nil {
		return 0, errors.Join(err, save.Rollback(ctx))
	}
	return stored, save.Commit(ctx)
}

func insert(ctx context.Context, tx *database.Tx, run Run, kept []jobspec.Metric) (stored int, err error) {
	type key struct{ name, labels string }
	p := runnerdb.RunnerPutSeriesParams{InstallID: run.InstallID, Action: run.Action, At: run.EndedAt, RunID: run.ID, Most: jobspec.MaxMetricSeries}
	values := map[key]float64{}
	for _, m := range kept {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		labels, err := json.Marshal(m.Labels) // its keys are in order
		if err != nil {
			return 0, fmt.Errorf("labels of a metric: %w", err)
		}
		of := key{m.Name, capsule.DigestBytes(labels)}
		values[of] = m.Value
		p.Ids, p.Names, p.Labels, p.LabelsKeys = append(p.Ids, id.New(id.Series)), append(p.Names, m.Name), append(p.Labels, string(labels)), append(p.LabelsKeys, of.labels)
		p.Kinds, p.Helps, p.Values = append(p.Kinds, string(m.Kind)), append(p.Helps, m.Help), append(p.Values, m.Value)
	}
	rows, err := tx.RunnerPutSeries(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("store series: %w", err)
	}
	points := runnerdb.RunnerPutPointsParams{At: run.EndedAt, RunID: run.ID}
	for _, row := range rows {
		points.Series, points.Values = append(points.Series, row.Number), append(points.Values, values[key{row.Name, row.LabelsKey}])
	}
	if err := tx.RunnerPutPoints(ctx, points); err != nil {
		return 0, fmt.Errorf("store points: %w", err)
	}
	return len(rows), nil
}
