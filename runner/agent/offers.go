package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// openOffers opens what is known of signed releases. It needs the consents, which read
// the chain's time.
func (a *agent) openOffers(life context.Context) (*offers.Gate, error) {
	a.offers = &offers.Gate{
		Store: offers.Store{Dir: a.dir, OrgID: a.runner.OrgID, Now: a.cfg.Now}, Clock: a.consents.Clock,
		Append: func(ctx context.Context, r chain.Record) error {
			_, err := a.chain.Append(ctx, r)
			return err
		},
		Said: a.chain.VendorKeys,
		Brought: func() []capsule.Envelope {
			settings, _ := a.current()
			return settings.Revoked
		},
		Ignored: func(why error) { a.noteRefusal(life, "a revocation of a release was not taken", why.Error()) },
	}
	if err := a.offersAgain(); err != nil {
		return nil, fmt.Errorf("accepted releases: %w", err)
	}
	return a.offers, nil
}

// offersAgain reads what was accepted from the runner's own chain where the file is gone:
// without it, older releases could come after newer ones.
func (a *agent) offersAgain() error {
	if _, err := os.Stat(a.dir.VendorReleases()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := os.ReadFile(a.dir.Chain())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var records []chain.Record
	for line := range bytes.Lines(text) {
		record, err := chain.ParseRecord(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	return a.offers.Restore(offers.FromChain(records))
}
