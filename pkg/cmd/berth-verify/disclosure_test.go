package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/disclosure"
)

// A release is good for the bytes that were shown, and for no others.
func TestAttackDisclosure(t *testing.T) {
	t.Parallel()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("what was shown\n")
	now := time.Now().UTC().Truncate(time.Second)
	good := disclosure.Statement{
		Type: disclosure.Type, InstallID: "ins_1", RunnerID: "rnr_1", Bundle: "support-1.txt", Digest: capsule.DigestBytes(text), Size: int64(len(text)),
		Recipient: "vendor support", At: now, Until: now.Add(time.Hour),
	}
	for name, tc := range map[string]struct {
		statement func(*disclosure.Statement)
		purpose   consent.Purpose
		bundle    string
		key       string
		code      int
		says      string
	}{
		"good":                  {bundle: string(text), code: exitOK, says: "released to vendor support"},
		"a line more":           {bundle: string(text) + "x\n", code: exitBad, says: "not the bytes"},
		"another text":          {bundle: "what was SHOWN\n", code: exitBad, says: "not the bytes"},
		"another key":           {bundle: string(text), key: capsule.EncodePublicKey(other), code: exitBad, says: "no signature of a known key"},
		"a consent's signature": {bundle: string(text), purpose: consent.ForStatement, code: exitBad, says: "payload is"},
		"without a recipient":   {statement: func(s *disclosure.Statement) { s.Recipient = "" }, bundle: string(text), code: exitBad, says: "a disclosure names"},
		"without an end":        {statement: func(s *disclosure.Statement) { s.Until = s.At }, bundle: string(text), code: exitBad, says: "a disclosure names"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, s := t.TempDir(), good
			if tc.statement != nil {
				tc.statement(&s)
			}
			if tc.purpose.Type == "" {
				tc.purpose = disclosure.Purpose
			}
			if tc.key == "" {
				tc.key = capsule.EncodePublicKey(public)
			}
			payload, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			env, err := consent.Ed25519Signer(private).Sign(tc.purpose, consent.NewEnvelope(tc.purpose, payload))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(env)
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"support-1.txt": tc.bundle, "support-1.txt" + releaseSuffix: string(raw), "key": tc.key} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			code := run([]string{"disclosure", filepath.Join(dir, "support-1.txt"+releaseSuffix), "--key", filepath.Join(dir, "key")}, nil, &out, &out)
			if code != tc.code || !strings.Contains(out.String(), tc.says) {
				t.Errorf("exit %d, %s; want %d with %q", code, out.String(), tc.code, tc.says)
			}
		})
	}
}
