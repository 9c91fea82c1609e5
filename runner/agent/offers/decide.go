package offers

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/weakened"
)

const (
	// slack is how far the clock of who signs may be ahead.
	slack = 5 * time.Minute
	// maxJump is how far a number may be above the highest that was accepted.
	maxJump = 1_000_000
)

// Entry is a release that the vendor's key vouches for, as this runner knows it.
type Entry struct {
	ReleaseID string `json:"release_id"`
	Number    int    `json:"number"`
	Manifest  string `json:"manifest"`
	// Statement is the digest of what was signed, KeyID the key. Signed is all of it.
	Statement string           `json:"statement"`
	KeyID     string           `json:"key_id"`
	Signed    capsule.Envelope `json:"signed"`
	// Items is what the release brings; nil where the chain had no room for it: then the
	// release has to be brought once more.
	Items []jobspec.ManifestItem `json:"items"`
	// Accepted is when it was accepted; zero for one that was only seen.
	Accepted time.Time `json:"accepted,omitzero"`
	// InChain: the chain has it. Until then the acceptance does not count.
	InChain bool `json:"in_chain,omitempty"`
}

// Counts says whether the release is accepted for good.
func (e Entry) Counts() bool { return !e.Accepted.IsZero() && e.InChain }

// Case is all that is known when a release is to be accepted.
type Case struct {
	// Keys are the pinned ones, OrgID and AppID what they speak for here.
	Keys         []consent.Key
	OrgID, AppID string
	// Release is what the job brings, with the statements; Manifest is what it makes.
	Release  jobspec.Release
	Manifest jobspec.Manifest
	// Known are the releases that the runner knows, Revoked those that are not taken any
	// more.
	Known   []Entry
	Revoked []Withdrawn
	// Now is never before the last record of the chain.
	Now time.Time
}

// Refusal is why a release, or something of it, is not taken.
type Refusal struct {
	Text, Remedy string
	Differs      jobspec.Difference
	// missing: no release has what the order names. One that is on its way may.
	missing bool
}

func refuse(field, want, got, remedy string) *Refusal {
	return &Refusal{Text: fmt.Sprintf("%s: want %s, got %s", field, want, got), Remedy: remedy, Differs: jobspec.Difference{Field: field, Want: want, Got: got}}
}

// The remedies.
func signRemedy(release string) string {
	return fmt.Sprintf("run berth releases sign %s --key FILE where the vendor's key is, then retry", release)
}

const newerRemedy = "deploy a newer release, or one that this install has accepted before"

// Decide says whether a release may be accepted, and as what. The first rule that speaks
// against it is the answer.
func Decide(c Case) (Entry, *Refusal) {
	r := c.Release
	digest, err := c.Manifest.Digest()
	if err != nil {
		return Entry{}, refuse("manifest", "one with a digest", err.Error(), "sync and deploy again")
	}
	named := fmt.Sprintf("release %d", r.Number)
	if w, gone := withdrawn(c.Revoked, r.ID, r.Number); gone {
		return Entry{}, w.refusal(r.Number)
	}
	highest := 0
	for _, e := range c.Known {
		if e.Accepted.IsZero() {
			continue
		}
		_, gone := withdrawn(c.Revoked, e.ReleaseID, e.Number)
		switch {
		case !e.InChain && !pins(c.Keys, e.KeyID) && e.KeyID != "": // it never counted, and its key does not any more
		case e.ReleaseID == r.ID && e.Number == r.Number && e.Manifest == digest: // accepted ones may return
			e.Items = c.Manifest.Items
			return e, nil
		case e.Number == r.Number || e.ReleaseID == r.ID:
			return Entry{}, refuse("number", fmt.Sprintf("release %d as it was accepted (%s, %s)", e.Number, e.ReleaseID, e.Manifest),
				fmt.Sprintf("another one (%s, %s)", r.ID, digest), "make a new release, sign and deploy that one")
		case !gone:
			highest = max(highest, e.Number)
		}
	}
	signed, refusal := c.vouched(digest)
	switch {
	case refusal != nil:
		return Entry{}, refusal
	case r.Number < highest:
		return Entry{}, refuse("downgrade", fmt.Sprintf("release %d or newer, or one that was accepted", highest), named+", which was never accepted here", newerRemedy)
	case r.Number-highest > maxJump:
		return Entry{}, refuse("number", fmt.Sprintf("at most %d above release %d", maxJump, highest), named, newerRemedy)
	}
	signed.Items = c.Manifest.Items
	return signed, nil
}

// vouched finds the statement that vouches for the release. Where none does, the answer
// is about the one that came nearest.
func (c Case) vouched(digest string) (Entry, *Refusal) {
	signed := c.Release.Signed
	sign := signRemedy(fmt.Sprint(c.Release.Number))
	if weakened.Is(weakened.VendorKey) {
		return Entry{ReleaseID: c.Release.ID, Number: c.Release.Number, Manifest: digest}, nil
	}
	if len(signed) == 0 {
		return Entry{}, refuse("signature", "the vendor's", fmt.Sprintf("none (berth releases sign %d makes one)", c.Release.Number), sign)
	}
	if len(signed) > offer.MaxPerRelease {
		return Entry{}, refuse("signature", fmt.Sprintf("at most %d statements", offer.MaxPerRelease), fmt.Sprintf("%d", len(signed)), sign)
	}
	var nearest *Refusal
	near := -1
	for _, env := range signed {
		s, err := offer.Open(c.Keys, env)
		if err == nil {
			refusal, step := c.against(s, digest)
			if refusal == nil {
				return Entry{ReleaseID: s.ReleaseID, Number: s.Number, Manifest: digest, Statement: env.PayloadDigest(), KeyID: s.KeyID, Signed: env}, nil
			}
			if step > near {
				nearest, near = refusal, step
			}
			continue
		}
		if near < 0 {
			got := err.Error()
			if errors.Is(err, consent.ErrSignature) {
				got = "one of another key (" + signers(env) + "), or none that verifies"
			}
			nearest = refuse("signature", "one of the vendor's key "+ids(c.Keys), got, sign)
		}
	}
	return Entry{}, nearest
}

// against says what of a statement, which the vendor's key signed, does not fit, and how
// far it came.
func (c Case) against(s offer.Statement, digest string) (*Refusal, int) {
	sign := signRemedy(fmt.Sprint(c.Release.Number))
	differs := func(field, want, got string) *Refusal { return refuse(field, want, got, sign) }
	switch {
	case s.OrgID != c.OrgID:
		return differs("org_id", c.OrgID, s.OrgID), 0
	case s.AppID != c.AppID:
		return differs("app_id", c.AppID, s.AppID), 1
	case s.ReleaseID != c.Release.ID:
		return differs("release_id", s.ReleaseID, c.Release.ID), 2
	case s.Number != c.Release.Number:
		return differs("number", fmt.Sprint(s.Number), fmt.Sprint(c.Release.Number)), 3
	case s.Manifest != digest:
		return differs("manifest", "what was signed ("+s.Manifest+")", digest+": something in the release was exchanged, or it was signed before it was complete"), 4
	case s.Issued.After(c.Now.Add(slack)):
		return differs("issued", "a time before "+stamp(c.Now), stamp(s.Issued)), 5
	case !c.Now.Before(s.Expires):
		return differs("expires", "a time after "+stamp(c.Now), stamp(s.Expires)), 6
	}
	return nil, 7
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func ids(keys []consent.Key) string {
	text := ""
	for i, k := range keys {
		if i > 0 {
			text += ", "
		}
		text += k.ID
	}
	return text
}

func signers(env capsule.Envelope) string {
	if len(env.Signatures) == 0 {
		return "no key"
	}
	return fmt.Sprintf("%.80s", env.Signatures[0].KeyID)
}

// Order is what a job is about, as far as a release has to bring it.
type Order struct {
	// Needs has to be in one release, all of it.
	Needs []jobspec.ManifestItem
	// Mutates: it may change something. Destroy: it removes what is there.
	Mutates, Destroy bool
}

// Admit says whether what an order names is in one release that the vendor signed and the
// customer accepted. A plan may also be of one that waits for the customer, and what is to
// be removed of one that was revoked since.
func Admit(known []Entry, revoked []Withdrawn, o Order) *Refusal {
	if len(o.Needs) == 0 { // copies of secrets are taken away; nothing else comes without a name
		if o.Destroy {
			return nil
		}
		return refuse("artifact", "one of a release that the vendor signed", "none", newerRemedy)
	}
	var waiting *Entry
	var gone *Refusal
	for i, e := range known {
		if !brings(e, o.Needs) {
			continue
		}
		w, isGone := withdrawn(revoked, e.ReleaseID, e.Number)
		switch {
		case isGone && !o.Destroy:
			gone = w.refusal(e.Number)
		case e.Counts() || !o.Mutates:
			return nil
		default:
			waiting = &known[i]
		}
	}
	switch {
	case waiting != nil:
		return refuse("release", "one that was accepted", fmt.Sprintf("release %d, which is not accepted yet", waiting.Number), "approve the acceptance of the release first")
	case gone != nil:
		return gone
	}
	missing := o.Needs[0]
	for _, n := range o.Needs { // name what no release has, if there is such a thing
		if !slices.ContainsFunc(known, func(e Entry) bool { return slices.Contains(e.Items, n) }) {
			missing = n
			break
		}
	}
	r := refuse(string(missing.Kind), "one of a release that the vendor signed and this install accepted",
		fmt.Sprintf("%s %s (%s)", missing.Kind, missing.Name, missing.Digest),
		"deploy the install with a signed release (berth releases sign RELEASE): this install takes signed releases only")
	r.missing = true
	return r
}

func brings(e Entry, needs []jobspec.ManifestItem) bool {
	for _, n := range needs {
		if !slices.Contains(e.Items, n) {
			return false
		}
	}
	return true
}
