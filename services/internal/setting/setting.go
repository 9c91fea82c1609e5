// Package setting reads the settings of a service: environment variables, into
// a Config whose fields say by their tags which variable they are and what they
// are without it.
//
//	// Listen is where the API is served.
//	Listen string `env:"BERTH_LISTEN" default:"127.0.0.1:8700"`
//
// A default that is worked out later has a tag shown instead, with the words of
// the reference page. Package settingtest compares a Config with that page.
package setting

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Load reads and checks settings, and reports every problem at once.
func Load[C interface{ Validate() error }](getenv func(string) string) (C, error) {
	var c C
	unreadable := Read(&c, getenv)
	return c, errors.Join(unreadable, c.Validate())
}

// Read fills the struct that into points to, with those that are embedded in it;
// fields without the tag env, or with "-", are left. The error names every value that cannot be read; those fields
// have their defaults. It panics on a struct that is none for settings.
func Read(into any, getenv func(string) string) error {
	var errs []error
	config := reflect.ValueOf(into).Elem()
	for _, f := range reflect.VisibleFields(config.Type()) {
		tag := f.Tag
		name := tag.Get("env")
		if name == "" || name == "-" {
			continue
		}
		field := config.FieldByIndex(f.Index)
		if err := set(field, tag.Get("default")); err != nil {
			panic(fmt.Sprintf("setting: default of %s: %v", name, err))
		}
		if err := set(field, strings.TrimSpace(getenv(name))); err != nil {
			errs = append(errs, fmt.Errorf("%s is %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// set leaves the field as it is for an empty text, and for one that is no value.
// The error does not show the text: it may be a secret in the wrong place.
func set(field reflect.Value, text string) error {
	if text == "" {
		return nil
	}
	switch field.Interface().(type) {
	case string:
		field.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("neither true nor false")
		}
		field.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("not a whole number")
		}
		field.SetInt(int64(n))
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("not a duration such as 60s")
		}
		field.SetInt(int64(d))
	default:
		panic(fmt.Sprintf("setting: a field cannot be %s", field.Type()))
	}
	return nil
}

// Address says what is wrong with an address to listen on.
func Address(name, value string) error {
	if _, port, err := net.SplitHostPort(value); err != nil || port == "" {
		return fmt.Errorf("%s is %q, want HOST:PORT", name, value)
	}
	return nil
}

// URL says what is wrong with the address of a service. It does not show it: a
// password may be part of it.
func URL(name, value string) error {
	if u, err := url.Parse(value); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%s is not an http or https address", name)
	} else if u.User != nil {
		return fmt.Errorf("%s has credentials in it, and is stored and shown: take them out", name)
	}
	return nil
}

// Within says what is wrong with a number that must be from least to most.
func Within(name string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d, want %d to %d", name, value, least, most)
	}
	return nil
}

// DSNFile says that the file with the address of the database is not named.
func DSNFile(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s is not set: name the file that `berth-ctl-api migrate` wrote for this service", name)
	}
	return nil
}

// ReadDSN reads the address of a database from its file. It is never shown.
func ReadDSN(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the address of the database: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
