package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/optional"
)

// GetInputs answers the inputs of an install without sensitive values.
func (s *Server) GetInputs(ctx context.Context, req apigen.GetInputsRequestObject) (apigen.GetInputsResponseObject, error) {
	var out apigen.Inputs
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		view, err := s.Installs.ReadInputs(ctx, tx, found)
		out = inputsView(view)
		return err
	})
	tag := tagOf(out.Version)
	return apigen.GetInputs200JSONResponse{Body: out, Headers: apigen.GetInputs200ResponseHeaders{ETag: &tag}}, err
}

// SetInputs makes a new version of the inputs, or says what it would be.
func (s *Server) SetInputs(ctx context.Context, req apigen.SetInputsRequestObject) (apigen.SetInputsResponseObject, error) {
	change := installs.Change{Set: installs.Values(optional.Value(req.Body.Values)), Unset: req.Body.Unset, Actor: auth.PrincipalOf(ctx).AccountName}
	var out apigen.Inputs
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return "", err
		}
		err = checkTag(req.Params.IfMatch, "the inputs of install "+found.Name, func() (string, error) {
			if _, err := tx.LockInstallRow(ctx, found.ID); err != nil {
				return "", err
			}
			now, err := s.Installs.ReadInputs(ctx, tx, found)
			return tagOf(int(now.Row.Version)), err
		})
		if err != nil {
			return "", err
		}
		view, changed, err := s.Installs.SetInputs(ctx, tx, found.ID, change)
		if err != nil {
			return "", err
		}
		out = inputsView(view)
		switch {
		case optional.Value(req.Params.DryRun):
			return "", errRollback
		case !changed:
			return "", nil
		}
		return fmt.Sprintf("set inputs of install %s: version %d", found.Name, view.Row.Version), tx.WakeInstall(ctx, found.ID)
	})
	tag := tagOf(out.Version)
	return apigen.SetInputs200JSONResponse{Body: out, Headers: apigen.SetInputs200ResponseHeaders{ETag: &tag}}, err
}

func inputsView(v installs.InputsView) apigen.Inputs {
	out := apigen.Inputs{Version: int(v.Row.Version), Items: convert(v.Defined, func(in appconfig.Input) apigen.InputValue {
		item := apigen.InputValue{Name: in.Name, Type: apigen.InputValueType(in.Type), Sensitive: in.Sensitive, Required: in.Required, From: apigen.InputValueFromNone}
		plain, set := v.Values.Plain[in.Name]
		_, sealed := v.Values.Sensitive[in.Name]
		switch {
		case set:
			item.From, item.Value = apigen.InputValueFromSet, &plain
		case sealed:
			item.From = apigen.InputValueFromSet
		case in.Default != nil:
			item.From, item.Value = apigen.InputValueFromDefault, in.Default
		}
		if in.Sensitive {
			item.Value = nil
		}
		return item
	})}
	if len(v.Overrides) > 0 {
		components := apigen.ComponentOverrides{}
		for name, o := range v.Overrides {
			components[name] = apigen.ComponentOverride{HelmValues: o.HelmValues, TfVars: o.TFVars}
		}
		out.Components = &components
	}
	if v.Row.Version > 0 {
		out.CreatedBy, out.CreatedAt = &v.Row.CreatedBy, &v.Row.CreatedAt
	}
	return out
}
