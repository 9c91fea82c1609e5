package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/version"
)

// Patience is how long to try to reach the control plane: that it does not
// answer is a finding.
const Patience = 2 * time.Second

// maxClockSkew is what signatures with a time in them can bear.
const maxClockSkew = 30 * time.Second

// Berth examines a control plane and its runners.
func Berth(ctx context.Context, client *api.Client, now func() time.Time) []Finding {
	resp, err := client.GetMeWithResponse(ctx)
	if err != nil {
		return []Finding{Bad("control plane", err)}
	}
	if resp.JSON200 == nil {
		return []Finding{{What: "control plane", Detail: "this version does not understand its answer", Remedy: "compare berth version on both sides"}}
	}
	me := resp.JSON200
	found := []Finding{good("control plane", "version %s, as %s in org %s", me.Version, me.Account.Name, me.Org.Name)}
	if own := version.Get().Version; own != me.Version {
		found = append(found, good("version", "this program is %s, the control plane %s", own, me.Version))
	}
	if theirs, err := http.ParseTime(resp.HTTPResponse.Header.Get("Date")); err == nil {
		found = append(found, clock(now(), theirs))
	}
	runners, err := client.Runners(ctx, 0, "")
	if err != nil {
		return append(found, Bad("runners", err))
	}
	for _, r := range runners {
		if r.State != ctlapi.RunnerStateRevoked {
			found = append(found, runner(r, now()))
		}
	}
	return found
}

// clock compares this machine's clock with the control plane's.
func clock(ours, theirs time.Time) Finding {
	if off := ours.Sub(theirs).Abs(); off > maxClockSkew {
		return Finding{What: "clock", Detail: fmt.Sprintf("differs by %s from the control plane's", off.Round(time.Second)),
			Remedy: "synchronise the clock of this machine (timedatectl set-ntp true)"}
	}
	return good("clock", "agrees with the control plane's")
}

func runner(r ctlapi.Runner, now time.Time) Finding {
	what := "runner " + r.Name
	switch {
	case r.DisputedSince != nil:
		return Finding{What: what, Detail: api.Value(r.Problem),
			Remedy: "find out who has a copy of its data directory, then follow docs/guides/lost-machine.md"}
	case r.Online:
		return good(what, "online, switch %s, trust %s", r.Switch, r.Trust)
	}
	seen := "never connected"
	if r.LastSeenAt != nil {
		seen = "last seen " + follow.Duration(now.Sub(*r.LastSeenAt)) + " ago"
	}
	return Finding{What: what, Detail: fmt.Sprintf("%s, %s", r.State, seen),
		Remedy: "start it on its machine (here: berth up), then berth why " + cmp.Or(api.Value(r.Install).Name, r.Name)}
}
