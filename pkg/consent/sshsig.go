package consent

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/berth-dev/berth/pkg/capsule"
)

// OpenSSH's PROTOCOL.sshsig.
const (
	sshMagic   = "SSHSIG"
	sshVersion = 1
	sshArmor   = "SSH SIGNATURE" // of the PEM block that ssh-keygen -Y sign writes

	hashSHA512 = "sha512"
	hashSHA256 = "sha256"

	// touched is the flag of a security key's signature that somebody was there.
	touched = 0x01
)

// sshBlob is a signature as it is stored, after the magic.
type sshBlob struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signedBySSH is what is signed: never the message itself, so that a signature for a
// login can not be taken for one of these.
func signedBySSH(namespace, hash string, message []byte) []byte {
	var sum []byte
	if hash == hashSHA256 {
		h := sha256.Sum256(message)
		sum = h[:]
	} else {
		h := sha512.Sum512(message)
		sum = h[:]
	}
	return append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{namespace, "", hash, sum})...)
}

func encodeSSH(key ssh.PublicKey, namespace string, sig *ssh.Signature) []byte {
	return append([]byte(sshMagic), ssh.Marshal(sshBlob{
		Version: sshVersion, PublicKey: key.Marshal(), Namespace: namespace, Hash: hashSHA512, Signature: ssh.Marshal(*sig),
	})...)
}

// parseSSH reads a stored signature. It verifies nothing.
func parseSSH(blob []byte) (parsed sshBlob, sig ssh.Signature, err error) {
	bad := func(what string) (sshBlob, ssh.Signature, error) {
		return sshBlob{}, ssh.Signature{}, fmt.Errorf("%w: %s", ErrSignature, what)
	}
	rest, found := bytes.CutPrefix(blob, []byte(sshMagic))
	switch {
	case len(blob) > maxSSHSig:
		return bad("the SSH signature is too long")
	case !found || ssh.Unmarshal(rest, &parsed) != nil:
		return bad("not an SSH signature")
	case parsed.Version != sshVersion:
		return bad(fmt.Sprintf("SSH signature of version %d", parsed.Version))
	case parsed.Reserved != "":
		return bad("the SSH signature has a reserved field")
	case parsed.Hash != hashSHA512 && parsed.Hash != hashSHA256:
		return bad(fmt.Sprintf("SSH signature over hash %.20q", parsed.Hash))
	case ssh.Unmarshal(parsed.Signature, &sig) != nil:
		return bad("the SSH signature cannot be read")
	}
	return parsed, sig, nil
}

// verifySSH checks a signature of the key over message, in the namespace.
func verifySSH(key ssh.PublicKey, namespace string, message, blob []byte) error {
	parsed, sig, err := parseSSH(blob)
	if err != nil {
		return err
	}
	id := ssh.FingerprintSHA256(key)
	switch {
	case !bytes.Equal(parsed.PublicKey, key.Marshal()):
		return fmt.Errorf("%w: the SSH signature is not of key %s", ErrSignature, id)
	case parsed.Namespace != namespace:
		return fmt.Errorf("%w: the SSH signature is for namespace %.80q, want %q", ErrSignature, parsed.Namespace, namespace)
	case key.Type() == ssh.KeyAlgoSKED25519 && (len(sig.Rest) != 5 || sig.Rest[0]&touched == 0):
		return fmt.Errorf("%w: security key %s was not touched", ErrSignature, id)
	case key.Type() == ssh.KeyAlgoED25519 && len(sig.Rest) != 0:
		return fmt.Errorf("%w: the SSH signature of key %s has something after it", ErrSignature, id)
	}
	if err := key.Verify(signedBySSH(namespace, parsed.Hash, message), &sig); err != nil {
		return fmt.Errorf("%w: bad SSH signature of key %s", ErrSignature, id)
	}
	return nil
}

// Attach adds a signature that was made elsewhere: what ssh-keygen -Y sign wrote, by any
// of the keys. It returns the key.
func Attach(keys []Key, p Purpose, env capsule.Envelope, armored []byte) (capsule.Envelope, Key, error) {
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != sshArmor || len(bytes.TrimSpace(rest)) > 0 {
		return env, Key{}, fmt.Errorf("%w: want one %s block, as ssh-keygen -Y sign writes it", ErrSignature, sshArmor)
	}
	parsed, _, err := parseSSH(block.Bytes)
	if err != nil {
		return env, Key{}, err
	}
	for _, key := range keys {
		if key.ssh != nil && bytes.Equal(key.ssh.Marshal(), parsed.PublicKey) {
			env, err = attach(key, p, env, block.Bytes)
			return env, key, err
		}
	}
	return env, Key{}, fmt.Errorf("%w: no holder has the key that signed", ErrSignature)
}
