package capsule_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/berth-dev/berth/pkg/capsule"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   any
		want string // "" means refused
	}{
		{"keys by UTF-16 code unit", json.RawMessage(`{"\u20ac":1,"\r":2,"1":4,"\ud83d\ude00":6,"\u0080":5,"\ufb33":3}`), "{\"\\r\":2,\"1\":4,\"\u0080\":5,\"€\":1,\"😀\":6,\"\ufb33\":3}"},
		{"space and escapes", json.RawMessage(` { "a" : "\u003c\/\u0041" , "b":[ ] } `), `{"a":"</A","b":[]}`},
		{"numbers", json.RawMessage(`[1.0,1e2,-0,0.5e1,1E-7,123456789012345680000]`), `[1,100,0,5,1e-7,123456789012345680000]`},
		{"scalar", "text", `"text"`},
		{"null", nil, `null`},
		{"struct", struct {
			B int    `json:"b"`
			A string `json:"a"`
		}{1, "x"}, `{"a":"x","b":1}`},
		{"largest exact integer", json.RawMessage(`9007199254740992`), `9007199254740992`},
		{"integer past 53 bits", json.RawMessage(`{"a":[9007199254740993]}`), ""},
		{"int64 past 53 bits", int64(math.MaxInt64), ""},
		{"fraction with too many digits", json.RawMessage(`0.10000000000000000001`), ""},
		{"number too large", json.RawMessage(`1e400`), ""},
		{"number too small", json.RawMessage(`1e-400`), ""},
		{"exponent of a billion", json.RawMessage(`1e-1000000000`), ""},
		{"repeated key", json.RawMessage(`{"a":1,"a":2}`), ""},
		{"repeated key, escaped", json.RawMessage(`{"a":1,"\u0061":2}`), ""},
		{"lone high surrogate", json.RawMessage(`"\ud800x"`), ""},
		{"lone low surrogate", json.RawMessage(`"\uDC00"`), ""},
		{"two high surrogates", json.RawMessage(`"\ud800\ud800"`), ""},
		{"escaped backslash before ud800", json.RawMessage(`"\\ud800"`), `"\\ud800"`},
		{"not UTF-8 in a string", map[string]string{"a": "\xff"}, ""},
		{"not UTF-8 in raw text", json.RawMessage("\"\xff\""), ""},
		{"U+FFFD itself", map[string]string{"a": "\ufffd"}, "{\"a\":\"\ufffd\"}"},
		{"U+FFFD escaped in raw text", json.RawMessage(`"\ufffd"`), "\"\ufffd\""},
		{"two values", json.RawMessage(`1,2`), ""},
		{"closing bracket", json.RawMessage(`1],[2`), ""},
		{"not JSON", []byte(`{a:1}`), ""},
		{"hexadecimal number", []byte(`0x10`), ""},
		{"NaN", math.NaN(), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := capsule.Canonical(tt.in)
			if tt.want == "" {
				if !errors.Is(err, capsule.ErrNotCanonical) {
					t.Errorf("Canonical = %s, %v, want ErrNotCanonical", got, err)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("Canonical = %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestExact(t *testing.T) {
	t.Parallel()
	digest := func(text string) string {
		var tree any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		exact, err := capsule.Exact(tree)
		if err != nil {
			t.Fatal(err)
		}
		out, err := capsule.DigestOf(exact)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if digest(`{"id":9007199254740993}`) == digest(`{"id":9007199254740992}`) {
		t.Error("two numbers have one digest")
	}
	if digest(`[1.50]`) != digest(`[1.5]`) {
		t.Error("one number has two digests")
	}
	if _, err := capsule.Exact(map[string]any{"$number": "1"}); !errors.Is(err, capsule.ErrNotCanonical) {
		t.Errorf("the reserved key: %v, want ErrNotCanonical", err)
	}
}

func TestDigests(t *testing.T) {
	t.Parallel()
	got, err := capsule.DigestOf(map[string]int{})
	// echo -n '{}' | sha256sum
	if want := "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"; err != nil || got != want {
		t.Errorf("DigestOf({}) = %s, %v, want %s", got, err, want)
	}
	// RFC 4231, test case 2.
	if got, want := capsule.SaltedDigest([]byte("Jefe"), []byte("what do ya want for nothing?")),
		"hmac-sha256:5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"; got != want {
		t.Errorf("SaltedDigest = %s, want %s", got, want)
	}
}

func effect() capsule.Effect {
	return capsule.Effect{
		OrgID: "org_1", InstallID: "ins_1", Target: "machine-1", ChangeKind: "deploy", Component: "api", ResourceID: "res_1",
		ArtifactDigest: "sha256:a", Tool: capsule.Tool{Name: "terraform", Version: "1.13.0", Digest: "sha256:t"},
		EngineDigest: "sha256:e", PluginDigest: "", InputsDigest: "hmac-sha256:i", PlanDigest: "sha256:p", FootprintDigest: "sha256:f",
		Role: "maintenance", Lineage: "l", Serial: 7, GuardrailsDigest: "sha256:g", Verdict: "pass",
	}
}

// TestEachFieldOfAnEffectIsBound changes each field in turn, found by
// reflection, so that a field added later is covered too.
func TestEachFieldOfAnEffectIsBound(t *testing.T) {
	t.Parallel()
	base := effect()
	if diffs := capsule.Diff(base, effect()); len(diffs) != 0 || base.Digest() != effect().Digest() {
		t.Fatalf("equal effects differ: %v", diffs)
	}
	var each func(v reflect.Value, changed *capsule.Effect)
	count := 0
	each = func(v reflect.Value, changed *capsule.Effect) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			was := reflect.ValueOf(f.Interface())
			switch f.Kind() {
			case reflect.Struct:
				each(f, changed)
				continue
			case reflect.Int64:
				f.SetInt(f.Int() + 1)
			default:
				f.SetString(f.String() + "x")
			}
			count++
			if changed.Digest() == base.Digest() {
				t.Errorf("%s changed, digest is the same", name)
			}
			if diffs := capsule.Diff(base, *changed); len(diffs) != 1 {
				t.Errorf("%s changed, Diff = %v", name, diffs)
			}
			f.Set(was)
		}
	}
	changed := effect()
	each(reflect.ValueOf(&changed).Elem(), &changed)
	if count != 20 {
		t.Errorf("%d fields were changed, want 20", count)
	}

	changed.Tool.Version = "1.14.0"
	want := []capsule.FieldDiff{{Field: "tool.version", A: "1.13.0", B: "1.14.0"}}
	if diff := cmp.Diff(want, capsule.Diff(base, changed)); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
}

func TestEffectsWithoutCanonicalFormKeepDistinctDigests(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, change := range []func(*capsule.Effect){
		func(*capsule.Effect) {},
		func(e *capsule.Effect) { e.Role = "\xff" },
		func(e *capsule.Effect) { e.Role = "\xfe" },
		func(e *capsule.Effect) { e.Role = "\ufffd" },
		func(e *capsule.Effect) { e.Serial = 1 << 53 },
		func(e *capsule.Effect) { e.Serial = 1<<53 + 1 },
		func(e *capsule.Effect) { e.Serial = 1<<53 + 2 },
	} {
		e := effect()
		change(&e)
		if before, twice := seen[e.Digest()]; twice {
			t.Errorf("effects %d and %d share a digest", before, i)
		}
		seen[e.Digest()] = i
	}
}

func TestReaches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version, floor string
		want           bool
	}{
		{"1.2.0", "1.2.0", true},
		{"v1.10.0", "1.2.0", true},
		{"1.1.9", "v1.2.0", false},
		{"1.2.0-rc.1", "1.2.0", false},
		{"dev", "1.2.0", false},
		{"1.2.0", "new", false},
		{"dev", "", true},
	} {
		if got := capsule.Reaches(tt.version, tt.floor); got != tt.want {
			t.Errorf("Reaches(%q, %q) = %v", tt.version, tt.floor, got)
		}
	}
}

func newKey(t *testing.T) (string, ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return capsule.KeyID(pub), pub, key
}

func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	id, pub, key := newKey(t)
	keys := map[string]ed25519.PublicKey{id: pub}
	want := capsule.Order{EffectDigest: "sha256:e", Fence: 7, ExpiresAt: now, Nonce: capsule.NewNonce()}
	env, err := capsule.Sign(key, id, capsule.OrderType, want)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	var received capsule.Envelope
	if err := json.Unmarshal(raw, &received); err != nil {
		t.Fatal(err)
	}
	var got capsule.Order
	signer, err := capsule.Verify(keys, capsule.OrderType, received, &got)
	if err != nil || signer != id {
		t.Fatalf("Verify = %q, %v", signer, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}

	otherID, otherPub, otherKey := newKey(t)
	payload, _ := base64.StdEncoding.DecodeString(env.Payload)
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	attacks := []struct {
		name   string
		keys   map[string]ed25519.PublicKey
		typ    string
		change func(*capsule.Envelope)
	}{
		{name: "payload changed", change: func(e *capsule.Envelope) {
			e.Payload = encode(strings.Replace(string(payload), `"fence":7`, `"fence":8`, 1))
		}},
		{name: "payload with a space more", change: func(e *capsule.Envelope) { e.Payload = encode(string(payload) + " ") }},
		{name: "payload not base64", change: func(e *capsule.Envelope) { e.Payload = "{}" }},
		{name: "settings passed off as a capsule", change: func(e *capsule.Envelope) {
			*e, _ = capsule.Sign(key, id, capsule.SettingsType, want)
		}},
		{name: "settings relabelled", change: func(e *capsule.Envelope) {
			*e, _ = capsule.Sign(key, id, capsule.SettingsType, want)
			e.PayloadType = capsule.OrderType
		}},
		{name: "capsule where settings are wanted", typ: capsule.SettingsType},
		{name: "no signature", change: func(e *capsule.Envelope) { e.Signatures = nil }},
		{name: "signature of an unknown key", change: func(e *capsule.Envelope) {
			*e, _ = capsule.Sign(otherKey, otherID, capsule.OrderType, want)
		}},
		{name: "signature of another key under a trusted id", change: func(e *capsule.Envelope) {
			*e, _ = capsule.Sign(otherKey, id, capsule.OrderType, want)
		}},
		{name: "no keys", keys: map[string]ed25519.PublicKey{}},
		{name: "key cut short", keys: map[string]ed25519.PublicKey{id: pub[:31]}},
		{name: "key of another under the id", keys: map[string]ed25519.PublicKey{id: otherPub}},
	}
	for _, tt := range attacks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, trusted, typ := env, keys, capsule.OrderType
			if tt.change != nil {
				tt.change(&e)
			}
			if tt.keys != nil {
				trusted = tt.keys
			}
			if tt.typ != "" {
				typ = tt.typ
			}
			var out capsule.Order
			if _, err := capsule.Verify(trusted, typ, e, &out); !errors.Is(err, capsule.ErrSignature) {
				t.Errorf("Verify: %v, want ErrSignature", err)
			}
			if out != (capsule.Order{}) {
				t.Errorf("out was written: %+v", out)
			}
		})
	}
}

func TestCountersign(t *testing.T) {
	t.Parallel()
	vendorID, vendorPub, vendor := newKey(t)
	customerID, customerPub, customer := newKey(t)
	keys := map[string]ed25519.PublicKey{vendorID: vendorPub, customerID: customerPub}
	env, err := capsule.Sign(vendor, vendorID, capsule.OrderType, capsule.Order{Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := capsule.Signers(keys, capsule.OrderType, env); err != nil || !cmp.Equal(got, []string{vendorID}) {
		t.Errorf("Signers before = %v, %v", got, err)
	}
	both, err := capsule.Countersign(customer, customerID, env)
	if err != nil {
		t.Fatal(err)
	}
	both.Signatures = append(both.Signatures, both.Signatures[0]) // a repeated one counts once
	if got, err := capsule.Signers(keys, capsule.OrderType, both); err != nil || !cmp.Equal(got, []string{vendorID, customerID}) {
		t.Errorf("Signers after = %v, %v", got, err)
	}
	if len(env.Signatures) != 1 || env.PayloadDigest() != both.PayloadDigest() || env.PayloadDigest() == "" {
		t.Error("counter-signing changed the envelope or its payload")
	}
}

// TestOtherImplementationAgrees has the DSSE project's own code read ours.
func TestOtherImplementationAgrees(t *testing.T) {
	t.Parallel()
	id, pub, key := newKey(t)
	env, err := capsule.Sign(key, id, capsule.OrderType, capsule.Order{JobID: "job_1"})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(env.Payload)
	sig, _ := base64.StdEncoding.DecodeString(env.Signatures[0].Sig)
	if !ed25519.Verify(pub, dsse.PAE(env.PayloadType, raw), sig) {
		t.Error("signature is not over the pre-authentication encoding of DSSE")
	}
}

func TestKeysRoundTrip(t *testing.T) {
	t.Parallel()
	id, pub, key := newKey(t)
	secret, err := capsule.MarshalPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := capsule.MarshalPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := capsule.ParsePrivateKey(secret); err != nil || !got.Equal(key) {
		t.Errorf("ParsePrivateKey: %v", err)
	}
	for _, text := range []string{string(public), capsule.EncodePublicKey(pub) + "\n"} {
		if got, err := capsule.ParsePublicKey(text); err != nil || !got.Equal(pub) || capsule.KeyID(got) != id {
			t.Errorf("ParsePublicKey(%q): %v", text, err)
		}
	}
	for _, text := range []string{"", "AAAA", string(secret), string(public[:60])} {
		if _, err := capsule.ParsePublicKey(text); err == nil {
			t.Errorf("ParsePublicKey(%.20q): no error", text)
		}
	}
	if _, err := capsule.ParsePrivateKey(public); err == nil {
		t.Error("ParsePrivateKey of a public key: no error")
	}
}

// A nonce that is stored in a file which a restart does not read would be
// forgotten, and its capsule could be executed again.
func TestNoNonceGoesIntoAFileThatIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in", "nonces")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := capsule.OpenNonceFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := os.Rename(filepath.Dir(path), filepath.Dir(path)+".away"); err != nil {
		t.Fatal(err)
	}
	if err := n.Prune(now); err == nil {
		t.Error("Prune without a directory: no error")
	}
	if err := n.Use("a", now.Add(time.Minute), now); err == nil {
		t.Error("Use after the file was lost: no error")
	}
}

func TestNonceFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nonces")
	reopen := func() *capsule.NonceFile {
		t.Helper()
		n, err := capsule.OpenNonceFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	use := func(n *capsule.NonceFile, nonce string, expires, at time.Time, want error) {
		t.Helper()
		if err := n.Use(nonce, expires, at); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("Use(%q, %s) at %s: %v, want %v", nonce, expires, at, err, want)
		}
	}
	soon, later := now.Add(time.Minute), now.Add(time.Hour)

	n := reopen()
	use(n, "a", soon, now, nil)
	use(n, "a", soon, now, capsule.ErrNonceUsed)
	use(n, "a", later, now, capsule.ErrNonceUsed)
	use(n, "b", later, now, nil)
	use(n, "c", now, now, capsule.ErrNonceExpired)
	for _, bad := range []string{"", "a b", "a\n9999999999 b", "floor", strings.Repeat("x", 257)} {
		use(n, bad, later, now, capsule.ErrNonceForm)
	}
	// No Close: the process is killed here.
	if n = reopen(); !n.Used("a") || !n.Used("b") || n.Used("c") {
		t.Error("the set is another after a kill")
	}
	use(n, "a", soon, now, capsule.ErrNonceUsed)

	if err := n.Prune(soon.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*capsule.NonceFile{n, reopen()} {
		if n.Used("a") || !n.Used("b") {
			t.Error("Prune forgot the wrong nonce")
		}
		// The clock goes back to when a's capsule was good.
		use(n, "a", soon, now, capsule.ErrNonceExpired)
		use(n, "b", later, now, capsule.ErrNonceUsed)
	}

	// A crash in the middle of a line: cut off, the rest stays.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("17952"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	n = reopen()
	use(n, "d", later, now, nil)
	if n = reopen(); !n.Used("b") || !n.Used("d") {
		t.Error("a torn line took others with it")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	use(n, "e", later, now, os.ErrClosed)

	if err := os.WriteFile(path, []byte("what is this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := capsule.OpenNonceFile(path); err == nil {
		t.Error("a damaged file opens as an empty set")
	}
}
