package datadir

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/capsule"
)

// releaseKeys is the file with the keys whose releases the customer trusts.
type releaseKeys struct {
	Keys []TrustedKey `json:"release_keys"`
}

// LoadReleaseKeys are the release keys that the customer pinned, by their ids; none
// where no key was.
func (d Dir) LoadReleaseKeys() (map[string]ed25519.PublicKey, error) {
	var file releaseKeys
	if _, err := ReadJSON(d.ReleaseKeys(), &file); err != nil {
		return nil, fmt.Errorf("release keys: %w", err)
	}
	return byID("release", file.Keys)
}

// TrustRelease pins a release key. Pinned again it stays as it is.
func (d Dir) TrustRelease(key ed25519.PublicKey) (id string, err error) {
	pem, err := capsule.MarshalPublicKey(key)
	if err != nil {
		return "", err
	}
	id = capsule.KeyID(key)
	return id, d.editReleaseKeys(func(file *releaseKeys) error {
		if !slices.ContainsFunc(file.Keys, func(k TrustedKey) bool { return k.KeyID == id }) {
			file.Keys = append(file.Keys, TrustedKey{KeyID: id, PublicKey: string(pem)})
		}
		return nil
	})
}

// DistrustRelease takes a pinned release key away.
func (d Dir) DistrustRelease(id string) error {
	return d.editReleaseKeys(func(file *releaseKeys) error {
		before := len(file.Keys)
		file.Keys = slices.DeleteFunc(file.Keys, func(k TrustedKey) bool { return k.KeyID == id })
		if len(file.Keys) == before {
			return fmt.Errorf("this runner trusts no release key %q", id)
		}
		return nil
	})
}

func (d Dir) editReleaseKeys(edit func(*releaseKeys) error) error {
	var file releaseKeys
	if _, err := ReadJSON(d.ReleaseKeys(), &file); err != nil {
		return fmt.Errorf("release keys: %w", err)
	}
	if err := edit(&file); err != nil {
		return err
	}
	return WriteJSON(d.ReleaseKeys(), file)
}
