package plugins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/conformance"
)

// recordJobs is `berth plugins test --record`.
func recordJobs(ctx context.Context, d Doors, dir, to string) error {
	names, err := conformance.Record(ctx, dir, to)
	if err != nil {
		return err
	}
	output.Printf(d.Err, "recorded %s in %s; commit it, and replay it with the next version\n", output.Plural(len(names), "change"), to)
	return nil
}

// replayed is how one recorded change went.
type replayed struct {
	Change string `json:"change"`
	Status string `json:"status"`
	TookMS int64  `json:"took_ms"`
	Why    string `json:"why,omitempty"`
}

// replayJobs is `berth plugins test --replay`.
func replayJobs(ctx context.Context, d Doors, dir, recording string) error {
	format, err := d.Format()
	if err != nil {
		return err
	}
	all, err := conformance.Replay(ctx, dir, recording)
	if err != nil {
		return err
	}
	rows := []replayed{}
	var broken []error
	for _, r := range all {
		row := replayed{Change: r.Name, Status: "same", TookMS: r.Took.Milliseconds(), Why: r.Why}
		if r.Status == conformance.Broken {
			row.Status = "differs"
			broken = append(broken, fmt.Errorf("change %s: %s", r.Name, r.Why))
		}
		rows = append(rows, row)
	}
	err = output.List(d.Out, format, rows, output.View[replayed]{
		Name: func(r replayed) string { return r.Change },
		Columns: []output.Column[replayed]{
			{Head: "CHANGE", Cell: func(r replayed) string { return r.Change }},
			{Head: "STATUS", Cell: func(r replayed) string { return r.Status }},
			{Head: "TOOK", Yields: true, Cell: func(r replayed) string { return (time.Duration(r.TookMS) * time.Millisecond).String() }},
			{Head: "WHY", Shrinks: true, Cell: func(r replayed) string { return output.OneLine(r.Why) }},
		},
	})
	return errors.Join(err, errors.Join(broken...))
}
