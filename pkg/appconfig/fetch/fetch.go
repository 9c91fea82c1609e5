// Package fetch owns the words for what stands outside of an app folder: which
// addresses there are, what was asked for, what came of it and how much it may
// be. It fetches nothing: the command line does.
package fetch

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Limits on what is fetched from elsewhere for one app.
const (
	MaxBytes     = 1 << 20 // one file
	MaxAddresses = 100     // addresses
)

// Result is what came of fetching one address.
type Result struct {
	Contents []byte
	// Problem says why there are no contents, and Remedy what to do. Neither may
	// have credentials in it.
	Problem, Remedy string
}

// Wanted is something that stands outside of the folder and is not there yet: the
// contents of one key, or a file that a block merges in.
type Wanted struct {
	At      place.Place `json:"at"`
	Address string      `json:"address"`           // as written: http(s):// or git::
	Include bool        `json:"include,omitempty"` // `source`: the block's other keys are in that file
}

// Fetched is something that stands outside of the folder and was fetched when
// the app was synced.
type Fetched struct {
	At      place.Place `json:"at"`
	Address string      `json:"address"` // as written
	Digest  string      `json:"digest"`  // of its contents
	Size    int64       `json:"size"`    // in bytes
}
