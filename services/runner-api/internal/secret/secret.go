// Package secret makes the credentials that runner-api hands out. Only their
// hash is stored.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
)

// Prefixes say what a credential is good for, also to a scanner of leaks.
const (
	Session  = "brs_"
	Registry = "brg_"
	Log      = "blt_"
)

// length is 43 characters of 62, a little over 256 bits.
const length = 43

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// New returns a fresh credential, to be shown once, and the hash to store.
func New(prefix string) (text string, hash []byte) {
	out := append(make([]byte, 0, len(prefix)+length), prefix...)
	var random [2 * length]byte
	for len(out) < len(prefix)+length {
		_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
		for _, b := range random {
			// 248 is the largest multiple of 62 in a byte: no character is likelier.
			if b < 248 && len(out) < len(prefix)+length {
				out = append(out, alphabet[b%62])
			}
		}
	}
	return string(out), Hash(string(out))
}

// Hash is how a credential is stored.
func Hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
