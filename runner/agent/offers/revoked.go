package offers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// maxRevoked is how many revocations of the vendor's are kept. None is forgotten: what
// comes after these is not taken, and said so.
const maxRevoked = 1000

// Revocation is that the customer does not want a release any more.
type Revocation struct {
	Number int       `json:"number"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

type revocations struct {
	Releases []Revocation `json:"releases"`
}

// VendorRevocation is that the vendor has signed that a release must not be installed
// any more. The runner keeps it for good, whatever the control plane brings later.
type VendorRevocation struct {
	AppID     string           `json:"app_id"`
	ReleaseID string           `json:"release_id"`
	Number    int              `json:"number"`
	Reason    string           `json:"reason"`
	KeyID     string           `json:"key_id"`
	Issued    time.Time        `json:"issued"`
	Came      time.Time        `json:"came"`
	Signed    capsule.Envelope `json:"signed"`
	InChain   bool             `json:"in_chain,omitempty"`
}

// Withdrawn is a release that is not taken any more, and who says so.
type Withdrawn struct {
	Number    int
	ReleaseID string // empty where the customer gave only the number
	Vendor    bool   // or the customer
	Reason    string
}

// withdrawn finds what says that a release is not taken any more.
func withdrawn(list []Withdrawn, id string, number int) (Withdrawn, bool) {
	i := slices.IndexFunc(list, func(w Withdrawn) bool { return w.Number == number || w.ReleaseID != "" && w.ReleaseID == id })
	if i < 0 {
		return Withdrawn{}, false
	}
	return list[i], true
}

func (w Withdrawn) refusal(number int) *Refusal {
	who := "customer"
	if w.Vendor {
		who = "vendor"
	}
	return refuse("revoked", "a release that the "+who+" has not revoked", fmt.Sprintf("release %d (%s)", number, w.Reason), newerRemedy)
}

// Revoked are the customer's revocations.
func (s Store) Revoked() ([]Revocation, error) {
	var file revocations
	if _, err := datadir.ReadJSON(s.Dir.RevokedReleases(), &file); err != nil {
		return nil, fmt.Errorf("revoked releases: %w", err)
	}
	return file.Releases, nil
}

// RevokedByVendor are the vendor's revocations that came here.
func (s Store) RevokedByVendor() ([]VendorRevocation, error) {
	doc, err := s.read()
	return doc.Revoked, err
}

// Revoke writes down that a release is not wanted any more. Twice is once.
func (s Store) Revoke(r Revocation) error {
	list, err := s.Revoked()
	if err != nil || slices.ContainsFunc(list, func(was Revocation) bool { return was.Number == r.Number }) {
		return err
	}
	return datadir.WriteJSON(s.Dir.RevokedReleases(), revocations{append(list, r)})
}

// Signed is what a revocation is checked against.
type Signed struct {
	Keys         []consent.Key
	OrgID, AppID string
	Now          time.Time
}

// Revokes decides whether a revocation that the control plane brought counts.
func (s Signed) Revokes(env capsule.Envelope) (VendorRevocation, error) {
	r, err := offer.OpenRevocation(s.Keys, env)
	switch {
	case err != nil:
		return VendorRevocation{}, err
	case r.OrgID != s.OrgID || r.AppID != s.AppID:
		return VendorRevocation{}, fmt.Errorf("revocation of a release: it is about app %s of org %s, and this install is of app %s of org %s", r.AppID, r.OrgID, s.AppID, s.OrgID)
	}
	// Its time is the vendor's word, for people: a revocation counts whenever it was made.
	return VendorRevocation{AppID: r.AppID, ReleaseID: r.ReleaseID, Number: r.Number, Reason: r.Reason, KeyID: r.KeyID, Issued: r.Issued, Came: s.Now, Signed: env}, nil
}

// learn takes the revocations that the control plane brought and that count. mu is held.
func (g *Gate) learn(c Case, doc document) (document, error) {
	brought := c.Release.Revoked
	if g.Brought != nil {
		brought = append(slices.Clone(brought), g.Brought()...)
	}
	n := len(doc.Revoked)
	for _, env := range brought {
		digest := env.PayloadDigest()
		if slices.ContainsFunc(doc.Revoked, func(was VendorRevocation) bool { return was.Signed.PayloadDigest() == digest }) {
			continue
		}
		r, err := Signed{Keys: c.Keys, OrgID: c.OrgID, AppID: c.AppID, Now: g.Now().UTC()}.Revokes(env)
		switch {
		case err == nil && slices.ContainsFunc(doc.Revoked, func(was VendorRevocation) bool { return was.Number == r.Number && was.ReleaseID == r.ReleaseID }):
			continue // revoked once more is nothing new
		case err == nil && len(doc.Revoked) >= maxRevoked:
			err = errors.New("more revocations than this runner keeps")
		}
		if err != nil {
			g.ignore(digest, err)
			continue
		}
		doc.Revoked = append(doc.Revoked, r)
	}
	if len(doc.Revoked) == n {
		return doc, nil
	}
	return doc, g.write(doc)
}

// ignore says once that a revocation does not count.
func (g *Gate) ignore(digest string, why error) {
	if g.Ignored == nil || slices.Contains(g.ignored, digest) {
		return
	}
	if len(g.ignored) >= maxRevoked { // a few are said twice, and memory stays bounded
		g.ignored = g.ignored[1:]
	}
	g.ignored = append(g.ignored, digest)
	g.Ignored(why)
}

// tellRevoked brings revocations that the chain does not have into it: the customer's and
// the vendor's. mu is held.
func (g *Gate) tellRevoked(ctx context.Context) error {
	list, err := g.Revoked()
	if err != nil {
		return err
	}
	doc, err := g.read()
	if err != nil {
		return err
	}
	for _, r := range list {
		if slices.Contains(doc.Told, r.Number) {
			continue
		}
		err := g.Append(ctx, chain.Record{
			Actor: "customer", Kind: chain.Event, What: fmt.Sprintf("release %d of the vendor was revoked", r.Number), Result: "revoked",
			Detail: r.Reason, Offer: &chain.Offer{Release: r.Number, Revoked: true, By: r.By},
		})
		if err != nil {
			return err
		}
		doc.Told = append(doc.Told, r.Number)
		if err := g.write(doc); err != nil {
			return err
		}
	}
	for i, r := range doc.Revoked {
		if r.InChain {
			continue
		}
		err := g.Append(ctx, chain.Record{
			Actor: "vendor", Kind: chain.Event, What: fmt.Sprintf("the vendor revoked its release %d", r.Number), Result: "revoked",
			Detail: r.Reason, Offer: &chain.Offer{
				ReleaseID: r.ReleaseID, Release: r.Number, Statement: r.Signed.PayloadDigest(), KeyID: r.KeyID, Signed: &r.Signed, Revoked: true,
			},
		})
		if err != nil {
			return err
		}
		doc.Revoked = slices.Clone(doc.Revoked)
		doc.Revoked[i].InChain = true
		if err := g.write(doc); err != nil {
			return err
		}
	}
	return nil
}
