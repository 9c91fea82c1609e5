package capsule

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
)

// numberKey is the only key of the object that Exact puts in the place of a
// number with more digits than canonical JSON can hold.
const numberKey = "$number"

// Exact prepares a decoded JSON tree (with json.Number, see
// json.Decoder.UseNumber) of somebody else's making for Canonical: a number
// that a 64-bit float cannot hold becomes {"$number": "its digits"}. Trees
// that differ still differ afterwards; one that uses "$number" as a key itself
// is refused.
func Exact(tree any) (any, error) {
	switch node := tree.(type) {
	case map[string]any:
		next := make(map[string]any, len(node))
		for key, child := range node {
			if key == numberKey {
				return nil, fmt.Errorf("%w: the key %q is reserved", ErrNotCanonical, key)
			}
			out, err := Exact(child)
			if err != nil {
				return nil, err
			}
			next[key] = out
		}
		return next, nil
	case []any:
		next := make([]any, len(node))
		for i, child := range node {
			out, err := Exact(child)
			if err != nil {
				return nil, err
			}
			next[i] = out
		}
		return next, nil
	case json.Number:
		if !exact(node) {
			return map[string]any{numberKey: node.String()}, nil
		}
	}
	return tree, nil
}

// exact reports whether the canonical form of n has the same decimal value.
func exact(n json.Number) bool {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return false
	}
	out, err := jsoncanonicalizer.NumberToJSON(f)
	return err == nil && decimalOf(n.String()) == decimalOf(out)
}

// decimal is a number as digits without zeros at either end, times ten to the
// power exp. Equal values have equal decimals; zero is the zero value.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// decimalOf reads a JSON number. It works on text, so that an exponent of a
// billion costs nothing.
func decimalOf(s string) decimal {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exp, _ = strconv.Atoi(power) // "" is 0; out of range was refused by ParseFloat or is zero
	d.exp -= len(fraction)
	d.digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(d.digits, "0")
	d.exp += len(d.digits) - len(trimmed)
	d.digits = trimmed
	if d.digits == "" {
		return decimal{}
	}
	return d
}
