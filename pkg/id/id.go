// Package id makes and checks the identifiers of Berth: a short prefix that
// names the kind of thing, an underscore and 26 characters that sort by time,
// such as "ins_01jd2x7q9zr8w3v5k6m4n0tgha". Ids are names, never secrets: they
// carry the time of their making and can be guessed in part.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// Prefixes of all things that have an id. Rows, URLs and logs use the same.
const (
	Org       = "org"
	App       = "app"
	Config    = "cfg"
	Component = "cmp"
	Revision  = "rev"
	Build     = "bld"
	Release   = "rel"
	Customer  = "cus"
	Install   = "ins"
	Resource  = "res"
	Workflow  = "wfl"
	Step      = "stp"
	Change    = "chg"
	Decision  = "dec"
	Job       = "job"
	Lease     = "lse"
	Runner    = "rnr"
	Session   = "ses"
	Enrolment = "enr"
	ActionRun = "arn"
	Stream    = "str"
	Token     = "tok"
	Account   = "acc"
	Grant     = "grt"
	Key       = "key"
	Settings  = "set"
	Blob      = "blb"
	Event     = "evt"
	Check     = "chk"
)

// alphabet is Crockford's base 32 in lower case: no i, l, o, u. Its order is
// that of ASCII, so encoded values sort as the numbers do.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// encodedLen is 128 bits at 5 bits per character, rounded up.
const encodedLen = 26

// New returns a fresh id with the given prefix. Ids made by one process are
// strictly increasing as strings, whatever the clock does; ids of several
// processes are in the order of their clocks. It is safe for concurrent use.
func New(prefix string) string {
	return prefix + "_" + encode(next(time.Now()))
}

// Valid reports whether s is a well-formed id with the given prefix. It says
// nothing about whether such a thing exists.
func Valid(prefix, s string) bool {
	body, ok := strings.CutPrefix(s, prefix+"_")
	if !ok || len(body) != encodedLen || body[0] > '7' {
		return false
	}
	for i := range len(body) {
		if strings.IndexByte(alphabet, body[i]) < 0 {
			return false
		}
	}
	return true
}

// clock holds the last 60-bit tick that was given out: 48 bits of
// milliseconds and 12 bits of their fraction.
var clock struct {
	sync.Mutex
	last uint64
}

// next lays out the 16 bytes of a UUIDv7 (RFC 9562): 48 bits of milliseconds,
// version, 12 bits of sub-millisecond time (method 3), variant, 62 random
// bits. When the clock stands still or goes back, the last tick counts up.
func next(now time.Time) [16]byte {
	const fractions = 1 << 12
	sub := uint64(now.Nanosecond()%int(time.Millisecond)) * fractions / uint64(time.Millisecond)
	tick := uint64(now.UnixMilli())*fractions + sub

	clock.Lock()
	tick = max(tick, clock.last+1)
	clock.last = tick
	clock.Unlock()

	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint64(b[:8], tick/fractions<<16|0x7000|tick%fractions)
	b[8] = b[8]&0x3f | 0x80
	return b
}

// encode writes 128 bits as 26 characters; the first one carries 3 bits.
func encode(b [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [encodedLen]byte
	for i := encodedLen - 1; i >= 0; i-- {
		out[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}
