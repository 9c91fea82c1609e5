package agent

import (
	"context"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/control"
)

// openConsents opens what the customer's side agreed to.
func (a *agent) openConsents() *consents.Gate {
	a.consents = consents.NewGate(consents.Store{Dir: a.dir, InstallID: a.runner.InstallID, Machine: a.keys.Public(), Now: a.cfg.Now})
	return a.consents
}

// keepConsents puts standing rules in force once the chain has them, and forgets what is old.
func (a *agent) keepConsents(life context.Context) error {
	return a.consents.Run(life, func(ctx context.Context, r chain.Record) error {
		_, err := a.chain.Append(ctx, r)
		return err
	}, func(err error) {
		a.cfg.Log.ErrorContext(life, "consents cannot be kept", "err", a.disk.Failed(err))
	})
}

// tellConsents reports how open changes stand with the customer's side.
func (a *agent) tellConsents(ctx context.Context) error {
	return a.consents.Tell(ctx, func(ctx context.Context, list []runnerapi.Consent) error {
		return control.Retry(ctx, a.cfg.Log, "tell consents", func(ctx context.Context) error { return a.api.PutConsents(ctx, list) })
	}, func(err error) {
		a.cfg.Log.WarnContext(ctx, "the control plane does not know what the customer agreed to", "err", err)
	})
}
