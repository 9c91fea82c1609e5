package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
)

// fixture is a chain on disk with its writer's key and heads that the vendor kept.
type fixture struct{ chain, key, otherKey, trust, vendorID, head, oldHead, otherHead, vendorChain string }

func newFixture(t *testing.T) fixture {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	must := func(v any, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		if raw, ok := v.([]byte); ok {
			return raw
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	signer := func(id string, seed byte) chain.Signer {
		return chain.Signer{Chain: id, Key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)),
			Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }}
	}
	runner, vendor := signer("ins_1", 1), signer("org_1", 2)
	pub := func(s chain.Signer) []byte {
		raw, err := capsule.MarshalPublicKey(s.Key.Public().(ed25519.PublicKey))
		return must(raw, err)
	}
	f := fixture{chain: filepath.Join(dir, "acme.jsonl"), key: put("acme.pub", pub(runner)), otherKey: put("other.pub", pub(vendor))}
	f.vendorID = capsule.KeyID(vendor.Key.Public().(ed25519.PublicKey))
	f.trust = put("trust.json", must(map[string]any{"dispatch_keys": []any{map[string]any{"key_id": "x", "public_key": string(pub(vendor))}}}, nil))
	w, err := chain.Open(f.chain, runner)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, r := range []chain.Record{
		{Actor: "customer", Kind: chain.Event, What: "enrolled"},
		{Actor: "ada", Kind: chain.Intent, What: "deploy api", Effect: "sha256:e"},
		{Actor: "runner", Kind: chain.Outcome, What: "deploy api", Intent: 2, Result: "applied"},
	} {
		f.oldHead = string(must(w.SignedHead(), nil))
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	f.oldHead = put("old.json", []byte(f.oldHead))
	head := w.SignedHead()
	f.head = put("head.json", must(head, nil))
	f.otherHead = put("other.json", must(chain.SignHead(w.Head(), vendor), nil))
	anchored := chain.SignHead(w.Head(), chain.Signer{Chain: "ins_1", Key: vendor.Key, Now: vendor.Now}) // as ctl-api does
	line, err := chain.Next(chain.Head{}, chain.Record{Actor: "vendor", Kind: chain.Anchor, What: "head of acme", Anchored: &anchored}, vendor)
	if err != nil {
		t.Fatal(err)
	}
	f.vendorChain = put("vendor.jsonl", append(line.Raw, '\n'))
	return f
}

func TestRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw, err := os.ReadFile(f.chain)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	unfinished := string(lines[0]) + string(lines[1])
	changed := strings.Replace(string(raw), `"ada"`, `"eve"`, 1)
	tests := []struct {
		name   string
		args   []string
		stdin  string
		code   int
		stdout string
		stderr string
	}{
		{name: "good", args: []string{"chain", f.chain, "--key", f.key, "--head", f.head},
			stdout: "3 records · head agrees with the vendor's anchor · 0 effects without record\n"},
		{name: "the vendor's chain as head, flags first", args: []string{"--head", f.vendorChain, "--head-key", f.otherKey, "-key", f.key, "chain", f.chain},
			stdout: "3 records · head agrees with the vendor's anchor · 0 effects without record\n"},
		{name: "its key from a runner's trust file", args: []string{"chain", f.chain, "--key", f.key, "--head", f.vendorChain, "--head-key", f.trust},
			stdout: "3 records · head agrees with the vendor's anchor · 0 effects without record\n"},
		{name: "without its key", args: []string{"chain", f.chain, "--key", f.key, "--head", f.vendorChain},
			stdout: "3 records · head agrees with the vendor's anchor · 0 effects without record\n" +
				"signatures of the kept heads were not all checked: give --head-key\n"},
		{name: "with a key of somebody else", args: []string{"chain", f.chain, "--key", f.key, "--head", f.vendorChain, "--head-key", f.key}, code: 1,
			stdout: "bad: the kept head of record 3 is not to be trusted: signed head refused: unknown key \"" + f.vendorID + "\"\n0 records before it are good\n"},
		{name: "an older head", args: []string{"chain", f.chain, "--key", f.key, "--head", f.oldHead},
			stdout: "3 records · agrees with the vendor's anchor at record 2 · 0 effects without record\n"},
		{name: "without key and head", args: []string{"chain", f.chain},
			stdout: "3 records · 0 effects without record\nsignatures were not checked: give --key\n" +
				"no kept head was given (--head): records cut off the end would not be seen\n"},
		{name: "effect without outcome", args: []string{"chain", "-", "--key", f.key, "--head", f.oldHead}, stdin: unfinished,
			stdout: "2 records · head agrees with the vendor's anchor · 1 effects without record\n" +
				"  record 2: \"deploy api\" by \"ada\" at 2026-11-21 12:00:00Z has no outcome\n"},
		{name: "changed", args: []string{"chain", "-", "--key", f.key}, stdin: changed, code: 1,
			stdout: "bad: record 2 is not signed by a given key\n1 records before it are good\n"},
		{name: "cut off", args: []string{"chain", "-", "--key", f.key, "--head", f.head}, stdin: unfinished, code: 1,
			stdout: "bad: record 3 is missing: the head of record 3 was kept, but the chain ends at 2\n2 records before it are good\n"},
		{name: "key of another", args: []string{"chain", f.chain, "--key", f.otherKey}, code: 1,
			stdout: "bad: record 1 is not signed by a given key\n0 records before it are good\n"},
		{name: "head of another chain", args: []string{"chain", f.chain, "--head", f.otherHead}, code: 1,
			stdout: "bad: none of the kept heads is of this chain\n3 records before it are good\n"},
		{name: "no such file", args: []string{"chain", f.chain + "x"}, code: 1, stderr: "no such file"},
		{name: "key file is no key", args: []string{"chain", f.chain, "--key", f.head}, code: 1, stderr: "public key is neither"},
		{name: "head file is no head", args: []string{"chain", f.chain, "--head", f.key}, code: 1, stderr: "not a signed head"},
		{name: "no arguments", code: 64, stderr: `want "chain", "release", "evidence" or "disclosure", and one file or directory`},
		{name: "unknown command", args: []string{"plan", f.chain}, code: 64, stderr: `want "chain"`},
		{name: "two files", args: []string{"chain", "a", "b"}, code: 64, stderr: "one file"},
		{name: "unknown flag", args: []string{"chain", f.chain, "--force"}, code: 64, stderr: "-force"},
		{name: "unknown format", args: []string{"chain", f.chain, "-o", "xml"}, code: 64, stderr: "text or json"},
		{name: "help", args: []string{"--help"}, stdout: usage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(tt.args, strings.NewReader(tt.stdin), &stdout, &stderr)
			if code != tt.code || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("exit %d, want %d\nstdout %q\n  want %q\nstderr %q", code, tt.code, stdout.String(), tt.stdout, stderr.String())
			}
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var stdout, stderr bytes.Buffer
	if code := run([]string{"chain", f.chain, "--key", f.key, "-o", "json"}, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var got struct {
		OK      bool
		Records int
		Signed  bool
		Effects int
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || !got.OK || got.Records != 3 || !got.Signed || got.Effects != 1 {
		t.Errorf("%v: %s", err, stdout.String())
	}
}

// The vendor's keys: who pinned one, which took its place, and a release that the chain
// says was accepted by a key that was not pinned.
func TestVendorKeys(t *testing.T) {
	t.Parallel()
	pair := func() (consent.Signer, chain.VendorKey) {
		public, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return consent.Ed25519Signer(private), chain.VendorKey{KeyID: capsule.KeyID(public), Key: capsule.EncodePublicKey(public)}
	}
	old, oldKey := pair()
	_, nextKey := pair()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	rotation, err := offer.SignRotation(old, offer.Rotation{OrgID: "org_1", AppID: "app_1", NewKeyID: nextKey.KeyID, NewKey: nextKey.Key, Issued: now})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := offer.Sign(old, offer.Statement{
		OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: "rel_3", Number: 3, Manifest: capsule.DigestBytes(nil), Issued: now, Expires: now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	accepted := chain.Record{What: "release 3", Offer: &chain.Offer{ReleaseID: "rel_3", Release: 3, Manifest: capsule.DigestBytes(nil), KeyID: old.Key.ID, Signed: &signed}}
	records := []chain.Record{
		{What: "pinned", VendorKeys: &chain.VendorKeys{AppID: "app_1", Pinned: []chain.VendorKey{oldKey}, Added: []string{oldKey.KeyID}, By: "ada"}},
		accepted,
		{What: "rotated", VendorKeys: &chain.VendorKeys{
			AppID: "app_1", Pinned: []chain.VendorKey{nextKey}, Added: []string{nextKey.KeyID}, Removed: []string{oldKey.KeyID}, Rotation: &rotation, By: "bob",
		}},
	}
	check := func(code int, says []string, records ...chain.Record) {
		t.Helper()
		var text bytes.Buffer
		var head chain.Head
		_, key, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			r.Actor, r.Kind, r.Time = "customer", chain.Event, now
			line, err := chain.Next(head, r, chain.Signer{Chain: "ins_1", Key: key})
			if err != nil {
				t.Fatal(err)
			}
			head = line.Head
			text.Write(append(line.Raw, '\n'))
		}
		var out bytes.Buffer
		if got := run([]string{"chain", "-", "--keys"}, &text, &out, &out); got != code {
			t.Errorf("exit %d, want %d: %s", got, code, out.String())
		}
		for _, part := range says {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%q is not in:\n%s", part, out.String())
			}
		}
	}
	check(exitOK, []string{
		old.Key.ID + " vouches as vendor from 2026-11-27 12:00:00Z to 2026-11-27 12:00:00Z, records 1 to 2, pinned by ada, releases taken or revoked by it: 1, replaced by " + nextKey.KeyID + " in record 3 by bob",
		nextKey.KeyID + " vouches as vendor from", "pinned by bob, releases taken or revoked by it: 0",
	}, records...)
	check(exitBad, []string{"accepts a release that no vendor key of that time signed"}, append(records, accepted)...)
}
