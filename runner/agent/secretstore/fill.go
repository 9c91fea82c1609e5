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

// ErrMoved is returned when the tree names another version of a secret than the runner has. A plan that is
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
// hide is what has to be kept out of logs and plans: every value that there is or was, and
// the bytes that one of the format base64 stands for.
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
		one["digest"] = k.Digest // a plan names it in the place of the value
		if !k.Set {
			continue
		}
		one["value"] = map[string]any{"$sealed": base64.StdEncoding.EncodeToString(k.Sealed)}
	}
	return s.hidden()
}

// hidden is every value that there is or was, in clear, and the bytes that it stands for:
// a job may meet them in a state or in a cluster without having asked.
func (s Store) hidden() (texts []string, err error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		k, err := s.Get(v.Name)
		if err != nil {
			return nil, err
		}
		for _, e := range k.left() {
			k.Version.Version, k.Sealed = e.Version, e.Sealed
			value, err := s.Open(k)
			if err != nil {
				return nil, err
			}
			texts = append(texts, value)
			if raw, err := customersecret.Decode(customersecret.FormatBase64, value); err == nil {
				texts = append(texts, string(raw)) // whether the app says so or not
			}
		}
	}
	return texts, nil
}
