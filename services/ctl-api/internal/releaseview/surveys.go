package releaseview

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Survey is a live component of a kind that runners look at for drift, or the sandbox.
type Survey struct {
	Resource ctldb.Resource
	// Look is what the runner works from, nil when it does not look. Why says why not, or
	// what is wrong with its schedule.
	Look *jobspec.Scheduled
	Why  string
}

// Surveys lists what a runner looks at for drift. What a change goes on with, or left
// half-way, is no part of it. app and tree are those of the install's own release.
func Surveys(ctx context.Context, q *ctldb.Queries, install ctldb.Install, app *appconfig.App, tree json.RawMessage) ([]Survey, error) {
	live, err := liveResources(ctx, q, install, app, jobspec.KindInfo.Drifts)
	if err != nil {
		return nil, err
	}
	var ids, resources []string
	for _, l := range live {
		ids, resources = append(ids, *l.resource.LiveChangeID), append(resources, l.resource.ID)
	}
	marks, err := stateMarks(ctx, q, resources)
	if err != nil {
		return nil, err
	}
	ends, err := q.EndsOfChanges(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read ends of changes: %w", err)
	}
	at := map[string]time.Time{}
	for _, end := range ends {
		at[end.ID] = end.FinishedAt
	}
	var nuon map[string]any
	if len(tree) > 0 {
		if err := json.Unmarshal(tree, &nuon); err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
	}
	state := interpolate.NewState(nuon)
	var surveys []Survey
	for _, l := range live {
		if l.resource.State != model.ResourceLive {
			continue
		}
		look, why, err := orders.Survey(orders.Surveyed{
			Resource: l.name(), Live: l.revision, Change: *l.resource.LiveChangeID, LiveAt: at[*l.resource.LiveChangeID],
			AskedAt: optional.Value(l.resource.DriftAskedAt), State: state, Mark: marks[l.resource.ID], Rehearsed: install.Rehearsal != nil,
		})
		if err != nil {
			return nil, err
		}
		survey := Survey{Resource: l.resource, Why: why}
		if look.Drift != nil {
			survey.Look = &look
		}
		surveys = append(surveys, survey)
	}
	return surveys, nil
}

// stateMarks are the states of resources that count, of those that have one.
func stateMarks(ctx context.Context, q *ctldb.Queries, resources []string) (map[string]*jobspec.StateMark, error) {
	rows, err := q.StateMarks(ctx, resources)
	if err != nil {
		return nil, fmt.Errorf("read states: %w", err)
	}
	marks := map[string]*jobspec.StateMark{}
	for _, r := range rows {
		marks[r.ResourceID] = &jobspec.StateMark{Lineage: r.Lineage, Serial: r.Serial, Digest: r.Digest}
	}
	return marks, nil
}
