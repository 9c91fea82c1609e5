package access

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Target is what a request names on its route: its path parameters, and the
// install that its query is limited to.
type Target struct {
	Route Route
	Param func(name string) string
	Query func(name string) string
}

// Confine refuses a request of somebody whose rights do not reach as far as
// what it names. What somebody must not know about is answered as if it did not
// exist.
func Confine(ctx context.Context, st *database.Store, p auth.Principal, target Target) error {
	route := target.Route
	if route.Permission == auth.Public {
		return nil
	}
	scope := p.Scope(route.Permission)
	switch {
	case scope.Everywhere, route.Where == WhereList && !scope.Empty():
		return nil
	case scope.Empty(), route.Where == WhereOrg:
		return auth.Forbidden(route.Permission)
	}
	ref := ""
	if route.Where == WhereFilter {
		if ref = target.Query("install"); ref == "" {
			return fault.With(fault.Newf(fault.ErrForbidden, "your access is limited to certain installs"), fault.Remedy("name one of them: ?install="))
		}
	} else {
		ref = target.Param(route.Where.ParamOf())
	}
	var at auth.Location
	err := st.Tx(ctx, p.OrgID, func(ctx context.Context, tx *database.Tx) (err error) {
		at, err = locate(ctx, tx, route.Where, ref)
		return err
	})
	if err != nil {
		return err
	}
	if !scope.Includes(at) {
		if p.Scope(auth.InstallsRead).Includes(at) {
			return auth.Forbidden(route.Permission)
		}
		return fault.ErrNotFound
	}
	return nil
}

func locate(ctx context.Context, tx *database.Tx, where Where, ref string) (auth.Location, error) {
	if where == WhereApp {
		app, err := tx.FindApp(ctx, ref)
		return auth.Location{AppID: app.ID}, err
	}
	row, err := tx.LocateObject(ctx, ref)
	if err != nil {
		if errors.Is(err, fault.ErrNotFound) {
			return auth.Location{}, fault.ErrNotFound
		}
		return auth.Location{}, err
	}
	return auth.Location{CustomerID: row.CustomerID, AppID: row.AppID, InstallID: row.InstallID}, nil
}
