package imagetrust_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/imagetrust"
)

func key(t *testing.T) string {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestFor(t *testing.T) {
	t.Parallel()
	team, other := key(t), key(t)
	rules := []imagetrust.Rule{
		{Match: "ghcr.io/team/*", Key: team}, {Match: "ghcr.io/team/web", Key: other}, {Match: "docker.io/library/busybox", Unsigned: true}, {Match: "*/mid*le/*end", Key: team},
	}
	for _, tc := range []struct {
		name  string
		image string
		rules []imagetrust.Rule
		keys  int
		free  bool
		wrong string
	}{
		{"no rules", "any/thing", nil, 0, true, ""},
		{"one rule", "ghcr.io/team/api", rules, 1, false, ""},
		{"below", "ghcr.io/team/a/b", rules, 1, false, ""},
		{"two rules", "ghcr.io/team/web", rules, 2, false, ""},
		{"let through", "docker.io/library/busybox", rules, 0, true, ""},
		{"none matches", "docker.io/library/busybox2", rules, 0, false, "no rule"},
		{"a prefix is not enough", "evil.io/ghcr.io/team/api", rules, 0, false, "no rule"},
		{"stars in between", "a/middle/x/end", rules, 1, false, ""},
		{"stars do not overlap", "a/midle/end2", rules, 0, false, "no rule"},
		{"no name", "", rules, 0, false, "no rule"},
	} {
		n, err := imagetrust.For(tc.rules, tc.image)
		if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) || len(n.Keys) != tc.keys || n.Free != tc.free {
			t.Errorf("%s: %d keys, free %v, %v", tc.name, len(n.Keys), n.Free, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]imagetrust.Rule{
		"match is missing":    {Key: key(t)},
		"or unsigned":         {Match: "*"},
		"write key":           {Match: "*", Key: key(t), Unsigned: true},
		"it is no public key": {Match: "*", Key: "x"},
	} {
		if err := imagetrust.Check([]imagetrust.Rule{r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	if err := imagetrust.Check([]imagetrust.Rule{{Match: "*", Key: key(t)}, {Match: "x", Unsigned: true}}); err != nil {
		t.Error(err)
	}
}
