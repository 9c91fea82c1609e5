package agent

import (
	"context"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// openOffers opens what is known of signed releases. It needs the consents, which read
// the chain's time.
func (a *agent) openOffers() *offers.Gate {
	a.offers = &offers.Gate{
		Store: offers.Store{Dir: a.dir, OrgID: a.runner.OrgID, Now: a.cfg.Now}, Clock: a.consents.Clock,
		Append: func(ctx context.Context, r chain.Record) error {
			_, err := a.chain.Append(ctx, r)
			return err
		},
	}
	return a.offers
}
