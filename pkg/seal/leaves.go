package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// leafKey is the only key of the object that stands for a sealed value.
const leafKey = "$sealed"

// Redacted is what RedactLeaves puts in the place of a sealed value.
const Redacted = "(sealed)"

// padTo is the multiple, in bytes, to which a leaf is filled up with spaces
// before it is sealed, so that the ciphertext of a short secret does not tell
// its length.
const padTo = 64

// Leaves says of a place in a tree, given by map keys and decimal indexes, what
// a sealed value there is for; ok is false where none belongs. The root has the
// empty path.
type Leaves func(path []string) (purpose Purpose, ok bool)

// SealLeaves returns a copy of a JSON tree (maps, slices, scalars; anything
// else is taken through encoding/json) in which each value that leaves names is
// replaced by {"$sealed": "<base64>"}. It asks from the top down; an object or
// list that it names is sealed as one. Values that are sealed already stay as
// they are.
func SealLeaves(recipients []string, tree any, leaves Leaves) (any, error) {
	for _, r := range recipients {
		if err := ValidRecipient(r); err != nil {
			return nil, err
		}
	}
	return walk(tree, nil, func(path []string, v any) (any, bool, error) {
		if _, sealed := leaf(v); sealed {
			return v, true, nil
		}
		purpose, ok := leaves(path)
		if !ok {
			return v, false, nil
		}
		out, err := sealLeaf(recipients, purpose, v)
		return out, true, err
	})
}

// OpenLeaves returns a copy of tree with each sealed value in clear. Numbers
// come back as json.Number, with all their digits. The first leaf that cannot
// be opened for the purpose of its place, or stands where none belongs, fails the
// whole, naming its path.
func OpenLeaves(open Opener, tree any, leaves Leaves) (any, error) {
	return walk(tree, nil, func(path []string, v any) (any, bool, error) {
		sealed, ok := leaf(v)
		if !ok {
			return v, false, nil
		}
		purpose, ok := leaves(path)
		if !ok {
			return nil, false, fmt.Errorf("%w: no sealed value belongs here", ErrOtherPurpose)
		}
		out, err := openLeaf(open, purpose, sealed)
		return out, true, err
	})
}

// RedactLeaves returns a copy of tree with the string "(sealed)" in the place
// of each sealed value: what may be shown to people.
func RedactLeaves(tree any) any {
	out, err := walk(tree, nil, func(_ []string, v any) (any, bool, error) {
		if _, ok := leaf(v); ok {
			return Redacted, true, nil
		}
		return v, false, nil
	})
	if err != nil {
		return Redacted // not JSON at all: show nothing rather than too much
	}
	return out
}

// IsSealed reports whether v itself is a sealed value.
func IsSealed(v any) bool {
	_, ok := leaf(v)
	return ok
}

// HasSealed reports whether tree contains a sealed value anywhere. What is
// not JSON counts as sealed.
func HasSealed(tree any) bool {
	found := false
	_, err := walk(tree, nil, func(_ []string, v any) (any, bool, error) {
		_, ok := leaf(v)
		found = found || ok
		return v, found, nil
	})
	return found || err != nil
}

// leaf returns the base64 text of a sealed value. An object with further keys
// is not one.
func leaf(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", false
	}
	s, ok := m[leafKey].(string)
	return s, ok
}

func sealLeaf(recipients []string, purpose Purpose, v any) (any, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if rest := len(plain) % padTo; rest != 0 {
		plain = append(plain, bytes.Repeat([]byte{' '}, padTo-rest)...)
	}
	sealed, err := Seal(recipients, purpose, plain)
	if err != nil {
		return nil, err
	}
	return map[string]any{leafKey: base64.StdEncoding.EncodeToString(sealed)}, nil
}

func openLeaf(open Opener, purpose Purpose, text string) (any, error) {
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("sealed value is not base64")
	}
	plain, err := open(purpose, sealed)
	if err != nil {
		return nil, err
	}
	out, err := decode(plain)
	if err != nil {
		return nil, fmt.Errorf("sealed value is not JSON") // the cause could quote the secret
	}
	return out, nil
}

// walk copies a tree. visit may replace a value and says whether that is final
// or its children are to be visited too.
func walk(v any, path []string, visit func(path []string, v any) (any, bool, error)) (any, error) {
	v, err := plainJSON(v)
	if err != nil {
		return nil, at(path, err)
	}
	out, final, err := visit(path, v)
	if err != nil {
		return nil, at(path, err)
	}
	if final {
		return out, nil
	}
	switch node := out.(type) {
	case map[string]any:
		next := make(map[string]any, len(node))
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if next[key], err = walk(node[key], append(slices.Clip(path), key), visit); err != nil {
				return nil, err
			}
		}
		return next, nil
	case []any:
		next := make([]any, len(node))
		for i, child := range node {
			if next[i], err = walk(child, append(slices.Clip(path), strconv.Itoa(i)), visit); err != nil {
				return nil, err
			}
		}
		return next, nil
	default:
		return out, nil
	}
}

// plainJSON lets the usual tree types pass and takes everything else (structs,
// typed maps, raw messages) through encoding/json.
func plainJSON(v any) (any, error) {
	switch v.(type) {
	case nil, bool, string, json.Number, float64, int, int64, map[string]any, []any:
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func at(path []string, err error) error {
	if len(path) == 0 {
		return err
	}
	return fmt.Errorf("at %s: %w", strings.Join(path, "."), err)
}
