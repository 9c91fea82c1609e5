package consent_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
)

// securityKey signs as a FIDO key does, with flags of its own choosing.
type securityKey struct {
	key   ed25519.PrivateKey
	flags byte
}

const application = "ssh:"

func (k securityKey) PublicKey() ssh.PublicKey {
	pub, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Point       []byte
		Application string
	}{ssh.KeyAlgoSKED25519, k.key.Public().(ed25519.PublicKey), application}))
	if err != nil {
		panic(err)
	}
	return pub
}

func (k securityKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	app, sum := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	rest := []byte{k.flags, 0, 0, 0, 7}
	signed := append(append(app[:], rest...), sum[:]...)
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.key, signed), Rest: rest}, nil
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sshSigner(t testing.TB, key any) consent.Signer {
	t.Helper()
	from, ok := key.(ssh.Signer)
	if !ok {
		var err error
		if from, err = ssh.NewSignerFromKey(key); err != nil {
			t.Fatal(err)
		}
	}
	s, err := consent.SSHSigner(from)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// line is an SSH key as authorized_keys has it.
func line(t testing.TB, key any) string {
	t.Helper()
	if from, ok := key.(ssh.Signer); ok {
		return string(ssh.MarshalAuthorizedKey(from.PublicKey()))
	}
	from, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(from.PublicKey()))
}

func base64Of(key ed25519.PrivateKey) string {
	return capsule.EncodePublicKey(key.Public().(ed25519.PublicKey))
}

func parse(t testing.TB, text string) consent.Key {
	t.Helper()
	key, err := consent.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	raw, plain, touch := newKey(t), newKey(t), securityKey{newKey(t), 1}
	keys := []consent.Key{parse(t, base64Of(raw)), parse(t, line(t, plain)), parse(t, line(t, touch))}
	signers := []consent.Signer{consent.Ed25519Signer(raw), sshSigner(t, plain), sshSigner(t, touch)}
	env := consent.NewEnvelope(consent.ForStatement, []byte("text"))
	for i, s := range signers {
		if s.Key.ID != keys[i].ID || keys[i].Hardware() != (i == 2) {
			t.Fatalf("key %d has id %s, its signer %s", i, keys[i].ID, s.Key.ID)
		}
		var err error
		if env, err = s.Sign(consent.ForStatement, env); err != nil {
			t.Fatal(err)
		}
	}
	if ids, payload, err := consent.Signers(keys, consent.ForStatement, env); err != nil || len(ids) != 3 || string(payload) != "text" {
		t.Fatalf("Signers = %v, %q, %v", ids, payload, err)
	}
	sign := func(s consent.Signer, p consent.Purpose) func(*capsule.Envelope) {
		return func(e *capsule.Envelope) {
			signed, err := s.Sign(p, consent.NewEnvelope(p, []byte("text")))
			if err != nil {
				t.Fatal(err)
			}
			e.Signatures = signed.Signatures
		}
	}
	// unchecked is a signature of a security key that Sign itself would refuse to attach.
	untouched := func(e *capsule.Envelope) {
		armored := consent.SignUnchecked(securityKey{touch.key, 0}, consent.ForStatement, []byte("text"))
		e.Signatures = []capsule.Signature{{KeyID: keys[2].ID, Sig: base64.StdEncoding.EncodeToString(armored)}}
	}
	for name, change := range map[string]func(*capsule.Envelope){
		"another text":                func(e *capsule.Envelope) { e.Payload = base64.StdEncoding.EncodeToString([]byte("other")) },
		"another purpose":             func(e *capsule.Envelope) { e.PayloadType = consent.ForRules.Type },
		"namespace of the rules":      sign(signers[1], consent.ForRules),
		"DSSE type of the rules":      sign(signers[0], consent.ForRules),
		"an unknown key":              sign(sshSigner(t, newKey(t)), consent.ForStatement),
		"a key under another's id":    func(e *capsule.Envelope) { e.Signatures[1].KeyID = keys[2].ID },
		"DSSE in the place of SSH":    func(e *capsule.Envelope) { e.Signatures[1].Sig = e.Signatures[0].Sig },
		"SSH in the place of DSSE":    func(e *capsule.Envelope) { e.Signatures[0].Sig = e.Signatures[1].Sig },
		"no signature":                func(e *capsule.Envelope) { e.Signatures = nil },
		"one bad among good ones":     func(e *capsule.Envelope) { e.Signatures[2].Sig = "AAAA" },
		"more signatures than people": func(e *capsule.Envelope) { e.Signatures = make([]capsule.Signature, 65) },
		"a key that was not touched":  untouched,
	} {
		bad := env
		bad.Signatures = append([]capsule.Signature(nil), env.Signatures...)
		change(&bad)
		if ids, _, err := consent.Signers(keys, consent.ForStatement, bad); !errors.Is(err, consent.ErrSignature) {
			t.Errorf("%s: signed by %v, %v", name, ids, err)
		}
	}
	if _, err := sshSigner(t, securityKey{touch.key, 0}).Sign(consent.ForStatement, env); err == nil || !strings.Contains(err.Error(), "not touched") {
		t.Errorf("signing without a touch: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	touch := line(t, securityKey{newKey(t), 1})
	for name, text := range map[string]string{
		"nothing":           "",
		"without the touch": "no-touch-required " + touch,
		"another option":    `command="x" ` + touch,
		"two keys":          touch + touch,
		"another algorithm": "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=",
		"half a key":        "AAAA",
	} {
		if key, err := consent.ParseKey(text); err == nil {
			t.Errorf("%s: taken as %s", name, key.ID)
		}
	}
}

// TestSignaturesOfOpenSSH has ssh-keygen sign, as somebody does on another machine, and
// ssh-keygen verify what we sign.
func TestSignaturesOfOpenSSH(t *testing.T) {
	t.Parallel()
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("needs ssh-keygen")
	}
	dir := t.TempDir()
	run := func(stdin string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), keygen, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen %v: %v\n%s", args, err, out)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("", "-q", "-t", "ed25519", "-N", "", "-f", "k")
	write("text", []byte("what is signed"))
	keys := []consent.Key{parse(t, string(read("k.pub")))}
	for _, hash := range []string{"sha512", "sha256"} {
		_ = os.Remove(filepath.Join(dir, "text.sig"))
		run("", "-q", "-Y", "sign", "-n", consent.ForStatement.Namespace, "-O", "hashalg="+hash, "-f", "k", "text")
		env, key, err := consent.Attach(keys, consent.ForStatement, consent.NewEnvelope(consent.ForStatement, read("text")), read("text.sig"))
		if err != nil || key.ID != keys[0].ID {
			t.Fatalf("%s: Attach = %s, %v", hash, key.ID, err)
		}
		if _, _, err := consent.Signers(keys, consent.ForStatement, env); err != nil {
			t.Errorf("%s: %v", hash, err)
		}
		if _, _, err := consent.Attach(keys, consent.ForRules, consent.NewEnvelope(consent.ForRules, read("text")), read("text.sig")); !errors.Is(err, consent.ErrSignature) {
			t.Errorf("%s: taken for the rules: %v", hash, err)
		}
	}
	private, err := ssh.ParseRawPrivateKey(read("k"))
	if err != nil {
		t.Fatal(err)
	}
	env, err := sshSigner(t, *private.(*ed25519.PrivateKey)).Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, read("text")))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := base64.StdEncoding.DecodeString(env.Signatures[0].Sig)
	if err != nil {
		t.Fatal(err)
	}
	write("ours.sig", consent.PEM(blob))
	write("allowed", append([]byte("ada "), read("k.pub")...))
	run("what is signed", "-q", "-Y", "verify", "-n", consent.ForStatement.Namespace, "-f", "allowed", "-I", "ada", "-s", "ours.sig")
}

func FuzzSSHSignature(f *testing.F) {
	key := newKey(f)
	signer := sshSigner(f, key)
	env, err := signer.Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, []byte("text")))
	if err != nil {
		f.Fatal(err)
	}
	blob, _ := base64.StdEncoding.DecodeString(env.Signatures[0].Sig)
	f.Add(blob)
	f.Add(consent.SignUnchecked(securityKey{key, 0}, consent.ForStatement, []byte("text")))
	keys := []consent.Key{signer.Key, parse(f, line(f, securityKey{key, 1}))}
	f.Fuzz(func(t *testing.T, raw []byte) {
		env, _, err := consent.Attach(keys, consent.ForStatement, consent.NewEnvelope(consent.ForStatement, []byte("other")), consent.PEM(raw))
		if err == nil {
			t.Errorf("a signature for another text was taken: %+v", env)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	key := newKey(f)
	signer := consent.Ed25519Signer(key)
	env, err := signer.Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, []byte("text")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(env.Payload, env.Signatures[0].Sig, uint8(1))
	f.Add(env.Payload, env.Signatures[0].Sig, uint8(64))
	f.Add("dGV4dA==", "AAAA", uint8(200))
	f.Fuzz(func(t *testing.T, payload, sig string, n uint8) {
		e := capsule.Envelope{PayloadType: consent.ForStatement.Type, Payload: payload}
		for range n {
			e.Signatures = append(e.Signatures, capsule.Signature{KeyID: signer.Key.ID, Sig: sig})
		}
		ids, text, err := consent.Signers([]consent.Key{signer.Key}, consent.ForStatement, e)
		if err == nil && (len(ids) != 1 || string(text) != "text") {
			t.Errorf("signed by %v: %q", ids, text)
		}
	})
}
