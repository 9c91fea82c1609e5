package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/berth-dev/berth/pkg/seal"
)

// sealFirstForm seals as Berth did before sealed bytes carried their purpose, or
// any plaintext that somebody who knows the recipient makes up.
func sealFirstForm(t testing.TB, recipient string, plain []byte) []byte {
	t.Helper()
	to, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every field of the purpose counts: what was sealed as one thing does not open
// as another, no matter who asks.
func TestAttackSealedBytesDoNotOpenAsSomethingElse(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	state := seal.Purpose{OrgID: "org_a", InstallID: "ins_a", Kind: seal.KindState, Resource: "res_db", Lineage: "l1", Serial: 7}
	secret := []byte(`{"outputs":{"password":{"value":"hunter22"}}}`)
	sealed, err := seal.Seal([]string{id.Recipient()}, state, secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *seal.Purpose){
		"another org":      func(p *seal.Purpose) { p.OrgID = "org_b" },
		"another install":  func(p *seal.Purpose) { p.InstallID = "ins_b" },
		"another kind":     func(p *seal.Purpose) { p.Kind = seal.KindInput },
		"another resource": func(p *seal.Purpose) { p.Resource = "res_web" },
		"a path":           func(p *seal.Purpose) { p.Path = "x" },
		"another lineage":  func(p *seal.Purpose) { p.Lineage = "l2" },
		"a lower serial":   func(p *seal.Purpose) { p.Serial = 6 },
	} {
		other := state
		change(&other)
		got, err := seal.Open(id, other, sealed)
		if !errors.Is(err, seal.ErrOtherPurpose) || got != nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("opened for %s: %q, %v; want ErrOtherPurpose", name, got, err)
		}
		if r, err := seal.NewReader(bytes.NewReader(sealed), id, other); err == nil {
			text, _ := io.ReadAll(r)
			t.Errorf("a stream opened for %s: %q", name, text)
		}
	}
	if got, err := seal.OpenFirstForm(id, sealed); !errors.Is(err, seal.ErrOtherPurpose) || got != nil {
		t.Errorf("opened as the first form: %q, %v", got, err)
	}
	if got, err := seal.Open(id, state, sealed); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("opened for its own purpose: %q, %v", got, err)
	}

	// The first form names no purpose and opens only where it is asked for.
	old := sealFirstForm(t, id.Recipient(), secret)
	if got, err := seal.Open(id, state, old); !errors.Is(err, seal.ErrFirstForm) || got != nil {
		t.Errorf("the first form opened: %q, %v", got, err)
	}
	if got, err := seal.OpenFirstForm(id, old); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("OpenFirstForm: %q, %v", got, err)
	}
}

func TestOpenRefusesBrokenPurposes(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	prefix := func(length uint32, text string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte("berth-seal-2"), length), text...)
	}
	for name, plain := range map[string][]byte{
		"the header alone":     []byte("berth-seal-2"),
		"half a length":        []byte("berth-seal-2\x00\x00"),
		"a huge length":        prefix(1<<31, "{}secret"),
		"longer than it is":    prefix(200, "{}"),
		"no JSON":              prefix(6, "secretsecret"),
		"spaces in it":         prefix(3, "{ }secret"),
		"control characters":   prefix(30, `{"org_id":"\u001b[2J","kind":""}`),
		"a form to come":       []byte("berth-seal-3 and more"),
		"nothing":              nil,
		"part of a header":     []byte("berth-"),
		"a purpose with extra": prefix(uint32(len(`{"install_id":"ins_a","kind":"input","org_id":"org_a","path":"password","x":1}`)), `{"install_id":"ins_a","kind":"input","org_id":"org_a","path":"password","x":1}`),
	} {
		got, err := seal.Open(id, purpose, sealFirstForm(t, id.Recipient(), plain))
		if err == nil || got != nil || !errors.Is(err, seal.ErrOtherPurpose) && !errors.Is(err, seal.ErrFirstForm) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: the error has control characters: %q", name, err)
		}
	}
}

func TestEveryRecipientOpens(t *testing.T) {
	t.Parallel()
	install, recovery, stranger := newIdentity(t), newIdentity(t), newIdentity(t)
	sealed, err := seal.Seal([]string{install.Recipient(), recovery.Recipient()}, purpose, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []*seal.Identity{install, recovery} {
		if got, err := seal.Open(id, purpose, sealed); err != nil || string(got) != "secret" {
			t.Errorf("%v: %q, %v", id, got, err)
		}
	}
	if _, err := seal.Open(stranger, purpose, sealed); !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := seal.Seal(nil, purpose, []byte("secret")); err == nil {
		t.Error("sealed to nobody")
	}
	if _, err := seal.Seal([]string{install.Recipient()}, seal.Purpose{}, nil); err == nil {
		t.Error("sealed for nothing")
	}
}

func TestLeafOutOfPlace(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	at := func(path []string) (seal.Purpose, bool) {
		p := purpose
		p.Path = seal.Path(path...)
		return p, len(path) == 2 && path[0] == "inputs"
	}
	tree := map[string]any{"inputs": map[string]any{"a": "secret-a", "b": "secret-b"}, "free": "text"}
	out, err := seal.SealLeaves([]string{id.Recipient()}, tree, at)
	if err != nil {
		t.Fatal(err)
	}
	sealed := out.(map[string]any)
	inputs := sealed["inputs"].(map[string]any)
	inputs["a"], inputs["b"] = inputs["b"], inputs["a"]
	if got, err := seal.OpenLeaves(id.Opener(), sealed, at); !errors.Is(err, seal.ErrOtherPurpose) {
		t.Errorf("leaves that were swapped opened: %v, %v", got, err)
	}
	inputs["a"], inputs["b"] = inputs["b"], inputs["a"]
	sealed["free"] = inputs["a"]
	if got, err := seal.OpenLeaves(id.Opener(), sealed, at); !errors.Is(err, seal.ErrOtherPurpose) || !strings.HasPrefix(err.Error(), "at free: ") {
		t.Errorf("a leaf where none belongs opened: %v, %v", got, err)
	}
}

func TestPathIsUnambiguous(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, parts := range [][]string{{"a", "b"}, {"a/b"}, {"a~1b"}, {"a~", "1b"}, {"a", "", "b"}, {"a~01b"}} {
		text, name := seal.Path(parts...), strings.Join(parts, " | ")
		if before, taken := seen[text]; taken {
			t.Errorf("%s and %s are both %q", before, name, text)
		}
		seen[text] = name
	}
}

// FuzzOpenSealedPurpose gives the opener plaintexts and ciphertexts of a stranger
// who knows the recipient: nothing is released unless it begins with exactly the
// purpose that is asked for.
func FuzzOpenSealedPurpose(f *testing.F) {
	id, err := seal.GenerateIdentity()
	if err != nil {
		f.Fatal(err)
	}
	own, err := seal.Seal([]string{id.Recipient()}, purpose, []byte("secret"))
	if err != nil {
		f.Fatal(err)
	}
	canonical := `{"install_id":"ins_a","kind":"input","org_id":"org_a","path":"password"}`
	want := append(binary.BigEndian.AppendUint32([]byte("berth-seal-2"), uint32(len(canonical))), canonical...)
	f.Add(append(bytes.Clone(want), "secret"...), false)
	f.Add([]byte("berth-seal-2\x00\x00\x00\x02{}secret"), false)
	f.Add([]byte("hunter22"), false)
	f.Add(own, true)
	f.Fuzz(func(t *testing.T, data []byte, ciphertext bool) {
		sealed := data
		if !ciphertext {
			sealed = sealFirstForm(t, id.Recipient(), data)
		}
		got, err := seal.Open(id, purpose, sealed)
		switch {
		case err != nil && got != nil:
			t.Fatalf("%q came with the error %v", got, err)
		case err == nil && !ciphertext && (!bytes.HasPrefix(data, want) || !bytes.Equal(got, data[len(want):])):
			t.Fatalf("%q was released as %q", data, got)
		case err == nil && ciphertext && !bytes.Equal(data, own) && string(got) != "secret":
			// age is malleable in no way that yields another plaintext.
			t.Fatalf("changed bytes were released as %q", got)
		}
		other := purpose
		other.Path = "another"
		if got, err := seal.Open(id, other, sealed); err == nil && bytes.HasPrefix(data, want) {
			t.Fatalf("%q opened for another purpose", got)
		}
		tree := map[string]any{"x": map[string]any{"$sealed": base64.StdEncoding.EncodeToString(sealed)}}
		if opened, err := seal.OpenLeaves(id.Opener(), tree, func([]string) (seal.Purpose, bool) { return other, true }); err == nil && bytes.HasPrefix(data, want) {
			t.Fatalf("%v opened as a leaf of another purpose", opened)
		}
	})
}
