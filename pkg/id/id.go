// Package id makes and checks the identifiers of Berth: a short prefix that
// names the kind of thing, an underscore and 26 characters that sort by time,
// such as "wfl_01jd2x7q9zr8w3v5k6m4n0tgha". Ids of orgs, apps, components and
// installs have no underscore ("ins01jd2x7q9zr8w3v5k6m4n0tgha"): apps put them
// into the names of namespaces, buckets, hosts and roles, and few of those may
// have one. Ids are names, never secrets: they carry the time of their making
// and can be guessed in part.
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
	Webhook   = "whk"
	Delivery  = "dlv"
	ActionRun = "arn"
	Series    = "ser"
	Stream    = "str"
	Token     = "tok"
	Account   = "acc"
	Grant     = "grt"
	Key       = "key"
	Settings  = "set"
	Blob      = "blb"
	Event     = "evt"
	Check     = "chk"
	Freeze    = "frz"
	Drift     = "drf"

	RoleSwitch = "rsw"
	Alert      = "alt"
	AlertMute  = "mut"
	Incident   = "inc"

	Remediation = "rmd"

	BrowserSession = "bss"
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
	return prefix + separator(prefix) + encode(next(time.Now()))
}

// separator is what stands between a prefix and the rest of a new id.
func separator(prefix string) string {
	switch prefix {
	case Org, App, Component, Install:
		return ""
	}
	return "_"
}

// Valid reports whether s is a well-formed id with the given prefix. It says
// nothing about whether such a thing exists. An underscore is fine in every id:
// those of orgs, apps, components and installs had one at first.
func Valid(prefix, s string) bool {
	body, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return false
	}
	body, old := strings.CutPrefix(body, "_")
	if !old && separator(prefix) != "" {
		return false
	}
	if len(body) != encodedLen || body[0] > '7' {
		return false
	}
	for i := range len(body) {
		if strings.IndexByte(alphabet, body[i]) < 0 {
			return false
		}
	}
	return true
}

// Cut splits what people type as an id, or as the beginning of one, into its
// prefix and the rest; ok is false for what is a name. An id without an
// underscore goes on with a digit 0 (until the year 10889), so only such names
// can be taken for one: look for a name first.
func Cut(s string) (prefix, rest string, ok bool) {
	if prefix, rest, ok = strings.Cut(s, "_"); ok {
		return prefix, rest, true
	}
	const letters = 3
	if len(s) > letters && separator(s[:letters]) == "" && s[letters] == '0' {
		return s[:letters], s[letters:], true
	}
	return "", "", false
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
