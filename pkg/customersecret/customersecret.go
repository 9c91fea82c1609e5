// Package customersecret says what a secret that the customer keeps is: what an app
// declares of it, which values it takes, how the runner makes one, and what may be known
// of a value elsewhere. It keeps nothing and opens nothing: values are kept by the runner.
package customersecret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// MaxBytes is the longest value. A Secret of Kubernetes holds 1 MiB in all its keys.
	MaxBytes = 256 << 10
	// MinBytes is the shortest value, in bytes: one that is shorter cannot be found in
	// logs and taken out of them (package redact).
	MinBytes = 8
	// GeneratedLength is the length of a value that the runner makes, in characters. The
	// app format says 63.
	GeneratedLength = 63
)

// FormatBase64 is the format of values that are base64 of what they stand for.
const FormatBase64 = "base64"

// Who set a value.
const (
	ByCustomer = "customer" // berth-runner secrets
	ByRunner   = "runner"   // auto_generate
	ByDefault  = "default"  // the app's default
)

// Declaration is what a release says of a secret.
type Declaration struct {
	Name         string  `json:"name"`
	Description  string  `json:"description,omitempty"`
	Required     bool    `json:"required,omitempty"`
	AutoGenerate bool    `json:"auto_generate,omitempty"`
	Default      *string `json:"default,omitempty"`
	// Format is FormatBase64 or "".
	Format           string `json:"format,omitempty"`
	UserConfigurable bool   `json:"user_configurable,omitempty"`
}

// Needed says whether nothing is deployed before the secret has a value.
func (d Declaration) Needed() bool { return d.Required || d.Made() }

// Made says whether the runner has a value of it without being given one.
func (d Declaration) Made() bool { return d.AutoGenerate || d.Default != nil }

var name = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$`)

// ValidName says whether a text can be the name of a secret. It is part of a file's name.
func ValidName(text string) bool { return name.MatchString(text) }

// ErrValue is what is wrong with a value, for errors.Is. No error quotes the value.
var ErrValue = errors.New("this value is not taken")

// Check says why a value of the format is not taken, nil when it is.
func Check(format, value string) error {
	switch {
	case value == "":
		return fmt.Errorf("%w: it is empty; `berth-runner secrets unset` takes a value away", ErrValue)
	case len(value) < MinBytes:
		return fmt.Errorf("%w: it has fewer than %d bytes, so it could not be kept out of logs", ErrValue, MinBytes)
	case len(value) > MaxBytes:
		return fmt.Errorf("%w: it has more than %d bytes", ErrValue, MaxBytes)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return fmt.Errorf("%w: it is not text; declare the secret with format = \"base64\" and set it as base64", ErrValue)
	}
	if format == FormatBase64 {
		if _, err := Decode(format, value); err != nil {
			return err
		}
	}
	return nil
}

// Decode gives what a value stands for: the bytes that a Secret of Kubernetes holds.
func Decode(format, value string) ([]byte, error) {
	if format != FormatBase64 {
		return []byte(value), nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
	if err != nil || len(raw) == 0 {
		return nil, fmt.Errorf("%w: it is not base64, which the app asks for", ErrValue)
	}
	return raw, nil
}

// letters are what made values consist of: nothing that a shell, a URL or YAML reads.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Generate makes a value: GeneratedLength letters and digits, about 375 bits. That of the
// format base64 is base64 of such a text.
func Generate(format string) string {
	out := make([]byte, GeneratedLength)
	for i := range out {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		out[i] = letters[n.Int64()]
	}
	if format == FormatBase64 {
		return base64.StdEncoding.EncodeToString(out)
	}
	return string(out)
}

// Digest tells two values of a secret apart. Without the salt nothing can be tried
// against it; two secrets with the same value have different ones.
func Digest(salt []byte, name, value string) string {
	mac := hmac.New(sha256.New, salt)
	fmt.Fprintf(mac, "berth-secret-1\x00%d:%s\x00%s", len(name), name, value)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// Version is what may be known of one value: never the value, nor its length.
type Version struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	// Set: it has a value.
	Set bool `json:"set"`
	// Digest is salted, "" without a value.
	Digest string    `json:"digest"`
	SetBy  string    `json:"set_by"`
	SetAt  time.Time `json:"set_at"`
}
