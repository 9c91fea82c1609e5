package fleetapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// CreateBulk starts workflows in the installs that a filter lets pass, or says
// what that would do.
func (h *Fleet) CreateBulk(ctx context.Context, req apigen.CreateBulkRequestObject) (apigen.CreateBulkResponseObject, error) {
	if optional.Value(req.Params.DryRun) {
		out, err := h.previewBulk(ctx, req)
		return apigen.CreateBulk200JSONResponse(out), err
	}
	var out apigen.Bulk
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		actor := auth.PrincipalOf(ctx).AccountName
		asked, rows, err := chosen(ctx, tx, req)
		if err != nil {
			return "", err
		}
		made, err := h.Bulk.Create(ctx, tx, bulk.Wish{Request: asked, Actor: actor, InstallIDs: idsOf(rows)})
		if err != nil {
			return "", err
		}
		out = bulkView(made)
		for _, r := range rows {
			out.Items = append(out.Items, apigen.BulkItem{Install: apigen.Ref{ID: r.Install.ID, Name: r.Install.Name}, Outcome: apigen.BulkItemOutcomePending})
		}
		out.Counts.Pending = len(rows)
		return fmt.Sprintf("%s %d installs as %s", verbs[asked.Name()], len(rows), made.ID), nil
	})
	return apigen.CreateBulk202JSONResponse(out), err
}

func (h *Fleet) previewBulk(ctx context.Context, req apigen.CreateBulkRequestObject) (apigen.Bulk, error) {
	caller := auth.PrincipalOf(ctx)
	var asked bulk.Request
	var rows []ctldb.ShowInstallsRow
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		asked, rows, err = chosen(ctx, tx, req)
		return err
	})
	if err != nil {
		return apigen.Bulk{}, err
	}
	tried, err := h.Bulk.Preview(ctx, caller.OrgID, bulk.Wish{Request: asked, Actor: caller.AccountName, InstallIDs: idsOf(rows)})
	if err != nil {
		return apigen.Bulk{}, err
	}
	out := apigen.Bulk{
		Operation: apigen.BulkOperation(asked.Name()), Reason: asked.Reason, State: apigen.BulkStatePreview, Version: bulk.Version(asked, idsOf(rows)), Release: asked.Release,
		CreatedBy: caller.AccountName, CreatedAt: h.now().UTC(),
	}
	for i, r := range rows {
		item := apigen.BulkItem{Install: apigen.Ref{ID: r.Install.ID, Name: r.Install.Name}, Outcome: apigen.BulkItemOutcomeWouldStart}
		if p := tried[i].Refused; p != nil {
			item.Outcome, item.Code, item.Detail, item.Remedy = apigen.BulkItemOutcomeRefused, p.Code, cmp.Or(p.Detail, p.Title), p.Remedy
			out.Counts.Refused++
		} else {
			out.Counts.Started++
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// chosen are the request and the installs that it is for, by name. Errors:
// ErrInvalid when there is none or there are too many, ErrPreconditionFailed when
// they are not those that were agreed to.
func chosen(ctx context.Context, tx *database.Tx, req apigen.CreateBulkRequestObject) (bulk.Request, []ctldb.ShowInstallsRow, error) {
	f := req.Body.Filter
	asked, which, err := operationOf(*req.Body)
	if err != nil {
		return asked, nil, err
	}
	which.App, which.Customer, which.Health, which.Behind = f.App, f.Customer, string(optional.Value(f.Health)), f.Behind
	which.Waiting, which.Expiring, which.Labels = f.Waiting, f.Expiring, optional.Value(f.Labels)
	if f.Paused != nil {
		which.Paused = f.Paused
	}
	permission := permissionOf(asked)
	filter, err := Choose(ctx, tx, permission, which)
	if err != nil {
		return asked, nil, err
	}
	if f.Installs != nil {
		if filter.Ids, err = named(ctx, tx, permission, *f.Installs); err != nil {
			return asked, nil, err
		}
	}
	if ref := optional.Value(req.Body.Release); ref != "" {
		if asked.Release, err = releaseOf(ctx, tx, filter.AppID, ref); err != nil {
			return asked, nil, err
		}
	}
	filter.Most = bulk.Most + 1
	rows, err := tx.ShowInstalls(ctx, filter)
	switch {
	case err != nil:
		return asked, nil, err
	case len(rows) == 0:
		return asked, nil, fault.With(fault.Newf(fault.ErrInvalid, "no install that you may %s passes the filter", verbs[asked.Name()]), fault.Code("no_installs"))
	case len(rows) > bulk.Most:
		return asked, nil, fault.With(fault.Newf(fault.ErrInvalid, "more than %d installs pass the filter", bulk.Most), fault.Code("too_many_installs"),
			fault.Remedy("filter by label or customer, and do it in parts"))
	}
	if want := optional.Value(req.Params.IfMatch); want != "" && want != bulk.Version(asked, idsOf(rows)) {
		return asked, nil, fault.With(fault.Newf(fault.ErrPreconditionFailed, "the filter lets other installs pass than in the preview"),
			fault.Remedy("preview it again"))
	}
	return asked, rows, nil
}

// verbs say what an operation does to an install.
var verbs = map[model.BulkOperation]string{model.BulkDeploy: "deploy to", model.BulkPause: "pause", model.BulkResume: "resume"}

// permissionOf is what the caller needs in each install.
func permissionOf(r bulk.Request) auth.Permission {
	if r.Operation == "" {
		return auth.WorkflowsWrite
	}
	return auth.InstallsWrite
}

// operationOf is the request, and the installs for which it means something: a deploy
// is for live ones, a pause for those that are not paused. Errors: ErrInvalid for
// fields of another operation.
func operationOf(b apigen.BulkRequest) (bulk.Request, Filter, error) {
	asked := bulk.Request{Components: b.Components, PlanOnly: b.PlanOnly, Reason: b.Reason}
	deploys := len(b.Components) > 0 || b.PlanOnly || optional.Value(b.Release) != ""
	switch b.Operation {
	case apigen.BulkRequestOperationPause:
		asked.Operation = model.BulkPause
	case apigen.BulkRequestOperationResume:
		asked.Operation = model.BulkResume
	default:
		if b.Reason != "" {
			return asked, Filter{}, fault.Newf(fault.ErrInvalid, "a deploy has no reason")
		}
		return asked, Filter{State: string(model.InstallLive)}, nil
	}
	paused := asked.Operation == model.BulkResume
	switch {
	case deploys:
		return asked, Filter{}, fault.Newf(fault.ErrInvalid, "release, components and plan_only are for a deploy")
	case paused == (b.Reason != ""):
		return asked, Filter{}, fault.Newf(fault.ErrInvalid, "a pause needs a reason, and to resume has none")
	}
	return asked, Filter{Paused: &paused}, nil
}

// named are the ids of installs by id or name. One that the caller may not know
// about is answered as if it did not exist.
func named(ctx context.Context, tx *database.Tx, permission auth.Permission, refs []string) ([]string, error) {
	scope := auth.PrincipalOf(ctx).Scope(permission)
	ids := make([]string, 0, len(refs))
	for _, ref := range refs {
		row, err := installs.Find(ctx, tx, ref)
		if err != nil {
			return nil, err
		}
		if !scope.Includes(auth.Location{CustomerID: row.CustomerID, AppID: row.AppID, InstallID: row.ID}) {
			return nil, fault.Newf(fault.ErrNotFound, "there is no install %q", ref)
		}
		ids = append(ids, row.ID)
	}
	return ids, nil
}

// releaseOf is the id of a release by id or number, of the app of the filter.
func releaseOf(ctx context.Context, tx *database.Tx, appID, ref string) (string, error) {
	if appID == "" {
		return "", fault.Newf(fault.ErrInvalid, "a release is one of an app: name the app in the filter")
	}
	find := ctldb.FindReleaseOfAppParams{AppID: appID}
	if number, err := strconv.ParseInt(ref, 10, 32); err == nil && number > 0 {
		find.Number = int32(number)
	} else {
		find.ID = ref
	}
	row, err := tx.FindReleaseOfApp(ctx, find)
	return row.ID, missing(err, "the app has no release %q", ref)
}

func idsOf(rows []ctldb.ShowInstallsRow) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Install.ID
	}
	return ids
}

// GetBulk answers an operation with the items that the caller may see.
func (h *Fleet) GetBulk(ctx context.Context, req apigen.GetBulkRequestObject) (apigen.GetBulkResponseObject, error) {
	var out apigen.Bulk
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.GetBulk(ctx, req.Bulk)
		if err != nil {
			return missing(err, "there is no bulk operation %q", req.Bulk)
		}
		all, err := withItems(ctx, tx, []ctldb.BulkOperation{row})
		if err != nil {
			return err
		}
		if out = all[0]; len(out.Items) == 0 {
			return fault.Newf(fault.ErrNotFound, "there is no bulk operation %q", req.Bulk)
		}
		return nil
	})
	return apigen.GetBulk200JSONResponse(out), err
}

// ListBulks answers operations without their items, newest first.
func (h *Fleet) ListBulks(ctx context.Context, req apigen.ListBulksRequestObject) (apigen.ListBulksResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	out := apigen.ListBulks200JSONResponse{Items: []apigen.Bulk{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		scope := auth.PrincipalOf(ctx).Scope(auth.InstallsRead)
		rows, err := tx.ListBulks(ctx, ctldb.ListBulksParams{
			After: optional.Value(req.Params.After), Most: int32(limit + 1),
			Everywhere: scope.Everywhere, CustomerIds: scope.Customers, AppIds: scope.Apps, InstallIds: scope.Installs,
		})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.BulkOperation) string { return r.ID })
		all, err := withItems(ctx, tx, rows)
		for i := range all {
			all[i].Items = nil
		}
		out.Items = append(out.Items, all...)
		return err
	})
	return out, err
}

// withItems shows operations with what became of each install that the caller may
// see.
func withItems(ctx context.Context, tx *database.Tx, rows []ctldb.BulkOperation) ([]apigen.Bulk, error) {
	scope := auth.PrincipalOf(ctx).Scope(auth.InstallsRead)
	ids := make([]string, len(rows))
	out := make([]apigen.Bulk, len(rows))
	for i, r := range rows {
		ids[i], out[i] = r.ID, bulkView(r)
	}
	items, err := tx.BulkItems(ctx, ctldb.BulkItemsParams{
		BulkIds: ids, Everywhere: scope.Everywhere, CustomerIds: scope.Customers, AppIds: scope.Apps, InstallIds: scope.Installs,
	})
	if err != nil {
		return nil, err
	}
	for _, row := range items {
		x := row.BulkItem
		at := &out[slices.Index(ids, x.BulkID)]
		at.Items = append(at.Items, apigen.BulkItem{
			Install: apigen.Ref{ID: x.InstallID, Name: row.InstallName}, Outcome: apigen.BulkItemOutcome(x.Outcome), WorkflowID: optional.Value(x.WorkflowID),
			WorkflowState: optional.Of(apigen.WorkflowState(row.WorkflowState)), Code: optional.Value(x.Code), Detail: optional.Value(x.Detail), Remedy: optional.Value(x.Remedy),
		})
		switch apigen.BulkItemOutcome(x.Outcome) {
		case apigen.BulkItemOutcomePending:
			at.Counts.Pending++
		case apigen.BulkItemOutcomeStarted:
			at.Counts.Started++
		case apigen.BulkItemOutcomeDone:
			at.Counts.Done++
		default:
			at.Counts.Refused++
		}
	}
	return out, nil
}

func bulkView(r ctldb.BulkOperation) apigen.Bulk {
	out := apigen.Bulk{
		ID: r.ID, Operation: apigen.BulkOperation(r.Operation), State: apigen.BulkStateWorking, Version: r.Version,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt,
	}
	if r.FinishedAt != nil {
		out.State = apigen.BulkStateDone
	}
	return out
}
