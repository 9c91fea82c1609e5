// Package imagetrust decides which images may come into an install: those that are signed by
// a key that the customer's trust.json names for them. It is pure, and asks no server: no
// certificate and no transparency log counts, only the key.
package imagetrust

import (
	"crypto"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/attest"
)

// Rule is one of `images` in trust.json.
type Rule struct {
	// Match is the name of an image without tag, in which * stands for any text: for an image
	// of somebody else's the one in the app ("ghcr.io/team/*"), for one that the vendor's
	// builder made its repository there.
	Match string `json:"match"`
	// Key is a public key in PEM that must have signed it. With several rules that match, any
	// of their keys will do.
	Key string `json:"key,omitempty"`
	// Unsigned lets it pass without a signature.
	Unsigned bool `json:"unsigned,omitempty"`
}

// Check says what is wrong with rules.
func Check(rules []Rule) error {
	var errs []error
	for i, r := range rules {
		switch {
		case r.Match == "":
			errs = append(errs, fmt.Errorf("images[%d]: match is missing", i))
		case r.Unsigned == (r.Key != ""):
			errs = append(errs, fmt.Errorf("images[%d] (%s): write key, or unsigned: true", i, r.Match))
		case r.Key != "":
			if _, err := attest.ParseKey(r.Key); err != nil {
				errs = append(errs, fmt.Errorf("images[%d] (%s): %w", i, r.Match, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Needed is what an image has to have.
type Needed struct {
	// Keys are those of which one must have signed it; none with Free.
	Keys []crypto.PublicKey
	// Free: it may come unsigned.
	Free bool
}

// For says what an image needs. Without any rule every image may come; with rules one that
// none of them matches may not, since its name is the control plane's word. name is that word.
func For(rules []Rule, name string) (Needed, error) {
	if len(rules) == 0 {
		return Needed{Free: true}, nil
	}
	var n Needed
	for _, r := range rules {
		if !matches(r.Match, name) {
			continue
		}
		if r.Unsigned {
			return Needed{Free: true}, nil
		}
		key, err := attest.ParseKey(r.Key)
		if err != nil {
			return n, fmt.Errorf("image rule %s: %w", r.Match, err)
		}
		n.Keys = append(n.Keys, key)
	}
	if len(n.Keys) == 0 {
		return n, fmt.Errorf("no rule in images of trust.json matches %q", name)
	}
	return n, nil
}

// matches compares a name with a pattern in which * stands for any text.
func matches(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, found := strings.CutPrefix(name, first)
	if !found {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}
