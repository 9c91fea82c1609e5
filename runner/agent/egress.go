package agent

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	ledger "github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/dirwatch"
	"github.com/berth-dev/berth/runner/agent/egress"
)

// egressAnchor is how often the head of the egress ledger goes into the chain; the first
// time is soon after the start.
const (
	egressAnchor      = time.Hour
	firstEgressAnchor = 5 * time.Minute
)

// openEgress opens the ledger that the requests of this agent pass.
func (a *agent) openEgress() (err error) {
	a.switches = egress.At(a.dir.EgressOff())
	a.ledger, err = egress.Open(egress.Options{Dir: a.dir.Egress(), Store: a.disk.Insist, Now: a.cfg.Now, Log: a.cfg.Log})
	if err != nil {
		return damaged(a.dir.Egress(), err, "move the directory away; a new ledger begins, and the chain shows where the old one ended")
	}
	a.cfg.Clouds.HTTP = a.ledger.ClientOf(cmp.Or(a.cfg.Clouds.HTTP, &http.Client{}), egress.Clouds, "API of the cloud").HTTP()
	return nil
}

func (a *agent) closeEgress() {
	if err := a.ledger.Close(); err != nil {
		a.cfg.Log.Error("egress ledger cannot be closed", "err", err)
	}
}

// recordEgress records in the chain what the customer switches, and every hour where
// the ledger ends. Not when the agent ends: nobody would copy that record any more.
func (a *agent) recordEgress(life context.Context) error {
	changed, end, err := dirwatch.Watch(a.dir.Path())
	if err != nil {
		return err
	}
	defer end()
	due := time.NewTimer(firstEgressAnchor)
	defer due.Stop()
	for {
		if a.recordSwitches(life) {
			a.anchorEgress(life)
		}
		select {
		case <-life.Done():
			return context.Cause(life)
		case <-due.C:
			due.Reset(egressAnchor)
			a.anchorEgress(life)
		case <-changed:
		}
	}
}

// recordSwitches records each class that was switched since that was last done. A crash
// in between records a switch twice.
func (a *agent) recordSwitches(ctx context.Context) (recorded bool) {
	now, err := a.switches.All()
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "what is switched off cannot be read, so all of it is", "err", err)
	}
	path := filepath.Join(a.dir.Egress(), "recorded.json")
	var before []egress.Switched
	if _, err := datadir.ReadJSON(path, &before); err != nil {
		a.cfg.Log.WarnContext(ctx, "what was recorded of switched classes is damaged, all are recorded again", "err", err)
	}
	same := func(x egress.Switched) func(egress.Switched) bool {
		return func(y egress.Switched) bool { return x.Class == y.Class }
	}
	var records []chain.Record
	for _, off := range now {
		if !slices.ContainsFunc(before, same(off)) {
			records = append(records, chain.Record{Actor: cmp.Or(off.By, "customer"), What: "egress of " + off.Class + " was switched off", Detail: off.Reason})
		}
	}
	for _, off := range before {
		if !slices.ContainsFunc(now, same(off)) {
			records = append(records, chain.Record{Actor: "customer", What: "egress of " + off.Class + " was switched on"})
		}
	}
	if len(records) == 0 {
		return false
	}
	for _, r := range records {
		r.Kind = chain.Event
		a.cfg.Log.InfoContext(ctx, "customer switched what leaves", "what", r.What)
		if _, err := a.chain.Append(ctx, r); err != nil {
			a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err)
			return false // and tried again with the next change
		}
	}
	if err := a.disk.Insist(func() error { return datadir.WriteJSON(path, now) }); err != nil {
		a.cfg.Log.ErrorContext(ctx, "what was recorded of switched classes cannot be kept", "err", err)
	}
	return true
}

// anchorEgress puts where the ledger ends into the chain: after that nobody rewrites
// it unnoticed.
func (a *agent) anchorEgress(ctx context.Context) {
	head, err := a.ledger.Sync()
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "egress ledger cannot be brought to the disk", "err", err)
		return
	}
	if a.chain != nil && head.Seq > 0 {
		a.note(ctx, ledger.AnchorWhat, ledger.AnchorDetail(head))
	}
}
