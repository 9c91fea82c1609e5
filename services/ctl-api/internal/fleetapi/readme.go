package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/readme"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetInstallReadme answers the page of an install.
func (h *Fleet) GetInstallReadme(ctx context.Context, req apigen.GetInstallReadmeRequestObject) (apigen.GetInstallReadmeResponseObject, error) {
	var source string
	var state ctldb.StateVersion
	var resources []ctldb.ResourcesOfInstallsRow
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		notYet := fault.With(fault.Newf(fault.ErrConflict, "install %s has no state to show yet", install.Name), fault.Code("no_state"), fault.Remedy("provision it"))
		if install.ReleaseID == nil {
			return notYet
		}
		app, err := releaseview.App(ctx, tx.Queries, *install.ReleaseID)
		if err != nil {
			return err
		}
		if app.Metadata.Readme == nil {
			return fault.Newf(fault.ErrNotFound, "the app of install %s has no README", install.Name)
		}
		source = app.Metadata.Readme.Contents
		if state, err = tx.GetStateTree(ctx, ctldb.GetStateTreeParams{InstallID: install.ID}); errors.Is(err, fault.ErrNotFound) {
			return notYet
		} else if err != nil {
			return err
		}
		resources, err = tx.ResourcesOfInstalls(ctx, ctldb.ResourcesOfInstallsParams{InstallID: install.ID, Everywhere: true, Most: maxNodes})
		return err
	})
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(state.Tree, &tree); err != nil {
		return nil, fmt.Errorf("read state of install %s: %w", req.Install, err)
	}
	page, err := readme.Render(source, tree, h.now()) // may take a while: outside of the transaction
	if wrong, ok := errors.AsType[*interpolate.Error](err); ok {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the README of the app cannot be rendered: %s", wrong), fault.Code("readme_not_rendered"))
	}
	if err != nil {
		return nil, fault.With(fault.Wrap(fault.ErrInvalid, err, "the README of the app cannot be shown"), fault.Code("readme_not_rendered"))
	}
	out := apigen.GetInstallReadme200JSONResponse{Markdown: page.Markdown, HTML: page.HTML, Widgets: []apigen.ReadmeWidget{}, StateVersion: int(state.Version)}
	for _, w := range page.Widgets {
		out.Widgets = append(out.Widgets, apigen.ReadmeWidget{Type: w.Type, Attributes: w.Attributes, Text: w.Text, Resource: resourceOfWidget(w, resources)})
	}
	return out, nil
}

// resourceOfWidget is the component that a widget names, with how it is; nil for
// none. Cards and states of components name it in one of these attributes.
func resourceOfWidget(w readme.Widget, resources []ctldb.ResourcesOfInstallsRow) *apigen.GraphNode {
	for _, key := range []string{"component", "component-name", "name"} {
		for _, r := range resources {
			if r.Kind != model.KindComponent || w.Attributes[key] != r.Name {
				continue
			}
			return &apigen.GraphNode{
				Name: r.Name, Kind: apigen.GraphNodeKindComponent, Type: r.Type, ResourceID: &r.ID,
				State: optional.Of(apigen.StateOfResource(r.State)), Health: optional.Of(apigen.HealthVerdict(r.Health)),
			}
		}
	}
	return nil
}
