package enrolcode_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/enrolcode"
)

func code() enrolcode.Code {
	return enrolcode.Code{
		URL: "https://berth.example.com", OneHost: true, InstallID: "ins_1", Install: "acme",
		EnrolmentSecret: "ben_secret", PhoneHomeSecret: "bph_secret",
		DispatchKeys: []enrolcode.Key{{KeyID: "key-1", PublicKey: "6kQ2m3m8xk3cI2w6tVJ2bq0m9C0yqk3zq6m8n1f4s2Y="}},
		ExpiresAt:    time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func encode(t *testing.T, c enrolcode.Code) string {
	t.Helper()
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	text := encode(t, code())
	wrapped := "\n  " + text[:40] + "\r\n" + text[40:] + "\n"
	for _, form := range []string{text, wrapped} {
		got, err := enrolcode.Parse(form)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(code(), got); diff != "" {
			t.Errorf("code (-want +got):\n%s", diff)
		}
		if got.Digest() != code().Digest() {
			t.Error("the same code has two digests")
		}
	}
	if code().Expired(code().ExpiresAt.Add(-time.Second)) || !code().Expired(code().ExpiresAt) {
		t.Error("the end of a code is not its end")
	}
}

// Every cut and every changed character is found, and no error gives a secret
// away.
func TestDamage(t *testing.T) {
	t.Parallel()
	text := encode(t, code())
	refused := func(name, form string) {
		t.Helper()
		_, err := enrolcode.Parse(form)
		if err == nil {
			t.Errorf("%s was taken", name)
		} else if strings.Contains(err.Error(), "ben_secret") || strings.Contains(err.Error(), text[10:40]) {
			t.Errorf("%s: the error repeats the code: %v", name, err)
		}
	}
	for i := range text {
		refused("a code that is cut", text[:i])
		other := byte('A')
		if text[i] == other {
			other = 'B'
		}
		refused("a code with another character", text[:i]+string(other)+text[i+1:])
	}
	refused("a code and something", text+"AA")
	refused("two codes", text+text)
	refused("a code of another form", "berth2"+text[6:])
	refused("a very long text", strings.Repeat("A", 1<<20))
}

// A code that somebody made up, with a right sum, still has to make sense.
func TestRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*enrolcode.Code)
	}{
		{"plain http", func(c *enrolcode.Code) { c.URL = "http://berth.example.com" }},
		{"a user in the address", func(c *enrolcode.Code) { c.URL = "https://me:pass@berth.example.com" }},
		{"a path in the address", func(c *enrolcode.Code) { c.URL = "https://berth.example.com/other" }},
		{"no address", func(c *enrolcode.Code) { c.URL = "" }},
		{"no key", func(c *enrolcode.Code) { c.DispatchKeys = nil }},
		{"a key that is none", func(c *enrolcode.Code) { c.DispatchKeys = []enrolcode.Key{{KeyID: "k", PublicKey: "eA=="}} }},
		{"a secret with a line break", func(c *enrolcode.Code) { c.EnrolmentSecret = "a\nb" }},
		{"a name with a line break", func(c *enrolcode.Code) { c.Install = "acme\n---\nkind: Pod" }},
		{"no phone-home secret", func(c *enrolcode.Code) { c.PhoneHomeSecret = "" }},
		{"no end", func(c *enrolcode.Code) { c.ExpiresAt = time.Time{} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := code()
			tt.change(&c)
			if text, err := c.Encode(); err == nil {
				t.Errorf("made %s", text)
			}
		})
	}
	local := code()
	local.URL = "http://127.0.0.1:8701"
	if _, err := enrolcode.Parse(encode(t, local)); err != nil {
		t.Errorf("plain http on loopback: %v", err)
	}
	for name, raw := range map[string]string{
		"an unknown field": `{"url":"https://h","install_id":"i","run":"rm -rf"}`,
		"no JSON":          `{"url"`,
	} {
		sum := sha256.Sum256([]byte(raw))
		text := "berth1." + base64.RawURLEncoding.EncodeToString([]byte(raw)) + "." + base64.RawURLEncoding.EncodeToString(sum[:8])
		if _, err := enrolcode.Parse(text); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
