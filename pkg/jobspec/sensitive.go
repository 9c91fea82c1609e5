package jobspec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Sensitive stands for a value that nobody is shown. It is no JSON, so no value reads
// like it.
const Sensitive = "(sensitive)"

const digestBegins, digestEnds = "(sensitive, digest ", ")"

// DigestKey makes the digests of sensitive values, by which a reviewer sees whether one
// changes, and whether it comes back to what it was. Without one there are none. It does
// not leave the runner: whoever has it can try values.
//
// A digest is of a value in its place. In another place the same value has another one:
// otherwise a plan that nobody approved could try values against a secret elsewhere in the
// install. In the place of the secret itself a plan can only ask whether it is one value,
// which "no change" tells anyway.
type DigestKey []byte

// Show is what stands for a value in a place: Sensitive, with its digest when there is a
// key. The place is given by its parts, such as an address and a path.
func (k DigestKey) Show(value []byte, place ...string) string {
	if len(k) == 0 {
		return Sensitive
	}
	mac := hmac.New(sha256.New, k)
	for _, part := range place {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(part))) // a hash takes everything
		mac.Write([]byte(part))
	}
	mac.Write(value)
	return digestBegins + hex.EncodeToString(mac.Sum(nil)[:6]) + digestEnds
}

// IsSensitive tells whether a text stands for a value that nobody is shown, and gives the
// digest that it has, or "".
func IsSensitive(shown string) (digest string, is bool) {
	if shown == Sensitive {
		return "", true
	}
	rest, begins := strings.CutPrefix(shown, digestBegins)
	digest, ends := strings.CutSuffix(rest, digestEnds)
	if !begins || !ends {
		return "", false
	}
	return digest, true
}
