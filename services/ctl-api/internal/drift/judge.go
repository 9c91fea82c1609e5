package drift

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// What is kept for each resource: the newest.
const (
	keepLooks    = 20
	keepEpisodes = 100
)

// How an episode ends.
const (
	byClean       = "clean"
	byDeployed    = "deployed"
	byNotLookedAt = "not_looked_at"
)

// Judged is an install that is judged.
type Judged struct {
	Install ctldb.Install
	Surveys []releaseview.Survey // what its runner looks at
	Now     time.Time
}

// Judge decides on the newest looks at each resource of an install, and writes episodes and
// whether resources drifted. It is called under the install's row, and may be repeated.
func Judge(ctx context.Context, tx *database.Tx, j Judged) error {
	rows, err := tx.OpenDrift(ctx, j.Install.ID)
	if err != nil {
		return fmt.Errorf("read drift: %w", err)
	}
	open := map[string]*ctldb.DriftEpisode{}
	for i := range rows {
		open[rows[i].ResourceID] = &rows[i]
	}
	for _, s := range j.Surveys {
		if s.Look == nil {
			continue
		}
		episode := open[s.Resource.ID]
		delete(open, s.Resource.ID)
		if episode != nil && episode.ChangeID != s.Look.Drift.Change {
			if err := j.end(ctx, tx, *episode, byDeployed); err != nil {
				return err
			}
			episode = nil
		}
		if err := j.judge(ctx, tx, s.Resource, episode); err != nil {
			return fmt.Errorf("judge drift of %s: %w", s.Resource.Name, err)
		}
	}
	return j.endOthers(ctx, tx, open)
}

// judge decides on one resource that the runner looks at.
func (j Judged) judge(ctx context.Context, tx *database.Tx, resource ctldb.Resource, episode *ctldb.DriftEpisode) error {
	change := optional.Value(resource.LiveChangeID)
	rows, err := tx.RecentLooks(ctx, ctldb.RecentLooksParams{ResourceID: resource.ID, ChangeID: change, Most: keepLooks})
	if err != nil {
		return err
	}
	var looks []Look
	for _, row := range rows {
		if row.Error == "" {
			asked := resource.DriftAskedAt != nil && row.ScheduledAt.Equal(resource.DriftAskedAt.Truncate(time.Second))
			looks = append(looks, Look{At: row.ScheduledAt, Digest: row.Digest, Class: row.Class, AtOnce: row.AtOnce, Asked: asked})
		}
	}
	step, since := Next(episode != nil, looks)
	switch step {
	case Open:
		err = tx.OpenDriftEpisode(ctx, ctldb.OpenDriftEpisodeParams{
			ID: id.New(id.Drift), InstallID: j.Install.ID, ResourceID: resource.ID, ChangeID: change,
			Class: looks[0].Class, Digest: looks[0].Digest, OpenedAt: since, SeenAt: looks[0].At,
		})
	case Keep:
		err = tx.KeepDriftEpisode(ctx, ctldb.KeepDriftEpisodeParams{ID: episode.ID, Class: looks[0].Class, Digest: looks[0].Digest, SeenAt: looks[0].At})
	case Close:
		err = j.end(ctx, tx, *episode, byClean)
	}
	if err != nil {
		return err
	}
	switch {
	case step == Open || step == Keep:
		err = tx.SetDrift(ctx, ctldb.SetDriftParams{ID: resource.ID, Drift: "drifted"})
	case step == Close || episode == nil && len(looks) > 0 && looks[0].Digest == "":
		err = tx.SetDrift(ctx, ctldb.SetDriftParams{ID: resource.ID, Drift: "none"})
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := tx.TrimLooks(ctx, resource.ID); err != nil {
		return err
	}
	return tx.DropLooks(ctx, ctldb.DropLooksParams{ResourceID: resource.ID, Keep: keepLooks})
}

// endOthers ends the episodes of resources that no runner looks at any more. While a change
// goes on with one, or has left it half-way, its episode stays.
func (j Judged) endOthers(ctx context.Context, tx *database.Tx, open map[string]*ctldb.DriftEpisode) error {
	if len(open) == 0 {
		return nil
	}
	resources, err := tx.ResourcesOfInstall(ctx, j.Install.ID)
	if err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	for _, r := range resources {
		episode := open[r.ID]
		if episode == nil || r.State != model.ResourceLive && r.State != model.ResourceAbsent {
			continue
		}
		if err := j.end(ctx, tx, *episode, byNotLookedAt); err != nil {
			return err
		}
		if err := tx.SetDrift(ctx, ctldb.SetDriftParams{ID: r.ID, Drift: "unknown"}); err != nil {
			return err
		}
	}
	return nil
}

func (j Judged) end(ctx context.Context, tx *database.Tx, e ctldb.DriftEpisode, by string) error {
	if err := tx.CloseDriftEpisode(ctx, ctldb.CloseDriftEpisodeParams{ID: e.ID, ClosedAt: j.Now, ClosedBy: by}); err != nil {
		return err
	}
	return tx.DropDriftEpisodes(ctx, ctldb.DropDriftEpisodesParams{ResourceID: e.ResourceID, Keep: keepEpisodes})
}
