package offers

import (
	"errors"
	"io/fs"
	"os"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// recordOf is what the chain says of an accepted release.
func recordOf(e Entry) *chain.Offer {
	o := chain.Offer{ReleaseID: e.ReleaseID, Release: e.Number, Manifest: e.Manifest, Statement: e.Statement, KeyID: e.KeyID, Signed: &e.Signed}
	for _, i := range e.Items {
		o.Items = append(o.Items, chain.OfferItem{Kind: string(i.Kind), Name: i.Name, Digest: i.Digest})
	}
	fitting := o.Fitting()
	return &fitting
}

// Restored is what another machine's chain tells of releases.
type Restored struct {
	doc     document
	revoked revocations
}

// FromChain rebuilds what was accepted from the records of the machine before, all of
// which are verified to be its own. Of a release whose items the chain had no room for,
// the runner knows only that it was accepted, and has to be brought it again.
func FromChain(records []chain.Record) (r Restored) {
	for _, rec := range records {
		o := rec.Offer
		switch {
		case o == nil:
		case o.Revoked && o.Signed != nil:
			s, err := offer.ReadRevocation(*o.Signed)
			if err != nil || s.ReleaseID != o.ReleaseID || s.Number != o.Release {
				continue
			}
			r.doc.Revoked = append(r.doc.Revoked, VendorRevocation{
				AppID: s.AppID, ReleaseID: s.ReleaseID, Number: s.Number, Reason: s.Reason, KeyID: s.KeyID, Issued: s.Issued, Came: rec.Time.UTC(), Signed: *o.Signed, InChain: true,
			})
		case o.Revoked:
			r.revoked.Releases = append(r.revoked.Releases, Revocation{Number: o.Release, Reason: rec.Detail, By: o.By, At: rec.Time.UTC()})
			r.doc.Told = append(r.doc.Told, o.Release)
		case o.Signed != nil:
			s, err := offer.Read(*o.Signed)
			if err != nil || s.ReleaseID != o.ReleaseID || s.Number != o.Release || s.Manifest != o.Manifest {
				continue // one release too few is asked for again
			}
			e := Entry{
				ReleaseID: o.ReleaseID, Number: o.Release, Manifest: o.Manifest, Statement: o.Statement, KeyID: o.KeyID, Signed: *o.Signed,
				Accepted: rec.Time.UTC(), InChain: true,
			}
			if o.Whole() && (jobspec.Manifest{ReleaseID: e.ReleaseID, Number: e.Number}).Is(o.Manifest, items(o)) {
				e.Items = items(o)
			}
			r.doc = r.doc.with(e)
		}
	}
	return r
}

func items(o *chain.Offer) []jobspec.ManifestItem {
	list := make([]jobspec.ManifestItem, 0, len(o.Items))
	for _, i := range o.Items {
		list = append(list, jobspec.ManifestItem{Kind: jobspec.ManifestKind(i.Kind), Name: i.Name, Digest: i.Digest})
	}
	return list
}

// Restore stores it for a machine that knows nothing yet. What is there stays.
func (s Store) Restore(r Restored) error {
	for path, doc := range map[string]any{s.Dir.VendorReleases(): r.doc, s.Dir.RevokedReleases(): r.revoked} {
		_, err := os.Stat(path)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := datadir.WriteJSON(path, doc); err != nil {
			return err
		}
	}
	return nil
}
