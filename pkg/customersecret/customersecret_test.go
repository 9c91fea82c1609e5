package customersecret_test

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/customersecret"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, format, value string
		taken               bool
	}{
		{"a password", "", "correct horse", true},
		{"several lines", "", "-----BEGIN KEY-----\nabc\n", true},
		{"empty", "", "", false},
		{"too short for the redactor", "", "hunter2", false},
		{"too long", "", strings.Repeat("x", customersecret.MaxBytes+1), false},
		{"as long as can be", "", strings.Repeat("x", customersecret.MaxBytes), true},
		{"bytes", "", "abcdefgh\xff", false},
		{"a zero", "", "abcdefgh\x00", false},
		{"base64", "base64", base64.StdEncoding.EncodeToString([]byte("a certificate")), true},
		{"base64 in lines", "base64", "YWJjZGVm\nZ2hpams=\n", true},
		{"no base64", "base64", "not base64!", false},
		{"base64 of nothing", "base64", "        ", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := customersecret.Check(tt.format, tt.value)
			if (err == nil) != tt.taken || err != nil && !errors.Is(err, customersecret.ErrValue) {
				t.Errorf("Check(%q, %d bytes) = %v, want taken %v", tt.format, len(tt.value), err, tt.taken)
			}
			if err != nil && tt.value != "" && len(tt.value) < 100 && strings.Contains(err.Error(), tt.value) {
				t.Errorf("the error quotes the value: %v", err)
			}
		})
	}
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	one, other := customersecret.Generate(""), customersecret.Generate("")
	if !regexp.MustCompile(`^[A-Za-z0-9]{63}$`).MatchString(one) || one == other {
		t.Errorf("made %q and %q, want two of 63 letters and digits", one, other)
	}
	if raw, err := customersecret.Decode("base64", customersecret.Generate("base64")); err != nil || len(raw) != 63 {
		t.Errorf("made one of the format base64 with %d bytes, %v", len(raw), err)
	}
}

func TestDigestNeedsSaltNameAndValue(t *testing.T) {
	t.Parallel()
	base := customersecret.Digest([]byte("salt"), "a", "value one")
	for _, other := range []string{
		customersecret.Digest([]byte("talc"), "a", "value one"),
		customersecret.Digest([]byte("salt"), "b", "value one"),
		customersecret.Digest([]byte("salt"), "a", "value two"),
	} {
		if other == base {
			t.Errorf("two digests are the same: %s", base)
		}
	}
	if again := customersecret.Digest([]byte("salt"), "a", "value one"); again != base {
		t.Errorf("the same value gives %s and %s", base, again)
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"db_password": true, "a": true, "tls.key": true, "": false, "..": false, "a/b": false, ".a": false, "a-": false, "a\n": false} {
		if got := customersecret.ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v", name, got)
		}
	}
}
