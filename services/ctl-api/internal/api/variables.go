package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/variables"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListAppVariables answers the variables of an app by name, without values.
func (s *Server) ListAppVariables(ctx context.Context, req apigen.ListAppVariablesRequestObject) (apigen.ListAppVariablesResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListAppVariables200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		app, err := findApp(ctx, tx, req.App)
		if err != nil {
			return err
		}
		rows, err := tx.PageOfAppVariables(ctx, ctldb.PageOfAppVariablesParams{AppID: app.ID, After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		if err != nil {
			return err
		}
		reads, err := variables.ReadsOf(ctx, tx, app.ID)
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(v ctldb.AppVariable) string { return v.Name })
		out.Items = convert(rows, func(v ctldb.AppVariable) apigen.AppVariable { return variableView(v, reads) })
		return nil
	})
	return out, err
}

// GetAppVariable answers one variable, with its value unless that is a secret.
func (s *Server) GetAppVariable(ctx context.Context, req apigen.GetAppVariableRequestObject) (apigen.GetAppVariableResponseObject, error) {
	var out apigen.AppVariable
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		app, err := findApp(ctx, tx, req.App)
		if err != nil {
			return err
		}
		row, err := variables.Get(ctx, tx, app, req.Variable)
		if err != nil {
			return err
		}
		reads, err := variables.ReadsOf(ctx, tx, app.ID)
		out = variableView(row, reads)
		out.Value = row.Value
		return err
	})
	tag := variableTag(out)
	return apigen.GetAppVariable200JSONResponse{Body: out, Headers: apigen.GetAppVariable200ResponseHeaders{ETag: &tag}}, err
}

// SetAppVariable sets one variable of an app.
func (s *Server) SetAppVariable(ctx context.Context, req apigen.SetAppVariableRequestObject) (apigen.SetAppVariableResponseObject, error) {
	set := variables.Variable{Name: req.Variable, Value: req.Body.Value, Sensitive: req.Body.Sensitive == nil || *req.Body.Sensitive}
	var out apigen.AppVariable
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		app, err := findApp(ctx, tx, req.App)
		if err != nil {
			return "", err
		}
		err = checkTag(req.Params.IfMatch, "variable "+req.Variable, func() (string, error) { return lockedVariableTag(ctx, tx, app, req.Variable) })
		if err != nil {
			return "", err
		}
		row, changed, err := variables.Set(ctx, tx, s.Keys, variables.SetRequest{AppID: app.ID, Variable: set, Actor: auth.PrincipalOf(ctx).AccountName})
		if err != nil {
			return "", err
		}
		reads, err := variables.ReadsOf(ctx, tx, app.ID)
		if err != nil {
			return "", err
		}
		out = variableView(row, reads)
		out.Value = row.Value
		if !changed {
			return "", nil
		}
		kind := "plain"
		if set.Sensitive {
			kind = "sensitive"
		}
		return fmt.Sprintf("set %s variable %s of app %s: version %d", kind, row.Name, app.Name, row.Version), nil
	})
	tag := variableTag(out)
	return apigen.SetAppVariable200JSONResponse{Body: out, Headers: apigen.SetAppVariable200ResponseHeaders{ETag: &tag}}, err
}

// DeleteAppVariable deletes one variable of an app.
func (s *Server) DeleteAppVariable(ctx context.Context, req apigen.DeleteAppVariableRequestObject) (apigen.DeleteAppVariableResponseObject, error) {
	var out apigen.DeleteAppVariable200JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		app, err := findApp(ctx, tx, req.App)
		if err != nil {
			return "", err
		}
		err = checkTag(req.Params.IfMatch, "variable "+req.Variable, func() (string, error) { return lockedVariableTag(ctx, tx, app, req.Variable) })
		if err != nil {
			return "", err
		}
		row, err := variables.Delete(ctx, tx, app, req.Variable)
		if err != nil {
			return "", err
		}
		reads, err := variables.ReadsOf(ctx, tx, app.ID)
		out = apigen.DeleteAppVariable200JSONResponse(variableView(row, reads))
		return fmt.Sprintf("delete variable %s of app %s: version %d", row.Name, app.Name, row.Version), err
	})
	return out, err
}

// variableTag names the version of a variable; one that was deleted and set
// again does not get an earlier one again.
func variableTag(v apigen.AppVariable) string { return tagOf(v.Name, v.Version, v.UpdatedAt) }

// lockedVariableTag is the version of a variable, which stays that until the
// transaction ends.
func lockedVariableTag(ctx context.Context, tx *database.Tx, app ctldb.App, name string) (string, error) {
	if _, err := tx.LockApp(ctx, app.ID); err != nil {
		return "", err
	}
	row, err := variables.Get(ctx, tx, app, name)
	return variableTag(variableView(row, variables.Reads{})), err
}

// variableView leaves out the value: only who asks for one variable sees it.
func variableView(v ctldb.AppVariable, reads variables.Reads) apigen.AppVariable {
	return apigen.AppVariable{
		Name: v.Name, Sensitive: variables.IsSensitive(v), Version: int(v.Version), UpdatedBy: v.UpdatedBy, UpdatedAt: v.UpdatedAt,
		ReadBy: convert(reads.Of(v.Name), func(r variables.Reader) apigen.AppVariableReader {
			return apigen.AppVariableReader{Kind: apigen.AppVariableReaderKind(r.Kind), Name: r.Name}
		}),
	}
}
