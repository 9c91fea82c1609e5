package offer_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
)

func signer(t testing.TB) consent.Signer {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return consent.Ed25519Signer(key)
}

func statement() offer.Statement {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	return offer.Statement{
		OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: "rel_1", Number: 4,
		Manifest: capsule.DigestBytes([]byte("manifest")), Issued: at, Expires: at.Add(offer.DefaultLife),
	}
}

func TestStatementRoundTrip(t *testing.T) {
	t.Parallel()
	by := signer(t)
	env, err := offer.Sign(by, statement())
	if err != nil {
		t.Fatal(err)
	}
	want := statement()
	want.Type, want.KeyID = offer.StatementType, by.Key.ID
	opened, err := offer.Open([]consent.Key{by.Key}, env)
	if err != nil {
		t.Fatal(err)
	}
	read, err := offer.Read(env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]offer.Statement{want, want}, []offer.Statement{opened, read}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatementsThatAreRefused(t *testing.T) {
	t.Parallel()
	by := signer(t)
	for _, tc := range []struct {
		name string
		edit func(*offer.Statement)
	}{
		{"without an org", func(s *offer.Statement) { s.OrgID = "" }},
		{"without an app", func(s *offer.Statement) { s.AppID = "" }},
		{"without a release", func(s *offer.Statement) { s.ReleaseID = "" }},
		{"without a number", func(s *offer.Statement) { s.Number = 0 }},
		{"with a digest that is none", func(s *offer.Statement) { s.Manifest = "sha256:" + strings.Repeat("g", 64) }},
		{"that expires before it was issued", func(s *offer.Statement) { s.Expires = s.Issued }},
		{"that hardly ever expires", func(s *offer.Statement) { s.Expires = s.Issued.Add(offer.MaxLife + time.Second) }},
		{"with an endless name", func(s *offer.Statement) { s.App = strings.Repeat("a", 10_000) }},
	} {
		s := statement()
		tc.edit(&s)
		if _, err := offer.Sign(by, s); err == nil {
			t.Errorf("a statement %s is signed", tc.name)
		}
	}
}

// What was not written by Sign is refused although the key signed it.
func TestStatementsInAnotherForm(t *testing.T) {
	t.Parallel()
	by := signer(t)
	env, err := offer.Sign(by, statement())
	if err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"an unknown key":  strings.Replace(string(payload), "{", `{"also":1,`, 1),
		"space around it": string(payload) + "\n",
		"not JSON":        "release 4",
		"another type":    strings.Replace(string(payload), offer.StatementType, offer.RotationType, 1),
		"another key":     strings.Replace(string(payload), by.Key.ID, signer(t).Key.ID, 1),
	} {
		other, err := by.Sign(offer.ForRelease, consent.NewEnvelope(offer.ForRelease, []byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := offer.Open([]consent.Key{by.Key}, other); err == nil {
			t.Errorf("%s: it opens", name)
		}
		if _, err := offer.Read(other); err == nil {
			t.Errorf("%s: it reads", name)
		}
	}
	twice := env
	twice.Signatures = append(twice.Signatures, twice.Signatures[0])
	if _, err := offer.Read(twice); err == nil {
		t.Error("a statement with two signatures is stored")
	}
	long := env
	long.Payload = strings.Repeat("A", offer.MaxBytes+4)
	if _, err := offer.Open([]consent.Key{by.Key}, long); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("endless data: %v", err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	old := signer(t)
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	next := consent.Ed25519Signer(private)
	r := offer.Rotation{OrgID: "org_1", AppID: "app_1", NewKeyID: next.Key.ID, NewKey: capsule.EncodePublicKey(public), Issued: statement().Issued}
	env, err := offer.SignRotation(old, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Type, r.OldKeyID = offer.RotationType, old.Key.ID
	got, err := offer.OpenRotation([]consent.Key{old.Key}, env)
	if diff := cmp.Diff(r, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := offer.OpenRotation([]consent.Key{next.Key}, env); err == nil {
		t.Error("a key that did not sign vouches for the new one")
	}
	if _, err := offer.Open([]consent.Key{old.Key}, env); err == nil {
		t.Error("a rotation opens as a statement of a release")
	}
	r.NewKeyID = old.Key.ID
	if _, err := offer.SignRotation(old, r); err == nil {
		t.Error("a rotation whose key has another id is signed")
	}
}

// FuzzStatement: what is decoded and counts is exactly what would be signed.
func FuzzStatement(f *testing.F) {
	by := signer(f)
	env, err := offer.Sign(by, statement())
	if err != nil {
		f.Fatal(err)
	}
	raw, err := json.Marshal(env)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"payloadType":"application/vnd.berth.release.v1+json","payload":"e30=","signatures":[{"keyid":"k","sig":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var env capsule.Envelope
		if json.Unmarshal(data, &env) != nil {
			return
		}
		s, err := offer.Read(env)
		if err != nil {
			return
		}
		again, err := capsule.Canonical(s)
		if err != nil || env.PayloadDigest() != capsule.DigestBytes(again) {
			t.Fatalf("%+v is not what was signed: %v", s, err)
		}
		if opened, err := offer.Open([]consent.Key{by.Key}, env); err == nil && opened.KeyID != by.Key.ID {
			t.Fatalf("opened without the key: %+v", opened)
		}
	})
}

func revocation() offer.Revocation {
	return offer.Revocation{OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: "rel_1", Number: 4, Reason: "it loses data", Issued: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
}

// A revocation says all that it has to, in one line, and is no statement.
func TestRevocation(t *testing.T) {
	t.Parallel()
	by, other := signer(t), signer(t)
	env, err := offer.Revoke(by, revocation())
	if err != nil {
		t.Fatal(err)
	}
	read, err := offer.ReadRevocation(env)
	if err != nil || read.Reason != "it loses data" || read.KeyID != by.Key.ID {
		t.Errorf("read: %+v, %v", read, err)
	}
	if _, err := offer.OpenRevocation([]consent.Key{by.Key}, env); err != nil {
		t.Error(err)
	}
	if _, err := offer.OpenRevocation([]consent.Key{other.Key}, env); err == nil {
		t.Error("opened with another key")
	}
	if _, err := offer.Open([]consent.Key{by.Key}, env); err == nil {
		t.Error("a revocation passes for a statement")
	}
	for name, edit := range map[string]func(*offer.Revocation){
		"no org": func(r *offer.Revocation) { r.OrgID = "" }, "no app": func(r *offer.Revocation) { r.AppID = "" }, "no release": func(r *offer.Revocation) { r.ReleaseID = "" },
		"no number": func(r *offer.Revocation) { r.Number = 0 }, "no reason": func(r *offer.Revocation) { r.Reason = "" }, "no time": func(r *offer.Revocation) { r.Issued = time.Time{} },
		"a long reason": func(r *offer.Revocation) { r.Reason = strings.Repeat("x", 501) }, "two lines": func(r *offer.Revocation) { r.Reason = "a\nb" },
		"a zero byte": func(r *offer.Revocation) { r.App = "a\x00" },
	} {
		r := revocation()
		edit(&r)
		if _, err := offer.Revoke(by, r); err == nil {
			t.Errorf("%s: it was signed", name)
		}
	}
}

func FuzzRevocation(f *testing.F) {
	by := signer(f)
	env, err := offer.Revoke(by, revocation())
	if err != nil {
		f.Fatal(err)
	}
	raw, err := json.Marshal(env)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, data []byte) {
		var env capsule.Envelope
		if json.Unmarshal(data, &env) != nil {
			return
		}
		r, err := offer.ReadRevocation(env)
		if err != nil {
			return
		}
		again, err := capsule.Canonical(r)
		if err != nil || env.PayloadDigest() != capsule.DigestBytes(again) {
			t.Fatalf("%+v is not what was signed: %v", r, err)
		}
		if opened, err := offer.OpenRevocation([]consent.Key{by.Key}, env); err == nil && opened.KeyID != by.Key.ID {
			t.Fatalf("opened without the key: %+v", opened)
		}
	})
}
