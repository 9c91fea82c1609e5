package releaseview

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Missing reads what a release has for an install and is not live there: the
// sandbox, and the components that are on, by name.
func Missing(ctx context.Context, q *ctldb.Queries, install ctldb.Install, releaseID string) ([]string, error) {
	app, err := App(ctx, q, releaseID)
	if err != nil {
		return nil, err
	}
	toggles := map[string]bool{}
	if err := json.Unmarshal(install.Toggles, &toggles); err != nil {
		return nil, fmt.Errorf("read toggles: %w", err)
	}
	items, err := q.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return nil, fmt.Errorf("read release items: %w", err)
	}
	resources, err := q.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	live := map[string]bool{}
	for _, r := range resources {
		live[string(r.Kind)+"/"+r.Name] = r.State == model.ResourceLive
	}
	var missing []string
	for _, item := range items {
		if item.Kind == model.KindScripts {
			continue
		}
		c := app.Component(item.Name)
		off := item.Kind == model.KindComponent && c != nil && !c.EnabledIn(toggles)
		if !off && !live[string(item.Kind)+"/"+item.Name] {
			missing = append(missing, item.Name)
		}
	}
	return missing, nil
}
