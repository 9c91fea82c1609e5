package secretstore

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/customersecret"
)

// ErrMoved: the tree names another version of a secret than the runner has. A plan that is
// made again reads the one of now.
var ErrMoved = errors.New("a secret has another value than the one that was planned with")

// rehearsed is where the tree of a rehearsal says so (ctl-api, package statetree): the
// secrets of one are made up.
const rehearsed = "rehearsal"

// Wanted says what a job wants of secrets.
type Wanted struct {
	// Value: its templates read the value of the secret.
	Value func(name string) bool
	// Exact refuses a version other than the tree's; else the newest is given.
	Exact bool
}

// Fill puts the values, still sealed, where a job's state tree has room for them, with
// their versions, for interpolate.SealedLeaves. A value that came from the control plane is
// refused, whatever it is sealed for: only the customer's side has values. A secret
// without one is an empty text, as an input is.
//
// hide are the bytes that wanted values of the format base64 stand for: they have to be
// kept out of logs as well.
func (s Store) Fill(tree any, want Wanted) (hide []string, err error) {
	root, _ := tree.(map[string]any)
	secrets, _ := root["secrets"].(map[string]any)
	_, madeUp := root[rehearsed]
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		one, _ := secrets[name].(map[string]any)
		if one == nil {
			continue
		}
		if given, found := one["value"]; found {
			if _, text := given.(string); !text || !madeUp {
				return nil, fmt.Errorf("the order has a value of secret %q: only this machine may", name)
			}
			continue
		}
		k, err := s.Get(name)
		if err != nil && !errors.Is(err, ErrNotThere) {
			return nil, err
		}
		if said := fmt.Sprint(one["version"]); want.Exact && want.Value(name) && said != fmt.Sprint(k.Version.Version) {
			return nil, fmt.Errorf("%w: %s is at version %d, and the order is for version %s", ErrMoved, name, k.Version.Version, said)
		}
		one["version"], one["exists"], one["length"], one["value"] = json.Number(fmt.Sprint(k.Version.Version)), k.Set, k.Length, ""
		if !k.Set {
			continue
		}
		one["value"] = map[string]any{"$sealed": base64.StdEncoding.EncodeToString(k.Sealed)}
		if !want.Value(name) {
			continue
		}
		raw, err := s.decoded(k)
		if err != nil {
			return nil, err
		}
		hide = append(hide, raw...)
	}
	return hide, nil
}

// decoded is what a value of the format base64 stands for; none for another one.
func (s Store) decoded(k Kept) ([]string, error) {
	d, _, err := s.Declaration(k.Name)
	if err != nil || d.Format != customersecret.FormatBase64 {
		return nil, err
	}
	value, err := s.Open(k)
	if err != nil {
		return nil, err
	}
	raw, err := customersecret.Decode(d.Format, value)
	if err != nil {
		return nil, nil // it was set before the app asked for base64
	}
	return []string{string(raw)}, nil
}
