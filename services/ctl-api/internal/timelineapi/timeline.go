package timelineapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apps"
	"github.com/berth-dev/berth/services/ctl-api/internal/configdiff"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/ctl-api/internal/timeline"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListTimeline answers what happened to an install.
func (h *Past) ListTimeline(ctx context.Context, req apigen.ListTimelineRequestObject) (apigen.ListTimelineResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	q := timeline.Query{
		Resource: optional.Value(p.Resource), Actor: optional.Value(p.Actor), Since: optional.Value(p.Since), Until: optional.Value(p.Until),
		Oldest: optional.Value(p.Order) == apigen.ListTimelineParamsOrderOldest, Most: limit + 1,
	}
	var err error
	if q.Kinds, err = stream.KindsOf(optional.Value(p.Kind)); err != nil {
		return nil, err
	}
	if after := optional.Value(p.After); after != "" {
		place, err := timeline.PlaceOf(after)
		if err != nil {
			return nil, err
		}
		q.After = &place
	}
	out := apigen.ListTimeline200JSONResponse{}
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		q.Install, q.WithApp = found, mayReadApp(ctx, found)
		entries, err := timeline.Read(ctx, tx, q)
		if err != nil {
			return err
		}
		entries, out.Next = paging.Page(entries, limit, func(e timeline.Entry) string { return e.Place().String() })
		out.Items = entriesView(entries)
		return nil
	})
	return out, err
}

// lookBack is how many entries are searched for a failure and for what was before it.
const lookBack = 2000

// GetBeforeFailure answers what changed before an install broke.
func (h *Past) GetBeforeFailure(ctx context.Context, req apigen.GetBeforeFailureRequestObject) (apigen.GetBeforeFailureResponseObject, error) {
	var out apigen.GetBeforeFailure200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		q := timeline.Query{Install: found, WithApp: mayReadApp(ctx, found), Most: lookBack}
		if req.Params.At != nil {
			q.Until = req.Params.At.Add(time.Microsecond) // it counts itself
		}
		entries, err := timeline.Read(ctx, tx, q)
		if err != nil {
			return err
		}
		out.Suspects = []apigen.Suspect{}
		b, broke := timeline.FindBreak(entries)
		if !broke {
			return nil
		}
		d, err := h.differences(ctx, tx, found, b)
		if err != nil {
			return err
		}
		out.Failure = optional.Of(entryView(b.First))
		if b.Good != nil {
			out.Good = optional.Of(entryView(*b.Good))
		}
		for _, s := range timeline.Suspects(b, d) {
			out.Suspects = append(out.Suspects, suspectView(s))
		}
		return nil
	})
	return out, err
}

// differences compares the install when all was well with what it was when it broke.
// What cannot be known, because its history begins later, is left out.
func (h *Past) differences(ctx context.Context, tx *database.Tx, install ctldb.Install, b timeline.Break) (timeline.Differences, error) {
	var d timeline.Differences
	if b.Good == nil {
		return d, nil
	}
	from, err := h.Snapshots.At(ctx, tx, install, b.Good.At)
	if errors.Is(err, fault.ErrConflict) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	to, err := h.Snapshots.At(ctx, tx, install, b.First.At)
	if err != nil {
		return d, err
	}
	if d.Snapshot, err = h.Snapshots.Compare(ctx, tx, from, to); err != nil {
		return d, err
	}
	d.FromRelease, d.ToRelease = int(optional.Value(from.Install.ReleaseNumber)), int(optional.Value(to.Install.ReleaseNumber))
	// A workflow knows better: the install moves to its release once it has succeeded.
	if b.Good.Release != 0 {
		d.FromRelease = b.Good.Release
	}
	if b.First.Release != 0 {
		d.ToRelease = b.First.Release
	}
	d.Components, err = buildsThatDiffer(ctx, tx, install.AppID, [2]int{d.FromRelease, d.ToRelease})
	return d, err
}

// buildsThatDiffer names the components, and the sandbox, that differ between two
// releases of an app; none when one of them is 0.
func buildsThatDiffer(ctx context.Context, tx *database.Tx, appID string, numbers [2]int) ([]string, error) {
	if numbers[0] == numbers[1] || slices.Contains(numbers[:], 0) {
		return nil, nil
	}
	var sides [2]configdiff.Version
	for i, number := range numbers {
		row, err := tx.FindReleaseOfApp(ctx, ctldb.FindReleaseOfAppParams{AppID: appID, Number: int32(number)})
		if err != nil {
			return nil, fmt.Errorf("find release %d: %w", number, err)
		}
		if sides[i], err = apps.VersionOfRelease(ctx, tx, row); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, o := range configdiff.Compare(sides[0], sides[1]) {
		switch o.Kind {
		case configdiff.KindComponent:
			names = append(names, o.Name)
		case configdiff.KindSandbox:
			names = append(names, o.Kind)
		}
	}
	slices.Sort(names)
	return names, nil
}

func suspectView(s timeline.Suspect) apigen.Suspect {
	view := apigen.Suspect{Text: s.Text, Why: s.Why, Weight: s.Weight}
	if !s.At.IsZero() {
		view.At = &s.At
	}
	if s.Entry != nil {
		entry := entryView(*s.Entry)
		view.Entry = &entry
	}
	if len(s.Changes) > 0 {
		changes := changesView(s.Changes)
		view.Changes = &changes
	}
	return view
}

func entriesView(entries []timeline.Entry) []apigen.TimelineEntry {
	out := make([]apigen.TimelineEntry, 0, len(entries))
	for _, e := range entries {
		out = append(out, entryView(e))
	}
	return out
}

func entryView(e timeline.Entry) apigen.TimelineEntry {
	view := apigen.TimelineEntry{
		Seq: e.Seq, At: e.At, Kind: string(e.Kind), Text: e.Text, OfApp: e.OfApp, Actor: optional.Of(e.Body.Actor), Resource: optional.Of(e.Body.Resource),
		WorkflowID: optional.Of(e.Body.WorkflowID), ChangeID: optional.Of(e.Body.ChangeID), StepID: optional.Of(e.Body.StepID),
		RunID: optional.Of(e.Body.RunID), RunnerID: optional.Of(e.Body.RunnerID), InputsVersion: optional.Of(e.Body.InputsVersion), Error: optional.Of(e.Error),
	}
	if e.Release != 0 && e.Body.ReleaseID != "" {
		view.Release = &apigen.NumberRef{ID: e.Body.ReleaseID, Number: e.Release}
	}
	return view
}
