package pulumi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

// padlock encrypts values of a stack's configuration as Pulumi's passphrase provider
// does: `pulumi config set --secret` would need one start of the command for each.
//
// The key is PBKDF2-SHA-256 of the passphrase, a value is AES-256-GCM, written
// "v1:NONCE:CIPHERTEXT" in base64. The encryptionsalt of the file is
// "v1:SALT:VALUE", whose value is the word "pulumi"; so a wrong passphrase shows.
type padlock struct{ aead cipher.AEAD }

const (
	padlockRounds = 1_000_000 // of PBKDF2; Pulumi's
	padlockProof  = "pulumi"
)

var errSalt = errors.New("the encryptionsalt of the stack is not one of Pulumi's passphrase provider")

// newPadlock takes the encryptionsalt of the stack's file. Its errors repeat nothing
// of it.
func newPadlock(passphrase, encryptionSalt string) (padlock, error) {
	parts := strings.SplitN(encryptionSalt, ":", 3)
	if len(parts) != 3 || parts[0] != "v1" {
		return padlock{}, errSalt
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return padlock{}, errSalt
	}
	key, err := pbkdf2.Key(sha256.New, passphrase, salt, padlockRounds, 32)
	if err != nil {
		return padlock{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return padlock{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return padlock{}, err
	}
	p := padlock{aead: aead}
	if proof, err := p.decrypt(parts[2]); err != nil || proof != padlockProof {
		return padlock{}, errors.New("the passphrase in the state is not that of its encryptionsalt")
	}
	return p, nil
}

func (p padlock) encrypt(value string) string {
	nonce := make([]byte, p.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails: crypto/rand ends the program instead
	sealed := p.aead.Seal(nil, nonce, []byte(value), nil)
	return "v1:" + base64.StdEncoding.EncodeToString(nonce) + ":" + base64.StdEncoding.EncodeToString(sealed)
}

func (p padlock) decrypt(text string) (string, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] != "v1" {
		return "", errSalt
	}
	nonce, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil || len(nonce) != p.aead.NonceSize() {
		return "", errSalt
	}
	sealed, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return "", errSalt
	}
	value, err := p.aead.Open(nil, nonce, sealed, nil)
	return string(value), err
}
