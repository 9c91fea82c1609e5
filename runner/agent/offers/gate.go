package offers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

const (
	// maxSeen is how many releases are remembered that nobody accepted, the last ones.
	maxSeen = 16
	// maxAccepted is how many are remembered that were. Those that were not brought for
	// longest are forgotten first, the highest never: nothing older comes after it.
	maxAccepted = 100
	// comingWait is how long a plan waits for the release that was given out with it.
	comingWait = 30 * time.Second
)

// Store is what is on disk of releases. The agent and the customer's command use it at
// the same time: the agent alone writes document, the command alone revocations.
type Store struct {
	Dir   datadir.Dir
	OrgID string
	Now   func() time.Time
}

// document is the file of the agent.
type document struct {
	Releases []Entry `json:"releases"`
	// Told are the customer's revocations that the chain has, by number.
	Told []int `json:"told,omitempty"`
	// Revoked are the vendor's.
	Revoked []VendorRevocation `json:"revoked,omitempty"`
}

// Pinned are the vendor's keys; none where the customer has pinned none.
func (s Store) Pinned() (datadir.Vendor, []consent.Key, error) {
	trust, err := s.Dir.LoadTrust()
	if err != nil || trust.Vendor == nil {
		return datadir.Vendor{}, nil, err
	}
	keys, err := trust.Vendor.Parse()
	return *trust.Vendor, keys, err
}

// Known are the releases that were seen and accepted, by number.
func (s Store) Known() ([]Entry, error) {
	doc, err := s.read()
	return doc.Releases, err
}

func (s Store) read() (doc document, err error) {
	if _, err := datadir.ReadJSON(s.Dir.VendorReleases(), &doc); err != nil {
		return doc, fmt.Errorf("accepted releases: %w", err)
	}
	return doc, nil
}

// Gate is the agent's side. Safe for concurrent use.
type Gate struct {
	Store
	// Clock is the time, never before the last record of the chain.
	Clock func() (time.Time, error)
	// Append writes to the chain.
	Append func(context.Context, chain.Record) error
	// Said is what the chain says of the vendor's keys; nil for a chain that only grows.
	Said func() *chain.VendorKeys
	// Brought are the revocations of the vendor's that came with settings; nil for none.
	Brought func() []capsule.Envelope
	// Ignored is called once with the reason why one that was brought does not count; it may be nil.
	Ignored func(why error)

	mu sync.Mutex
	// told is what was appended last of the vendor's keys, and then the chain said after it:
	// events may wait for the chain, and a decision of the customer's may cut it.
	told, then *chain.VendorKeys

	ignored []string        // digests
	coming  []chan struct{} // closed once the release of a job was decided about
}

// state is all that is decided by, with what a job brings of release. Before anything is
// decided by it, the chain says so. mu is held.
func (g *Gate) state(ctx context.Context, release jobspec.Release) (c Case, doc document, vendor datadir.Vendor, err error) {
	if err := g.tellPins(ctx); err != nil {
		return c, doc, vendor, err
	}
	if vendor, c.Keys, err = g.Pinned(); err != nil || len(c.Keys) == 0 {
		return c, doc, vendor, err
	}
	doc, err = g.read()
	if err != nil {
		return c, doc, vendor, err
	}
	c.OrgID, c.AppID, c.Release = g.OrgID, vendor.AppID, release
	if doc, err = g.learn(c, doc); err != nil {
		return c, doc, vendor, err
	}
	revoked, err := g.Revoked()
	for _, r := range revoked {
		c.Revoked = append(c.Revoked, Withdrawn{Number: r.Number, Reason: r.Reason})
	}
	for _, r := range doc.Revoked {
		if r.AppID != vendor.AppID {
			continue
		}
		c.Revoked = append(c.Revoked, Withdrawn{Number: r.Number, ReleaseID: r.ReleaseID, Vendor: true, Reason: r.Reason})
	}
	c.Known = doc.Releases
	return c, doc, vendor, err
}

// See decides about a release that is to be accepted, and remembers it so that its plans
// may be made. Nil without a pinned key, too.
func (g *Gate) See(ctx context.Context, release jobspec.Release) (*Refusal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, refusal, err := g.see(ctx, release)
	return refusal, err
}

// see returns the entry; one without a release when no key is pinned. mu is held.
func (g *Gate) see(ctx context.Context, release jobspec.Release) (Entry, *Refusal, error) {
	c, doc, _, err := g.state(ctx, release)
	if err != nil || len(c.Keys) == 0 {
		return Entry{}, nil, err
	}
	if c.Now, err = g.Clock(); err != nil {
		return Entry{}, nil, err
	}
	if c.Manifest, err = release.Manifest(); err != nil {
		return Entry{}, nil, err
	}
	entry, refusal := Decide(c)
	if refusal != nil {
		return entry, refusal, nil
	}
	if slices.ContainsFunc(doc.Releases, func(was Entry) bool { return was.same(entry) }) {
		return entry, nil, nil
	}
	return entry, nil, g.write(doc.with(entry))
}

// Accept makes a release an accepted one, and returns once the chain has it. It decides
// again: it may have expired since it was seen, or have been revoked.
func (g *Gate) Accept(ctx context.Context, release jobspec.Release, job string) (*Refusal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry, refusal, err := g.see(ctx, release)
	if err != nil || refusal != nil || entry.ReleaseID == "" || entry.Counts() {
		return refusal, err
	}
	if entry.Accepted.IsZero() {
		entry.Accepted = g.Now().UTC()
	}
	doc, err := g.read()
	if err == nil {
		err = g.write(doc.with(entry)) // before the chain: an intent that is in it must not be lost
	}
	if err != nil {
		return nil, err
	}
	err = g.Append(ctx, chain.Record{
		Actor: "runner", Kind: chain.Event, What: fmt.Sprintf("release %d of the vendor was accepted", entry.Number), Job: job, Result: "accepted",
		Detail: fmt.Sprintf("manifest %s, signed by %s", entry.Manifest, entry.KeyID), Offer: recordOf(entry),
	})
	if err != nil {
		return nil, err
	}
	entry.InChain = true
	return nil, g.write(doc.with(entry))
}

// Coming says that a job with a release has begun: plans that need one wait for it. Call
// seen once it was decided about, or will not be.
func (g *Gate) Coming() (seen func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := make(chan struct{})
	g.coming = append(g.coming, at)
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.coming = slices.DeleteFunc(g.coming, func(c chan struct{}) bool { return c == at })
		close(at)
	})
}

// Admit says whether a job may be worked on. adHoc is a script that is part of no release.
// The plans of a release are given out together with the release itself: one that comes
// first waits for that.
func (g *Gate) Admit(ctx context.Context, o Order, adHoc bool) (*Refusal, error) {
	due := time.NewTimer(comingWait)
	defer due.Stop()
	for {
		g.mu.Lock()
		var next chan struct{}
		if len(g.coming) > 0 && !o.Mutates {
			next = g.coming[0]
		}
		g.mu.Unlock()
		refused, err := g.admit(ctx, o, adHoc)
		if err != nil || refused == nil || !refused.missing || next == nil {
			return refused, err
		}
		select {
		case <-next:
		case <-due.C:
			return refused, nil
		case <-ctx.Done():
			return refused, nil
		}
	}
}

func (g *Gate) admit(ctx context.Context, o Order, adHoc bool) (*Refusal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, _, vendor, err := g.state(ctx, jobspec.Release{})
	switch {
	case err != nil || len(c.Keys) == 0:
		return nil, err
	case adHoc && vendor.AdHocScripts:
		return nil, nil
	case adHoc:
		return refuse("script", "one of a signed release", "an ad-hoc script, which is part of none",
			"make it an action of the app, sign and deploy the release; or the customer allows them: ad_hoc_scripts in vendor of trust.json"), nil
	}
	return Admit(c.Known, c.Revoked, o), nil
}

// Tell takes the revocations that were brought, and brings what the chain does not have yet
// into it: which keys are pinned, and which releases were revoked.
func (g *Gate) Tell(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, _, _, err := g.state(ctx, jobspec.Release{}); err != nil {
		return err
	}
	return g.tellRevoked(ctx)
}

func (g *Gate) write(doc document) error { return datadir.WriteJSON(g.Dir.VendorReleases(), doc) }

// with is the document with an entry, in place of what was known of the release.
func (d document) with(e Entry) document {
	d.Releases = slices.DeleteFunc(slices.Clone(d.Releases), func(was Entry) bool {
		return was.Number == e.Number && (was.ReleaseID == e.ReleaseID || was.Accepted.IsZero())
	})
	d.Releases = append(d.Releases, e)
	seen, accepted, highest := 0, 0, 0
	for _, known := range d.Releases {
		if !known.Accepted.IsZero() {
			highest = max(highest, known.Number)
		}
	}
	for i := len(d.Releases) - 1; i >= 0; i-- { // the last written come last
		n, most := &seen, maxSeen
		if !d.Releases[i].Accepted.IsZero() {
			n, most = &accepted, maxAccepted
		}
		if *n++; *n > most && (n == &seen || d.Releases[i].Number != highest) {
			d.Releases = slices.Delete(d.Releases, i, i+1)
		}
	}
	return d
}

// same says whether two entries say the same of a release.
func (e Entry) same(other Entry) bool {
	return e.ReleaseID == other.ReleaseID && e.Number == other.Number && e.Manifest == other.Manifest && e.Statement == other.Statement &&
		e.Accepted.Equal(other.Accepted) && e.InChain == other.InChain && len(e.Items) == len(other.Items)
}

// Newest are the accepted releases, the highest number first.
func Newest(known []Entry) []Entry {
	list := slices.DeleteFunc(slices.Clone(known), func(e Entry) bool { return !e.Counts() })
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(b.Number, a.Number) })
	return list
}
