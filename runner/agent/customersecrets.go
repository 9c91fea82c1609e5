package agent

import (
	"context"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/secretstore"
)

func (a *agent) customerSecrets() *secretstore.Store {
	return &secretstore.Store{Dir: a.dir.CustomerSecrets(), Runner: a.runner, Keys: a.keys, Now: a.cfg.Now}
}

// tellSecrets reports the versions of the customer's secrets to the control plane, never
// values.
func (a *agent) tellSecrets(ctx context.Context) error {
	return a.customerSecrets().Tell(ctx, func(ctx context.Context, list []customersecret.Version) error {
		return control.Retry(ctx, a.cfg.Log, "tell secrets", func(ctx context.Context) error { return a.api.PutSecrets(ctx, list) })
	}, func(err error) {
		a.cfg.Log.WarnContext(ctx, "the control plane does not know which secrets are set", "err", err)
	})
}
