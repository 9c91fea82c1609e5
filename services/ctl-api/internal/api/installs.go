package api

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListInstalls answers the installs that the caller may see.
func (s *Server) ListInstalls(ctx context.Context, req apigen.ListInstallsRequestObject) (apigen.ListInstallsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListInstalls200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		p := req.Params
		labels, err := fleetapi.LabelsOf(optional.Value(p.Label))
		if err != nil {
			return err
		}
		filter, err := fleetapi.Choose(ctx, tx, auth.InstallsRead, fleetapi.Filter{
			App: p.App, Customer: p.Customer, State: string(optional.Value(p.State)), Health: string(optional.Value(p.Health)), Behind: p.Behind,
			Waiting: p.Waiting, Expiring: p.Expiring, Paused: p.Paused, Labels: labels,
		})
		if err != nil {
			return err
		}
		filter.Sort, filter.After, filter.Most = string(optional.Value(p.Sort)), optional.Value(p.After), int32(limit+1)
		rows, err := tx.ShowInstalls(ctx, filter)
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowInstallsRow) string { return r.SortKey })
		if err != nil {
			return err
		}
		out.Items, err = convertAll(rows, installView)
		return err
	})
	return out, err
}

// installsOf chooses the installs of an app, or of all, that the caller may see
// and that have all of these labels.
func installsOf(ctx context.Context, tx *database.Tx, app *string, label *[]string) (ctldb.ShowInstallsParams, error) {
	labels, err := fleetapi.LabelsOf(optional.Value(label))
	if err != nil {
		return ctldb.ShowInstallsParams{}, err
	}
	return fleetapi.Choose(ctx, tx, auth.InstallsRead, fleetapi.Filter{App: app, Labels: labels})
}

// CreateInstall makes an install, and starts its provisioning when asked to.
func (s *Server) CreateInstall(ctx context.Context, req apigen.CreateInstallRequestObject) (apigen.CreateInstallResponseObject, error) {
	actor := auth.PrincipalOf(ctx).AccountName
	create := installs.CreateRequest{
		Name: req.Body.Name, App: req.Body.App, Customer: req.Body.Customer, CreateCustomer: req.Body.CreateCustomer,
		Stack: stacks.KindLocal, Inputs: installs.Values(optional.Value(req.Body.Inputs)), Labels: optional.Value(req.Body.Labels),
		ApprovalOption: string(apigen.ApprovalOptionPrompt), Release: optional.Value(req.Body.Release), Provision: req.Body.Provision, Actor: actor,
	}
	if r := req.Body.Rehearsal; r != nil {
		create.Rehearsal = &rehearsal.Rehearsal{
			Platform: rehearsal.Platform(optional.Value(r.Platform)), Given: rehearsalOutputs(r.Given), Recorded: rehearsalOutputs(r.Recorded), NoCluster: r.NoCluster,
		}
	}
	if req.Body.Stack != nil {
		create.Stack = string(*req.Body.Stack)
	}
	if req.Body.ApprovalOption != nil {
		create.ApprovalOption = string(*req.Body.ApprovalOption)
	}
	var out apigen.CreateInstall201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		made, err := s.Installs.Create(ctx, tx, create)
		if err != nil {
			return "", err
		}
		if req.Body.Provision {
			_, err = workflow.Start(ctx, tx, workflow.Request{
				InstallID: made.Install.ID, Kind: flow.KindProvision, ReleaseID: made.Release, ApproveAll: req.Body.ApproveAll, Actor: actor,
			})
			if err != nil {
				return "", err
			}
		}
		view, err := oneInstall(ctx, tx, made.Install.ID)
		out = apigen.CreateInstall201JSONResponse(view)
		return "create install " + made.Install.Name, err
	})
	return out, err
}

// GetInstall answers one install.
func (s *Server) GetInstall(ctx context.Context, req apigen.GetInstallRequestObject) (apigen.GetInstallResponseObject, error) {
	var view apigen.Install
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		if view, err = oneInstall(ctx, tx, req.Install); err != nil {
			return err
		}
		known, err := roles.Read(ctx, tx.Queries, view.ID)
		if err != nil {
			return err
		}
		view.RolesOn = known.On()
		if err := addRehearsed(ctx, tx, &view); err != nil || view.Release == nil {
			return err
		}
		app, err := releaseview.App(ctx, tx.Queries, view.Release.ID)
		if err != nil {
			return err
		}
		if notYet := convert(check.Unsupported(app), warningView); len(notYet) > 0 {
			view.Unsupported = &notYet
		}
		return nil
	})
	tag := installTag(view)
	return apigen.GetInstall200JSONResponse{Body: view, Headers: apigen.GetInstall200ResponseHeaders{ETag: &tag}}, err
}

// UpdateInstall changes the settings that are given.
func (s *Server) UpdateInstall(ctx context.Context, req apigen.UpdateInstallRequestObject) (apigen.UpdateInstallResponseObject, error) {
	var view apigen.Install
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return "", err
		}
		if found, err = tx.LockInstallRow(ctx, found.ID); err != nil {
			return "", err
		}
		if view, err = oneInstall(ctx, tx, found.ID); err != nil {
			return "", err
		}
		if err := checkTag(req.Params.IfMatch, "install "+found.Name, func() (string, error) { return installTag(view), nil }); err != nil {
			return "", err
		}
		change := ctldb.UpdateInstallSettingsParams{ID: found.ID, ApprovalOption: found.ApprovalOption, Labels: found.Labels}
		if req.Body.ApprovalOption != nil {
			change.ApprovalOption = string(*req.Body.ApprovalOption)
		}
		if req.Body.ApprovalHours != nil {
			hours := int32(*req.Body.ApprovalHours)
			own := hours > 0
			change.ApprovalHoursOwn = &own
			change.ApprovalHours = optional.Of(cmp.Or(hours, int32(flow.ApprovalTime/time.Hour)))
		}
		if o := req.Body.HealthObjective; o != nil {
			if *o != 0 && *o < minObjective {
				return "", fault.Newf(fault.ErrInvalid, "health_objective is %g: write a percentage from %d to 99.999, or 0 for none", *o, minObjective)
			}
			change.HealthObjective = o
		}
		if hold := req.Body.HealthHoldSeconds; hold != nil {
			seconds := int32(*hold)
			change.HealthHoldSeconds = &seconds
		}
		if req.Body.Labels != nil {
			change.Labels = labelsJSON(req.Body.Labels)
		}
		if err := tx.UpdateInstallSettings(ctx, change); err != nil {
			return "", err
		}
		if req.Body.ComponentToggles != nil {
			if err := s.Installs.SetToggles(ctx, tx, found, installs.Toggles(*req.Body.ComponentToggles)); err != nil {
				return "", err
			}
		}
		view, err = oneInstall(ctx, tx, found.ID)
		return "change settings of install " + found.Name, err
	})
	tag := installTag(view)
	return apigen.UpdateInstall200JSONResponse{Body: view, Headers: apigen.UpdateInstall200ResponseHeaders{ETag: &tag}}, err
}

// minObjective is the least objective of an install, in percent.
const minObjective = 50

// ForgetInstall takes an install out of sight, once nothing is left of it.
func (s *Server) ForgetInstall(ctx context.Context, req apigen.ForgetInstallRequestObject) (apigen.ForgetInstallResponseObject, error) {
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return "", err
		}
		return "forget install " + found.Name, s.Installs.Forget(ctx, tx, found.ID, optional.Value(req.Params.Confirm))
	})
	if err != nil {
		return nil, err
	}
	return apigen.ForgetInstall204Response{}, nil
}

func oneInstall(ctx context.Context, tx *database.Tx, ref string) (apigen.Install, error) {
	found, err := installs.Find(ctx, tx, ref)
	if err != nil {
		return apigen.Install{}, err
	}
	row, err := showInstall(ctx, tx, found.ID)
	if err != nil {
		return apigen.Install{}, err
	}
	return installView(row)
}

// showInstall is an install with the names around it.
func showInstall(ctx context.Context, tx *database.Tx, id string) (ctldb.ShowInstallsRow, error) {
	rows, err := tx.ShowInstalls(ctx, ctldb.ShowInstallsParams{ID: id, Labels: json.RawMessage(`{}`), Everywhere: true, Most: 1})
	if err == nil && len(rows) == 0 {
		err = fault.ErrNotFound
	}
	if err != nil {
		return ctldb.ShowInstallsRow{}, err
	}
	return rows[0], nil
}

func installView(r ctldb.ShowInstallsRow) (apigen.Install, error) {
	i := r.Install
	labels, err := labelsOf(i.Labels)
	if err != nil {
		return apigen.Install{}, err
	}
	toggles := apigen.ComponentToggles{}
	if err := decode("toggles", i.Toggles, &toggles); err != nil {
		return apigen.Install{}, err
	}
	rehearsed, err := releaseview.RehearsalOf(i)
	if err != nil {
		return apigen.Install{}, err
	}
	view := apigen.Install{
		ID: i.ID, Name: i.Name, App: ref(i.AppID, r.AppName), Customer: ref(i.CustomerID, r.CustomerName), Stack: apigen.StackKind(i.StackKind),
		ApprovalOption: apigen.ApprovalOption(i.ApprovalOption), ApprovalHours: int(r.HoursInForce), Labels: labels, ComponentToggles: toggles, State: apigen.InstallState(i.State),
		Health: apigen.HealthVerdict(r.Health), OpenAlarms: int(r.OpenAlarms), OpenAlerts: int(r.OpenAlerts), Drifted: int(r.Drifted), Release: apiref.Number(i.ReleaseID, r.ReleaseNumber),
		InputsVersion: int(i.InputsVersion), StateVersion: int(i.StateVersion), WorkflowID: optional.Of(r.WorkflowID),
		CreatedBy: i.CreatedBy, CreatedAt: i.CreatedAt, HealthObjective: i.HealthObjective,
	}
	if s := i.HealthHoldSeconds; s != nil {
		view.HealthHoldSeconds = new(int(*s))
	}
	if i.PausedAt != nil {
		view.Pause = &apigen.Pause{At: *i.PausedAt, By: optional.Value(i.PausedBy), Reason: optional.Value(i.PauseReason)}
	}
	if rehearsed != nil {
		view.Rehearsal = &apigen.Rehearsal{Platform: apigen.RehearsalPlatform(rehearsed.Platform)}
		if i.State == model.InstallLive {
			view.State = apigen.InstallStateRehearsed
		}
	}
	return view, nil
}

// installTag names the version of what PATCH changes.
func installTag(i apigen.Install) string {
	return tagOf(i.ID, i.ApprovalOption, i.ApprovalHours, i.Labels, i.ComponentToggles, i.HealthObjective, i.HealthHoldSeconds)
}
