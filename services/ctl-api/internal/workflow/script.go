package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/statetree"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// SealScript puts the sensitive variables of a script into it, sealed, so that nothing
// that is stored of the request has them in clear.
func SealScript(ring *keys.Ring, install ctldb.Install, s *orders.Script, values map[string]string) error {
	s.Secret = slices.Sorted(maps.Keys(values))
	if len(s.Secret) == 0 {
		return nil
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return errors.New("sensitive variables of the script are no text") // the cause may quote one
	}
	s.Sealed, err = ring.Seal(keys.ScriptAtRest(install.OrgID, install.ID, s.Digest()), raw)
	return err
}

// scriptSpec is a job that plans the script of a workflow.
func scriptSpec(ctx context.Context, q *ctldb.Queries, s subject) (jobspec.Spec, error) {
	script, err := scriptOf(s.workflow)
	if err != nil {
		return jobspec.Spec{}, err
	}
	app := &appconfig.App{}
	if id := optional.Value(s.workflow.ReleaseID); id != "" {
		if app, err = releaseview.App(ctx, q, id); err != nil {
			return jobspec.Spec{}, err
		}
	}
	spec := newSpec(s, jobspec.KindAction, jobspec.OperationPlan, script.Timeout())
	spec.Action = script.Order(app)
	if s.step.ResourceID != nil {
		spec.Resource = &jobspec.Resource{ID: s.resource.ID, Kind: string(s.resource.Kind), Name: s.resource.Name}
	}
	return spec, nil
}

func scriptOf(w ctldb.Workflow) (orders.Script, error) {
	params, err := paramsOf(w)
	if err == nil && params.Script == nil {
		err = fmt.Errorf("workflow %s has no script", w.ID)
	}
	if err != nil {
		return orders.Script{}, err
	}
	return *params.Script, nil
}

// addScriptEnv puts the sensitive variables of a script into the tree of the job that
// plans it, sealed to the install for this change. The tree that is stored has none.
func (e *Engine) addScriptEnv(ctx context.Context, tx *database.Tx, s subject, spec *jobspec.Spec) error {
	if flow.StepKind(s.step.Kind) != flow.StepScript {
		return nil
	}
	script, err := scriptOf(s.workflow)
	if err != nil || len(script.Secret) == 0 {
		return err
	}
	values, err := e.openScriptEnv(s, script)
	if err != nil {
		return err
	}
	spec.State, err = statetree.WithScript(ctx, tx, spec.State, statetree.ScriptEnv{Install: s.install, ChangeID: spec.ChangeID, Values: values})
	return err
}

func (e *Engine) openScriptEnv(s subject, script orders.Script) (map[string]string, error) {
	opened, err := e.Keys.Open(keys.ScriptAtRest(s.install.OrgID, s.install.ID, script.Digest()), script.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open variables of the script: %w", err)
	}
	var values map[string]string
	if json.Unmarshal(opened, &values) != nil { // its error quotes what is secret
		return nil, errors.New("read variables of the script: they are no JSON object")
	}
	return values, nil
}
