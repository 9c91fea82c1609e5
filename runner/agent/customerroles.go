package agent

import (
	"context"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/roles"
)

func (a *agent) roles() roles.Store { return roles.Store{Dir: a.dir.Roles(), Now: a.cfg.Now} }

// keepRoles switches roles off in time, and has the chain know each switch.
func (a *agent) keepRoles(life context.Context) error {
	return a.roles().Keep(life, func(ctx context.Context, r chain.Record) error {
		_, err := a.chain.Append(ctx, r)
		return err
	}, func(err error) {
		a.cfg.Log.ErrorContext(life, "switches of roles cannot be written", "err", a.disk.Failed(err))
	})
}

// tellRoles reports the roles to the control plane.
func (a *agent) tellRoles(ctx context.Context) error {
	return a.roles().Tell(ctx, func(ctx context.Context, report roles.Report) error {
		return control.Retry(ctx, a.cfg.Log, "tell roles", func(ctx context.Context) error { return a.api.PutRoles(ctx, report) })
	}, func(err error) {
		a.cfg.Log.WarnContext(ctx, "the control plane does not know which roles are on", "err", err)
	})
}
