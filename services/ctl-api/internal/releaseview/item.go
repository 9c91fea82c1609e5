package releaseview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Item is what a release has of one resource: the revision and its artifact.
type Item struct {
	RevisionID string
	Artifact   jobspec.Artifact
	Revision   orders.Revision
}

// Resource is one of an install whose inputs are at a version, which says what
// the install overrides.
type Resource struct {
	Row           ctldb.Resource
	InputsVersion int32
}

// ItemOf reads what a release has of a resource. A resource that the release does
// not have is an error.
func ItemOf(ctx context.Context, q *ctldb.Queries, releaseID string, of Resource) (Item, error) {
	if of.Row.ComponentID == nil {
		return Item{}, noItem(releaseID, of)
	}
	row, err := q.ReleaseItemOf(ctx, ctldb.ReleaseItemOfParams{ReleaseID: releaseID, ComponentID: *of.Row.ComponentID})
	if errors.Is(err, fault.ErrNotFound) {
		return Item{}, noItem(releaseID, of)
	}
	if err != nil {
		return Item{}, fmt.Errorf("read release item: %w", err)
	}
	overrides, err := Overrides(ctx, q, of.Row.InstallID, of.InputsVersion)
	if err != nil {
		return Item{}, err
	}
	app, err := App(ctx, q, releaseID)
	return Item{
		RevisionID: row.RevisionID, Artifact: jobspec.Artifact{Repository: row.ArtifactRepository, Digest: row.ArtifactDigest},
		Revision: orders.Revision{Sandbox: of.Row.Kind == model.KindSandbox, Spec: row.Spec, Override: overrides[of.Row.Name], Commit: row.SourceCommit, SignedBy: row.SignedBy, App: app},
	}, err
}

func noItem(releaseID string, of Resource) error {
	return fmt.Errorf("release %s has no item for resource %s", releaseID, of.Row.Name)
}

// Overrides reads what a version of an install's inputs overrides, by component.
func Overrides(ctx context.Context, q *ctldb.Queries, installID string, version int32) (map[string]appconfig.InstallComponent, error) {
	if version == 0 {
		return nil, nil
	}
	row, err := q.GetInputs(ctx, ctldb.GetInputsParams{InstallID: installID, Version: version})
	if err != nil {
		return nil, fmt.Errorf("read inputs: %w", err)
	}
	overrides := map[string]appconfig.InstallComponent{}
	if err := json.Unmarshal(row.Overrides, &overrides); err != nil {
		return nil, fmt.Errorf("read overrides: %w", err)
	}
	return overrides, nil
}
