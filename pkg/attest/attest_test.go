package attest_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
)

var artifact = digest.FromString("artifact")

func signed(t *testing.T) (ed25519.PublicKey, []byte) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	contents := attest.Contents{Comment: "All.", Packages: []attest.Package{{Name: "a<b", Version: "1", PURL: "pkg:helm/a@1"}, {Name: "x", Named: true}}}
	s, err := attest.About("org/app/web", artifact, attest.SPDX, contents.Document("org/app/web", artifact, time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := attest.Sign(key, s)
	if err != nil {
		t.Fatal(err)
	}
	return pub, raw
}

func TestSign(t *testing.T) {
	t.Parallel()
	pub, raw := signed(t)
	s, payload, err := attest.Open(raw, pub)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Names(artifact) || s.Names(digest.FromString("other")) || s.PredicateType != attest.SPDX || !bytes.Contains(payload, []byte("a<b")) {
		t.Errorf("opened %+v", s)
	}
	var d struct {
		Relationships []struct {
			Type string `json:"relationshipType"`
		} `json:"relationships"`
		Packages []struct {
			Download string `json:"downloadLocation"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(s.Predicate, &d); err != nil || len(d.Relationships) != 3 || d.Relationships[1].Type != "CONTAINS" || d.Relationships[2].Type != "DEPENDS_ON" || d.Packages[1].Download != "NOASSERTION" {
		t.Errorf("%+v, %v", d, err)
	}
}

// Nothing of a bundle can be changed, and no other key passes for the one that signed.
func TestAttackBundle(t *testing.T) {
	t.Parallel()
	pub, raw := signed(t)
	other, theirs := signed(t)
	if _, _, err := attest.Open(raw, other); !errors.Is(err, attest.ErrSignature) {
		t.Errorf("by another key: %v", err)
	}
	if _, _, err := attest.Open(theirs, pub); !errors.Is(err, attest.ErrSignature) {
		t.Errorf("of another key: %v", err)
	}
	change := func(edit func(map[string]any)) []byte {
		var b map[string]any
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		edit(b)
		changed, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	envelope := func(b map[string]any) map[string]any { return b["dsseEnvelope"].(map[string]any) }
	for name, bundle := range map[string][]byte{
		"another payload": change(func(b map[string]any) {
			text, _ := base64.StdEncoding.DecodeString(envelope(b)["payload"].(string))
			envelope(b)["payload"] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(text), artifact.Encoded(), digest.FromString("x").Encoded(), 1)))
		}),
		"another type":   change(func(b map[string]any) { envelope(b)["payloadType"] = "application/json" }),
		"no signature":   change(func(b map[string]any) { envelope(b)["signatures"] = []any{} }),
		"no envelope":    change(func(b map[string]any) { delete(b, "dsseEnvelope") }),
		"no bundle":      change(func(b map[string]any) { b["mediaType"] = "application/json" }),
		"nothing":        nil,
		"something else": []byte(`[1]`),
		"a key of its own": change(func(b map[string]any) {
			b["verificationMaterial"] = map[string]any{"publicKey": map[string]any{"rawBytes": base64.StdEncoding.EncodeToString(other)}}
			envelope(b)["signatures"] = []any{}
		}),
		"an empty signature": change(func(b map[string]any) { envelope(b)["signatures"] = []any{map[string]any{"sig": ""}} }),
	} {
		if _, _, err := attest.Open(bundle, pub); !errors.Is(err, attest.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	pub, key, err := ed25519.GenerateKey(bytes.NewReader(make([]byte, 64)))
	if err != nil {
		f.Fatal(err)
	}
	raw, err := attest.SignRaw(key, []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"x"}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, payload, err := attest.Open(in, pub)
		if err == nil && (s.PredicateType != "x" || string(payload) != `{"_type":"https://in-toto.io/Statement/v1","predicateType":"x"}`) {
			t.Errorf("opened what nobody signed: %s", payload)
		}
	})
}
