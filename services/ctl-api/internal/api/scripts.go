package api

import (
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// askedScript is the script that a caller wants to be run, with its sensitive variables
// sealed; nil for other kinds of workflows.
func (s *Server) askedScript(install ctldb.Install, r asked) (*orders.Script, error) {
	switch {
	case r.script == nil && r.Kind != flow.KindRunScript:
		return nil, nil
	case r.script == nil:
		return nil, fault.Newf(fault.ErrInvalid, "run_script needs a script")
	case r.Kind != flow.KindRunScript:
		return nil, fault.Newf(fault.ErrInvalid, "a script is for run_script, not for %s", r.Kind)
	}
	script := scriptAsked(*r.script)
	if err := workflow.SealScript(s.Keys, install, &script, r.script.SensitiveEnv); err != nil {
		return nil, err
	}
	return &script, script.Check()
}

func scriptAsked(a apigen.AdHocScript) orders.Script {
	return orders.Script{
		Name: optional.Value(a.Name), Text: a.Text, Env: a.Env, TimeoutSeconds: a.TimeoutSeconds, Kubeconfig: a.Kubeconfig,
		Context: a.KubernetesContext, Image: a.Image, Component: a.Component,
	}
}
