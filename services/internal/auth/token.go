package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"strings"
)

// The prefixes of all secrets of Berth, by which people and scanners know them.
const (
	TokenPrefix     = "brt_" // an account's token
	SessionPrefix   = "brs_" // a runner's session
	EnrolmentPrefix = "ben_" // enrols one machine, once
	PhoneHomePrefix = "bph_" // lets one stack phone home, once
	RegistryPrefix  = "brg_" // reads or writes the org's registry
	LogPrefix       = "blt_" // appends to one log stream
	BrowserPrefix   = "bws_" // a browser's session, in its cookie
	LinkPrefix      = "bwl_" // logs one browser in, once
)

const (
	// secretChars of base 62 carry 256 bits.
	secretChars = 43
	// shownChars of a token are kept in clear, to recognise it by.
	shownChars = len(TokenPrefix) + 4

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewToken makes an account's token: plain is shown once, hash is stored and
// looked up, prefix is what a person recognises it by.
func NewToken() (plain string, hash []byte, prefix string) {
	plain, hash = NewSecret(TokenPrefix)
	return plain, hash, plain[:shownChars]
}

// NewSecret makes a secret of 256 bits behind one of the prefixes, and the hash
// that is stored of it.
func NewSecret(prefix string) (plain string, hash []byte) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	rest, digit, base := new(big.Int).SetBytes(raw[:]), new(big.Int), big.NewInt(int64(len(base62)))
	text := make([]byte, secretChars)
	for i := range text {
		rest.DivMod(rest, base, digit)
		text[secretChars-1-i] = base62[digit.Int64()]
	}
	plain = prefix + string(text)
	return plain, Hash(plain)
}

// Hash is what is stored of a secret. It needs neither salt nor slowness: there
// are 256 bits to guess.
func Hash(plain string) []byte {
	sum := sha256.Sum256([]byte(plain))
	return sum[:]
}

// WellFormed reports whether s looks like a secret with this prefix, so that
// nonsense is refused without asking the database.
func WellFormed(prefix, s string) bool {
	text, ok := strings.CutPrefix(s, prefix)
	return ok && len(text) == secretChars && strings.Trim(text, base62) == ""
}
