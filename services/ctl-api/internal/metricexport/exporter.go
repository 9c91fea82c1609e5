package metricexport

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// batchSize bounds a batch, and so its bytes: a point takes at most 4 KiB.
	batchSize = 1000
	// claimFor is longer than a turn: reading, sendTimeout and the position.
	claimFor = time.Minute
	// lookEvery is the pause when everything was sent, or somebody else sends.
	lookEvery = 10 * time.Second
	// The pause after a failure begins with shortest and doubles up to longest; a
	// collector that asks for more gets at most patience.
	shortest = 5 * time.Second
	longest  = 5 * time.Minute
	patience = time.Hour
)

var (
	instruments = telemetry.InstrumentsOf("services/ctl-api/metricexport")
	exported    = instruments.Counter("metric.export.points", "{point}", "points of installs' series that the collector took")
	failures    = instruments.Counter("metric.export.failures", "{batch}", "batches that the collector did not take")
	lost        = instruments.Counter("metric.export.lost", "{point}", "points that never reach the collector, by why")
	lag         = instruments.Gauge("metric.export.lag", "s", "how long the oldest point that was not sent has been stored; of all orgs, so the same from each replica")
)

// Exporter sends what is new. Each replica may run one.
type Exporter struct {
	Store  *database.Store
	Sender *Sender
	Log    *slog.Logger

	most   int // points of the next batch; fewer after one was refused
	failed int // how often in a row a batch is to be sent again
}

// Run sends until ctx ends.
func (e *Exporter) Run(ctx context.Context) error {
	defer instruments.Observe(e.observe, lag)()
	for {
		more, err := e.Turn(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			e.Log.WarnContext(ctx, "numbers of installs not exported", "err", err)
		case more:
			continue
		}
		if pause.For(ctx, lookEvery) != nil {
			return nil
		}
	}
}

func (e *Exporter) observe(ctx context.Context, o metric.Observer) error {
	return e.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		behind, err := tx.MetricExportLag(ctx)
		if err != nil {
			return fmt.Errorf("read how far the export is behind: %w", err)
		}
		o.ObserveFloat64(lag, behind)
		return nil
	})
}

// Turn sends one batch, when it is this exporter's turn; more says that there may be
// another one to send at once. Not for concurrent use.
func (e *Exporter) Turn(ctx context.Context) (more bool, err error) {
	if e.most == 0 {
		e.most = batchSize
	}
	claimant := id.New("exp")
	at, points, err := e.claim(ctx, claimant)
	if err != nil || at == nil {
		return false, err
	}
	e.tellDropped(ctx, at.Lost)
	var wait time.Duration
	next := *at
	if len(points) > 0 {
		last := points[len(points)-1]
		behind := ctldb.ClaimMetricExportRow{Tx: last.Tx, At: last.At, Series: last.Series, Lost: at.Lost}
		said := e.Sender.post(ctx, points, time.Now())
		if ctx.Err() == nil || said.status != 0 { // else we were stopped: that is no word of the collector's
			var passed bool
			if passed, wait = e.judge(ctx, points, said); passed {
				next = behind
			}
			more = wait == 0
		}
	}
	return more, e.keep(ctx, claimant, next, wait)
}

// claim reads the position and the batch behind it; nil when it is not our turn. The batch is
// read in a transaction of its own, so that the claim is seen and holds nothing back.
func (e *Exporter) claim(ctx context.Context, claimant string) (at *ctldb.ClaimMetricExportRow, points []ctldb.PointsToExportRow, err error) {
	err = e.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ClaimMetricExport(ctx, ctldb.ClaimMetricExportParams{Claimant: claimant, Seconds: claimFor.Seconds()})
		if at = nil; err == nil && len(rows) > 0 {
			at = &rows[0]
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("claim the export: %w", err)
	}
	if at == nil {
		return nil, nil, nil
	}
	err = e.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		points, err = tx.PointsToExport(ctx, ctldb.PointsToExportParams{AfterTx: at.Tx, AfterAt: at.At, AfterSeries: at.Series, Most: int32(e.most)})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read points to export: %w", err)
	}
	return at, points, nil
}

// judge logs and counts what a collector said; passed when the position moves behind the
// batch, else the pause before it is sent again.
func (e *Exporter) judge(ctx context.Context, points []ctldb.PointsToExportRow, said answer) (passed bool, wait time.Duration) {
	n := int64(len(points))
	if said.fate() != taken {
		failures.Add(ctx, 1)
	}
	switch said.fate() {
	case taken:
		e.failed, e.most = 0, min(batchSize, e.most*2)
		exported.Add(ctx, n-min(n, max(0, said.rejected)))
		if said.rejected > 0 || said.said != "" {
			lost.Add(ctx, max(0, said.rejected), because("rejected"))
			e.Log.WarnContext(ctx, "collector left points out", "points", said.rejected, "of", n, "said", said.said)
		}
		return true, 0
	case refused:
		e.failed = 0
		if n > 1 {
			e.most = int(n+1) / 2
			return false, 0
		}
		e.most = 1
		lost.Add(ctx, 1, because("refused"))
		e.Log.ErrorContext(ctx, "collector refuses a point, which is skipped", "status", said.status, "err", said.err,
			"org_id", points[0].OrgID, "install_id", points[0].InstallID, "metric", points[0].Name, "at", points[0].At)
		return true, 0
	default:
		e.failed++
		wait = backOff(e.failed, said.retryAfter)
		e.Log.WarnContext(ctx, "collector did not take points, which are sent again", "status", said.status, "err", said.err, "points", n, "pause", wait)
		return false, wait
	}
}

// backOff is the pause after so many failures in a row, the first is 1.
func backOff(failed int, asked time.Duration) time.Duration {
	own := min(longest, shortest<<min(failed-1, 10))
	return max(own, min(asked, patience))
}

func (e *Exporter) tellDropped(ctx context.Context, n int64) {
	if n > 0 {
		lost.Add(ctx, n, because("retention"))
		e.Log.ErrorContext(ctx, "points were deleted before they were exported", "points", n)
	}
}

// keep stores the position, also while we are stopped: else the batch would be sent twice.
func (e *Exporter) keep(ctx context.Context, claimant string, at ctldb.ClaimMetricExportRow, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := e.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		ours, err := tx.KeepMetricExport(ctx, ctldb.KeepMetricExportParams{
			Claimant: claimant, Tx: at.Tx, At: at.At, Series: at.Series, Told: at.Lost, Pause: wait.Seconds(),
		})
		if err == nil && !ours {
			e.Log.WarnContext(ctx, "another replica took the export over; it sends the last batch again")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("store how far the export came: %w", err)
	}
	return nil
}

func because(why string) metric.AddOption { return metric.WithAttributes(attribute.String("why", why)) }
