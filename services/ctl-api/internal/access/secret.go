package access

import (
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"strings"
)

// Prefixes of secrets, so that people and scanners recognise them.
const (
	TokenPrefix     = "brt_" // a member's token
	EnrolmentPrefix = "ben_" // enrols one machine, once
	PhoneHomePrefix = "bph_" // lets one stack phone home, once
)

const (
	// secretLen characters of base 62 carry 256 bits.
	secretLen = 43
	// shownLen is how much of a token is kept in clear, to recognise it by.
	shownLen = len(TokenPrefix) + 4

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewSecret makes a secret with a prefix, and the hash that is stored of it.
func NewSecret(prefix string) (secret string, hash []byte) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	n, digit, base := new(big.Int).SetBytes(raw[:]), new(big.Int), big.NewInt(int64(len(base62)))
	text := []byte(strings.Repeat("0", secretLen))
	for i := secretLen - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		text[i] = base62[digit.Int64()]
	}
	secret = prefix + string(text)
	return secret, HashSecret(secret)
}

// HashSecret is what is stored and looked up of a secret. The secrets have 256
// bits of their own, so that a plain hash is enough.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// shown is the part of a token that is kept in clear.
func shown(secret string) string { return secret[:min(shownLen, len(secret))] }
