package place

import (
	"fmt"
	"time"
)

// Text is the value of a key that may hold its contents or name a file of the
// app folder ("./values.yaml"). Contents are as written, not rendered.
type Text struct {
	Contents string `json:"contents"`
	// File is the file that the contents came from, "" when they stand in the
	// TOML file itself.
	File string `json:"file,omitempty" digest:"-"`
	// Remote is where the contents are fetched from when the app is synced, with
	// Contents empty until then: an http(s) or git:: address. Nothing is fetched
	// while a folder is read. As with a file, what counts is what stands there.
	Remote string `json:"remote,omitempty" digest:"-"`
	// Digest is that of contents that were fetched; "" for all others.
	Digest string `json:"digest,omitempty" digest:"-"`
}

// From is where the contents came from when they stand in no TOML file: a file
// of the folder, or an address.
func (t Text) From() string {
	if t.Digest != "" {
		return t.Remote
	}
	return t.File
}

// Duration is a time.Duration written as "90s" or "1h30m", in TOML and in JSON.
type Duration time.Duration

// Std returns the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the canonical form: "1h0m0s" for "60m" too.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"90s\", \"5m\" or \"1h30m\"", text)
	}
	*d = Duration(parsed)
	return nil
}
