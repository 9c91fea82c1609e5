package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/optional"
)

// SyncInstalls makes the installs of an app what is declared, or says what that
// would be.
func (s *Server) SyncInstalls(ctx context.Context, req apigen.SyncInstallsRequestObject) (apigen.SyncInstallsResponseObject, error) {
	ask := installs.SyncRequest{
		App: req.App, Wanted: convert(req.Body.Installs, wantedInstall), DryRun: optional.Value(req.Params.DryRun),
		Version: optional.Value(req.Params.IfMatch), Actor: auth.PrincipalOf(ctx).AccountName,
	}
	var out apigen.SyncInstalls200JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		done, err := s.Installs.Sync(ctx, tx, ask)
		if err != nil {
			return "", err
		}
		out = apigen.SyncInstalls200JSONResponse{
			App: ref(done.App.ID, done.App.Name), DryRun: ask.DryRun, Version: done.Version, Items: convert(done.Decisions, decisionView),
		}
		switch {
		case ask.DryRun:
			return "", errRollback
		case !done.Changed():
			return "", nil
		}
		return "sync installs of app " + done.App.Name + ": " + deeds(done.Decisions), nil
	})
	return out, err
}

func wantedInstall(d apigen.DeclaredInstall) installs.Wanted {
	w := installs.Wanted{
		Name: d.Name, Customer: optional.Value(d.Customer), Stack: stacks.KindLocal,
		ApprovalOption: string(apigen.ApprovalOptionPrompt), Inputs: installs.Values(optional.Value(d.Inputs)),
	}
	if d.Stack != nil {
		w.Stack = string(*d.Stack)
	}
	if d.ApprovalOption != nil {
		w.ApprovalOption = string(*d.ApprovalOption)
	}
	if d.Labels != nil {
		w.Labels = *d.Labels
	}
	if d.ComponentToggles != nil {
		w.Toggles = installs.Toggles(*d.ComponentToggles)
	}
	if d.Components != nil {
		w.Overrides = installs.Overrides{}
		for name, o := range *d.Components {
			w.Overrides[name] = appconfig.InstallComponent{HelmValues: o.HelmValues, TFVars: o.TfVars}
		}
	}
	return w
}

func decisionView(d installs.Decision) apigen.InstallDecision {
	return apigen.InstallDecision{
		Name: d.Name, Action: apigen.InstallDecisionAction(d.Action), Kept: append([]string{}, d.Kept...), Next: optional.Of(apigen.InstallDecisionNext(d.Next)), NextComponents: d.Components,
		Changes: convert(d.Changes, func(c installs.FieldChange) apigen.InstallFieldChange {
			return apigen.InstallFieldChange{Field: c.Field, Old: c.Old, New: c.New, Sensitive: c.Sensitive}
		}),
	}
}

// deeds tells what was done, for the org's chain.
func deeds(decisions []installs.Decision) string {
	var parts []string
	for _, d := range decisions {
		if d.Action == installs.ActionCreate || d.Action == installs.ActionUpdate {
			parts = append(parts, fmt.Sprintf("%s %s", d.Action, d.Name))
		}
	}
	return strings.Join(parts, ", ")
}
