package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// longestExpiring bounds how far ahead `expiring` looks: a year.
const longestExpiring = 8760 * time.Hour

// Filter chooses installs; everything that is given must hold.
type Filter struct {
	App, Customer *string // ids or names
	Labels        map[string]string
	State, Health string
	Behind        *bool
	Paused        *bool
	Waiting       *string
	Expiring      *string // a Go duration
}

// Choose makes the parameters of ShowInstalls that let pass what the filter does
// and the caller has the permission for. Errors: ErrNotFound for an app or
// customer that there is not, ErrInvalid for a wrong duration.
func Choose(ctx context.Context, tx *database.Tx, permission auth.Permission, f Filter) (ctldb.ShowInstallsParams, error) {
	scope := auth.PrincipalOf(ctx).Scope(permission)
	out := ctldb.ShowInstallsParams{
		State: f.State, Health: f.Health, Behind: f.Behind, Paused: f.Paused, Waiting: optional.Value(f.Waiting),
		Everywhere: scope.Everywhere, CustomerIds: scope.Customers, AppIds: scope.Apps, InstallIds: scope.Installs,
	}
	labels := f.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	var err error
	if out.Labels, err = json.Marshal(labels); err != nil {
		return out, err
	}
	if out.ExpiringSeconds, err = expiringSeconds(f.Expiring); err != nil {
		return out, err
	}
	if ref := optional.Value(f.App); ref != "" {
		app, err := tx.FindApp(ctx, ref)
		if err != nil {
			return out, missing(err, "there is no app %q", ref)
		}
		out.AppID = app.ID
	}
	if ref := optional.Value(f.Customer); ref != "" {
		customer, err := tx.FindCustomer(ctx, ref)
		if err != nil {
			return out, missing(err, "there is no customer %q", ref)
		}
		out.CustomerID = customer.ID
	}
	return out, nil
}

func expiringSeconds(text *string) (float64, error) {
	if optional.Value(text) == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(*text)
	if err != nil || d <= 0 || d > longestExpiring {
		return 0, fault.With(fault.Newf(fault.ErrInvalid, "expiring %q is not a time from now to a year ahead", *text), fault.Remedy("write it as 24h or 90m"))
	}
	return d.Seconds(), nil
}

// LabelsOf turns "key=value" texts into labels.
func LabelsOf(texts []string) (map[string]string, error) {
	want := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fault.Newf(fault.ErrInvalid, "label %q is not key=value", text)
		}
		want[key] = value
	}
	return want, nil
}

// missing says for people what was not found; other errors stay as they are.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, fault.ErrNotFound) {
		return fault.Newf(fault.ErrNotFound, format, args...)
	}
	return err
}

// ResourceFilter turns a resource of a query, an id or, with an install, a name,
// into an id; nil for none. Without an install it is taken as an id: rows of
// other orgs are out of reach, and of this one the caller may see all.
func ResourceFilter(ctx context.Context, tx *database.Tx, installID, ref *string) (*string, error) {
	if optional.Value(ref) == "" || installID == nil {
		return optional.Of(optional.Value(ref)), nil
	}
	rows, err := tx.ShowResources(ctx, ctldb.ShowResourcesParams{InstallID: *installID, Ref: *ref})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fault.Newf(fault.ErrNotFound, "the install has no resource %q", *ref)
	}
	return &rows[0].Resource.ID, nil
}
