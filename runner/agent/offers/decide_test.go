package offers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/runner/agent/offers"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func newSigner(t testing.TB) consent.Signer {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return consent.Ed25519Signer(key)
}

// release is number n with one artifact, one config and one script of its own.
func release(n int) jobspec.Release {
	name := string(rune('a' + n%26))
	return jobspec.Release{
		ID: "rel_" + name, Number: n, Artifacts: []jobspec.ReleaseArtifact{{Name: "api", Digest: capsule.DigestBytes([]byte("artifact " + name))}},
		Configs: []jobspec.ReleaseConfig{{Name: "api", Digest: capsule.DigestBytes([]byte("config " + name))}},
		Scripts: []jobspec.Script{{Action: jobspec.Action{Name: "look", Steps: []jobspec.ActionStep{{Name: "s", InlineContents: "look at " + name}}}, TimeoutSeconds: 5}},
	}
}

func manifest(t testing.TB, r jobspec.Release) (jobspec.Manifest, string) {
	t.Helper()
	m, err := r.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return m, digest
}

// says signs a release, after an edit.
func says(t testing.TB, by consent.Signer, r jobspec.Release, edit func(*offer.Statement)) capsule.Envelope {
	t.Helper()
	_, digest := manifest(t, r)
	s := offer.Statement{
		OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: r.ID, Number: r.Number, Manifest: digest,
		Issued: now.Add(-time.Hour), Expires: now.Add(time.Hour),
	}
	edit(&s)
	env, err := offer.Sign(by, s)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func asItIs(*offer.Statement) {}

// gone is that the customer revoked a release.
func gone(number int) []offers.Withdrawn {
	return []offers.Withdrawn{{Number: number, Reason: "recalled"}}
}

// accepted is a release as the runner knows it once it was accepted.
func accepted(t testing.TB, by consent.Signer, r jobspec.Release) offers.Entry {
	t.Helper()
	m, digest := manifest(t, r)
	env := says(t, by, r, asItIs)
	return offers.Entry{
		ReleaseID: r.ID, Number: r.Number, Manifest: digest, Statement: env.PayloadDigest(), KeyID: by.Key.ID, Signed: env, Items: m.Items,
		Accepted: now.Add(-30 * time.Minute), InChain: true,
	}
}

// attack is one case of a release that is offered.
type attack struct {
	name string
	edit func(c *offers.Case)
	// field is what the refusal names, "" for an acceptance.
	field string
}

// try offers release 5, signed by the pinned key, to a runner that has accepted 3.
func try(t *testing.T, key consent.Signer, attacks ...attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			c := offers.Case{
				Keys: []consent.Key{key.Key}, OrgID: "org_1", AppID: "app_1", Release: release(5), Known: []offers.Entry{accepted(t, key, release(3))}, Now: now,
			}
			c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, asItIs)}
			a.edit(&c)
			c.Manifest, _ = manifest(t, c.Release)
			entry, refusal := offers.Decide(c)
			switch {
			case a.field == "" && refusal != nil:
				t.Errorf("refused: %+v", refusal)
			case a.field == "" && (entry.ReleaseID != c.Release.ID || entry.Number != c.Release.Number || !slices.Equal(entry.Items, c.Manifest.Items)):
				t.Errorf("accepted as %+v", entry)
			case a.field != "" && (refusal == nil || refusal.Differs.Field != a.field || refusal.Remedy == "" || !strings.HasPrefix(refusal.Text, a.field)):
				t.Errorf("%+v, want it refused for %q", refusal, a.field)
			}
		})
	}
}

func TestDecideTakesWhatTheVendorSigned(t *testing.T) {
	key, next := newSigner(t), newSigner(t)
	try(t, key,
		attack{"a signed release", func(*offers.Case) {}, ""},
		attack{"the first one", func(c *offers.Case) { c.Known = nil }, ""},
		attack{"one of two statements is good", func(c *offers.Case) {
			c.Release.Signed = append([]capsule.Envelope{says(t, next, c.Release, asItIs)}, c.Release.Signed...)
		}, ""},
		attack{"by one of two pinned keys", func(c *offers.Case) { c.Keys = append([]consent.Key{next.Key}, c.Keys...) }, ""},
		attack{"what a release has for one install is not signed", func(c *offers.Case) { c.Release.Roles = nil }, ""},
	)
}

// The attacks of The Update Framework, one by one (theupdateframework.github.io: "attacks
// and weaknesses").

func TestTUFArbitraryInstallation(t *testing.T) {
	key, other := newSigner(t), newSigner(t)
	try(t, key,
		attack{"unsigned", func(c *offers.Case) { c.Release.Signed = nil }, "signature"},
		attack{"signed by another key", func(c *offers.Case) { c.Release.Signed = []capsule.Envelope{says(t, other, c.Release, asItIs)} }, "signature"},
		attack{"signed by another key under the pinned one's name", func(c *offers.Case) {
			env := says(t, other, c.Release, asItIs)
			env.Signatures[0].KeyID = key.Key.ID
			c.Release.Signed = []capsule.Envelope{env}
		}, "signature"},
		attack{"the signature of a consent", func(c *offers.Case) {
			env, err := key.Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, []byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			c.Release.Signed = []capsule.Envelope{env}
		}, "signature"},
		attack{"a statement with one byte changed", func(c *offers.Case) {
			signed := &c.Release.Signed[0]
			signed.Payload = signed.Payload[:len(signed.Payload)-4] + "AAAA"
		}, "signature"},
	)
}

func TestTUFEndlessData(t *testing.T) {
	key := newSigner(t)
	try(t, key,
		attack{"a statement without end", func(c *offers.Case) { c.Release.Signed[0].Payload = strings.Repeat("A", 1<<20) }, "signature"},
		attack{"statements without end", func(c *offers.Case) {
			c.Release.Signed = slices.Repeat(c.Release.Signed, offer.MaxPerRelease+1)
		}, "signature"},
		attack{"signatures without end", func(c *offers.Case) {
			c.Release.Signed[0].Signatures = slices.Repeat(c.Release.Signed[0].Signatures, 1000)
		}, "signature"},
	)
}

func TestTUFExtraneousDependencies(t *testing.T) {
	key := newSigner(t)
	try(t, key,
		attack{"an artifact more", func(c *offers.Case) {
			c.Release.Artifacts = append(c.Release.Artifacts, jobspec.ReleaseArtifact{Name: "miner", Digest: capsule.DigestBytes([]byte("miner"))})
		}, "manifest"},
		attack{"a script more", func(c *offers.Case) {
			c.Release.Scripts = append(c.Release.Scripts, jobspec.Script{Action: jobspec.Action{Name: "miner"}})
		}, "manifest"},
	)
}

func TestTUFFastForward(t *testing.T) {
	key := newSigner(t)
	far := func(c *offers.Case) {
		c.Release.Number = 50_000_000
		c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, asItIs)}
	}
	high := accepted(t, key, release(900))
	try(t, key,
		attack{"a number that leaves no room above it", far, "number"},
		attack{"what was jumped over is older", func(c *offers.Case) { c.Known = append(c.Known, high) }, "downgrade"},
		attack{"until the customer revokes what jumped", func(c *offers.Case) { c.Known, c.Revoked = append(c.Known, high), gone(900) }, ""},
	)
}

func TestTUFIndefiniteFreeze(t *testing.T) {
	key := newSigner(t)
	expired := func(s *offer.Statement) { s.Expires = now }
	try(t, key,
		attack{"a release whose time is over", func(c *offers.Case) { c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, expired)} }, "expires"},
		attack{"one that was accepted before stays", func(c *offers.Case) {
			c.Release = release(3)
			c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, expired)}
		}, ""},
		attack{"signed in the future", func(c *offers.Case) {
			c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, func(s *offer.Statement) { s.Issued = now.Add(time.Minute * 30) })}
		}, "issued"},
	)
}

func TestTUFMixAndMatch(t *testing.T) {
	key := newSigner(t)
	try(t, key,
		attack{"the artifact of another release", func(c *offers.Case) { c.Release.Artifacts = release(3).Artifacts }, "manifest"},
		attack{"the script of another release", func(c *offers.Case) { c.Release.Scripts = release(3).Scripts }, "manifest"},
		attack{"the config of another release", func(c *offers.Case) { c.Release.Configs = release(3).Configs }, "manifest"},
		attack{"the statement of another release", func(c *offers.Case) { c.Release.Signed = []capsule.Envelope{says(t, key, release(6), asItIs)} }, "release_id"},
	)
	three, five := accepted(t, key, release(3)), accepted(t, key, release(5))
	refusal := offers.Admit([]offers.Entry{three, five}, nil, offers.Order{Mutates: true, Needs: []jobspec.ManifestItem{three.Items[0], five.Items[1]}})
	if refusal == nil {
		t.Error("an artifact of one release is applied with the config of another")
	}
}

func TestTUFRollback(t *testing.T) {
	key := newSigner(t)
	older := func(c *offers.Case) {
		c.Release = release(2)
		c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, asItIs)}
	}
	try(t, key,
		attack{"older, and never accepted", older, "downgrade"},
		attack{"older, and accepted before", func(c *offers.Case) { older(c); c.Known = append(c.Known, accepted(t, key, release(2))) }, ""},
		attack{"older than one that was only seen", func(c *offers.Case) {
			older(c)
			c.Known[0].Accepted = time.Time{}
		}, ""},
		attack{"revoked by the customer", func(c *offers.Case) { c.Revoked = gone(5) }, "revoked"},
		attack{"accepted before, and revoked since", func(c *offers.Case) { c.Release, c.Revoked = release(3), gone(3) }, "revoked"},
	)
}

func TestTUFKeyCompromise(t *testing.T) {
	old, next := newSigner(t), newSigner(t)
	try(t, next, // the customer has accepted the rotation
		attack{"the old key signs no more", func(c *offers.Case) { c.Release.Signed = []capsule.Envelope{says(t, old, c.Release, asItIs)} }, "signature"},
		attack{"what it signed of an accepted release stays", func(c *offers.Case) {
			c.Release, c.Known = release(3), []offers.Entry{accepted(t, old, release(3))}
			c.Release.Signed = []capsule.Envelope{says(t, old, c.Release, asItIs)}
		}, ""},
		attack{"the number of an accepted release with other contents", func(c *offers.Case) {
			c.Release = release(3)
			c.Release.Artifacts[0].Digest = capsule.DigestBytes([]byte("evil"))
			c.Release.Signed = []capsule.Envelope{says(t, next, c.Release, asItIs)}
		}, "number"},
		attack{"the number of an accepted release under another id", func(c *offers.Case) {
			c.Release = release(3)
			c.Release.ID = "rel_z"
			c.Release.Signed = []capsule.Envelope{says(t, next, c.Release, asItIs)}
		}, "number"},
	)
}

func TestTUFWrongInstallation(t *testing.T) {
	key := newSigner(t)
	other := func(edit func(*offer.Statement)) func(*offers.Case) {
		return func(c *offers.Case) { c.Release.Signed = []capsule.Envelope{says(t, key, c.Release, edit)} }
	}
	try(t, key,
		attack{"of another org", other(func(s *offer.Statement) { s.OrgID = "org_2" }), "org_id"},
		attack{"of another app", other(func(s *offer.Statement) { s.AppID = "app_2" }), "app_id"},
		attack{"of another release", other(func(s *offer.Statement) { s.ReleaseID = "rel_x" }), "release_id"},
		attack{"of another number", other(func(s *offer.Statement) { s.Number = 6 }), "number"},
	)
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	key := newSigner(t)
	known := accepted(t, key, release(3))
	seen := accepted(t, key, release(5))
	seen.Accepted, seen.InChain = time.Time{}, false
	untold := accepted(t, key, release(7))
	untold.InChain = false
	all := []offers.Entry{known, seen, untold}
	for _, tc := range []struct {
		name    string
		needs   []jobspec.ManifestItem
		mutates bool
		destroy bool
		revoked []offers.Withdrawn
		field   string // "" when it is admitted
	}{
		{name: "an apply of an accepted release", needs: known.Items, mutates: true},
		{name: "a plan of one that waits for the customer", needs: seen.Items},
		{name: "an apply of one that waits for the customer", needs: seen.Items, mutates: true, field: "release"},
		{name: "an apply of one that the chain does not have", needs: untold.Items, mutates: true, field: "release"},
		{name: "a plan of something else", needs: []jobspec.ManifestItem{{Kind: jobspec.ManifestArtifact, Name: "api", Digest: "sha256:evil"}}, field: "artifact"},
		{name: "the artifact of one component as that of another", needs: []jobspec.ManifestItem{{Kind: jobspec.ManifestArtifact, Name: "db", Digest: known.Items[0].Digest}}, field: "artifact"},
		{name: "a script of no release", needs: []jobspec.ManifestItem{{Kind: jobspec.ManifestScript, Name: "look", Digest: "sha256:evil"}}, field: "script"},
		{name: "a revoked release", needs: known.Items, revoked: gone(3), field: "revoked"},
		{name: "the teardown of a revoked release", needs: known.Items, mutates: true, destroy: true, revoked: gone(3)},
		{name: "nothing that has a name", mutates: true, field: "artifact"},
		{name: "copies of secrets are taken away", mutates: true, destroy: true},
		{name: "the teardown of something else", needs: []jobspec.ManifestItem{{Kind: jobspec.ManifestArtifact, Name: "api", Digest: "sha256:evil"}}, mutates: true, destroy: true, field: "artifact"},
	} {
		refusal := offers.Admit(all, tc.revoked, offers.Order{Needs: tc.needs, Mutates: tc.mutates, Destroy: tc.destroy})
		switch {
		case tc.field == "" && refusal != nil:
			t.Errorf("%s: %+v", tc.name, refusal)
		case tc.field != "" && (refusal == nil || refusal.Differs.Field != tc.field || refusal.Remedy == ""):
			t.Errorf("%s: %+v, want it refused for %q", tc.name, refusal, tc.field)
		}
	}
}
